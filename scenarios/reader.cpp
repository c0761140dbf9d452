#include "scenarios/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "scenarios/text_forms.h"

namespace vcpusim {
namespace {

std::vector<std::string> quoted(const auto& names) {
  std::vector<std::string> result;
  for (const auto& name : names) result.push_back(fmt::format("\"{}\"", name));
  return result;
}

}  // namespace

void Reader::read(ReadSession& session, const Json& node, std::string pointer,
                  const std::function<void(ScenarioVisitor&)>& describe) {
  Reader reader(session, node, std::move(pointer));
  if (!node.is(Json::Type::kObject)) return reader.expected(node, reader.pointer_, "an object");
  describe(reader);
  reader.finish();
}

const Json* Reader::find(std::string_view key) {
  known_.emplace_back(key);
  return object_.find(key);
}

const Json* Reader::parameter(std::string_view key) { return all_required_ ? expect(key) : find(key); }

const Json* Reader::expect(std::string_view key) {
  const Json* node = find(key);
  if (node == nullptr) missing_.emplace_back(key);
  return node;
}

void Reader::finish() {
  for (const Json::Member& member : object_.members) {
    if (std::ranges::find(known_, member.key) != known_.end()) continue;
    const std::string near = suggestion(member.key, known_);
    session_.errors.add(
        member.place, at(member.key),
        near.empty() ? fmt::format("unknown key (known: {})", comma_list(known_)) : "unknown key" + near);
  }
  for (const std::string& key : missing_) {
    if (object_.find(key) == nullptr) error(object_, pointer_, fmt::format("the key \"{}\" is missing", key));
  }
  const auto present = [this](const std::vector<std::string>& keys) {
    return std::ranges::count_if(keys, [this](const std::string& key) { return object_.find(key) != nullptr; });
  };
  for (const auto& keys : one_of_) {
    if (present(keys) != 1)
      error(object_, pointer_, fmt::format("expected exactly one of the keys {}", comma_list(quoted(keys))));
  }
  for (const auto& keys : together_) {
    if (const auto count = present(keys); count != 0 && count != static_cast<std::ptrdiff_t>(keys.size())) {
      error(object_, pointer_, fmt::format("the keys {} go together", comma_list(quoted(keys))));
    }
  }
}

void Reader::error(const Json& node, std::string_view pointer, std::string_view message) {
  session_.errors.add(node.place, pointer, message);
}

void Reader::expected(const Json& node, std::string_view pointer, std::string_view what) {
  error(node, pointer, fmt::format("expected {}; got {}", what, node.describe()));
}

void Reader::required(std::initializer_list<std::string_view> keys) {
  missing_.insert(missing_.end(), keys.begin(), keys.end());
}

void Reader::all_or_none(std::initializer_list<std::string_view> keys) {
  together_.emplace_back(keys.begin(), keys.end());
}

void Reader::exactly_one_of(std::span<const std::string_view> keys) { one_of_.emplace_back(keys.begin(), keys.end()); }

void Reader::capture(std::string_view key, ParamValue value) {
  if (captured_ != nullptr) captured_->insert_or_assign(capture_prefix_ + std::string(key), std::move(value));
}

// ---- parameters --------------------------------------------------------------------------------------------

bool Reader::read_duration(const Json& node, const std::string& pointer, DurationRange range, Duration& value) {
  const SpanResult span = node.is(Json::Type::kString) ? parse_span(node.text) : SpanResult{};
  if (!span.value) {
    const std::string hint = span.problem.empty() ? "" : " (" + span.problem + ")";
    expected(node, pointer, "a duration with a unit, such as \"2ms\"" + hint);
    return false;
  }
  const auto* cycles = std::get_if<Cycles>(&*span.value);
  const bool negative = cycles != nullptr ? cycles->count < 0 : std::get<Duration>(*span.value) < Duration::zero();
  const Duration given = cycles == nullptr ? std::get<Duration>(*span.value)
                         : negative        ? Duration{-1}
                                           : from_cycles(*cycles);
  if (given < range.min || given > range.max) {
    expected(node, pointer,
             fmt::format("a duration from {} to {}", format_duration(range.min), format_duration(range.max)));
    return false;
  }
  value = given;
  return true;
}

void Reader::duration(std::string_view key, Duration& value, DurationRange range, std::string_view) {
  const Json* node = parameter(key);
  if (node != nullptr && read_duration(*node, at(key), range, value)) capture(key, value);
}

void Reader::optional_duration(std::string_view key, std::optional<Duration>& value, DurationRange range,
                               std::string_view) {
  value.reset();
  const Json* node = find(key);
  if (Duration given{}; node != nullptr && read_duration(*node, at(key), range, given)) value = given;
}

void Reader::cycles(std::string_view key, Cycles& value, IntegerRange range, std::string_view) {
  const Json* node = parameter(key);
  if (node == nullptr) return;
  const SpanResult span = node->is(Json::Type::kString) ? parse_span(node->text) : SpanResult{};
  if (!span.value) {
    const std::string hint = span.problem.empty() ? "" : " (" + span.problem + ")";
    return expected(*node, at(key), "a number of cycles or a duration, such as \"4096cycles\" or \"1us\"" + hint);
  }
  const auto* in_time = std::get_if<Duration>(&*span.value);
  const Cycles given = in_time == nullptr            ? std::get<Cycles>(*span.value)
                       : *in_time < Duration::zero() ? Cycles{-1}
                                                     : to_cycles(*in_time, clock());
  if (given.count < range.min || given.count > range.max) {
    return expected(*node, at(key), fmt::format("from {}cycles to {}cycles, or as long", range.min, range.max));
  }
  value = given;
  capture(key, value);
}

void Reader::integer(std::string_view key, std::int64_t& value, IntegerRange range, std::string_view) {
  const Json* node = parameter(key);
  if (node == nullptr) return;
  const auto given = node->as_integer();
  if (!given || *given < range.min || *given > range.max) {
    return expected(*node, at(key), fmt::format("an integer from {} to {}", range.min, range.max));
  }
  value = *given;
  capture(key, value);
}

namespace {
constexpr double kBeyondAnyRange = 1e300;

std::string real_range(RealRange range) {
  return range.max >= kBeyondAnyRange ? "a number" : fmt::format("a number from {} to {}", range.min, range.max);
}
}  // namespace

void Reader::real(std::string_view key, double& value, RealRange range, std::string_view) {
  const Json* node = parameter(key);
  if (node == nullptr) return;
  const auto given = node->as_real();
  if (!given || *given < range.min || *given > range.max) return expected(*node, at(key), real_range(range));
  value = *given;
  capture(key, value);
}

void Reader::optional_real(std::string_view key, std::optional<double>& value, RealRange range, std::string_view) {
  value.reset();
  const Json* node = find(key);
  if (node == nullptr) return;
  const auto given = node->as_real();
  if (!given || *given < range.min || *given > range.max) return expected(*node, at(key), real_range(range));
  value = given;
}

void Reader::flag(std::string_view key, bool& value, std::string_view) {
  const Json* node = parameter(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kBool)) return expected(*node, at(key), "true or false");
  value = node->boolean;
  capture(key, value);
}

void Reader::choice_index(std::string_view key, std::size_t& index, std::span<const std::string_view> names,
                          std::string_view) {
  const Json* node = parameter(key);
  if (node == nullptr) return;
  const auto at_name = node->is(Json::Type::kString) ? std::ranges::find(names, node->text) : names.end();
  if (at_name == names.end()) {
    const std::vector<std::string> candidates(names.begin(), names.end());
    return error(*node, at(key),
                 fmt::format("expected one of {}; got {}{}", comma_list(quoted(names)), node->describe(),
                             suggestion(node->text, candidates)));
  }
  index = static_cast<std::size_t>(at_name - names.begin());
  capture(key, node->text);
}

void Reader::group(std::string_view key, std::string_view, const std::function<void(ParamVisitor&)>& describe_fields) {
  const Json* node = parameter(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kObject)) return expected(*node, at(key), "an object");
  Reader inner(session_, *node, at(key));
  inner.all_required_ = all_required_;
  inner.captured_ = captured_;
  inner.capture_prefix_ = fmt::format("{}{}.", capture_prefix_, key);
  describe_fields(inner);
  inner.finish();
}

// ---- texts and structure -------------------------------------------------------------------------------------

void Reader::name(std::string_view key, std::string& value, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kString) || !is_name(node->text)) {
    return expected(*node, at(key), "a name (a letter or \"_\", then letters, digits, \"_\" or \"-\"; at most 64)");
  }
  value = node->text;
}

void Reader::text(std::string_view key, std::string& value, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kString)) return expected(*node, at(key), "a text");
  value = node->text;
}

void Reader::texts(std::string_view key, std::vector<std::string>& value, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kArray)) return expected(*node, at(key), "an array of texts");
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const Json& item = node->items[i];
    if (!item.is(Json::Type::kString)) return expected(item, child_pointer(at(key), i), "a text");
    value.push_back(item.text);
  }
}

void Reader::word(std::string_view key, std::string_view word, bool, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr || (node->is(Json::Type::kString) && node->text == word)) return;
  expected(*node, at(key), fmt::format("\"{}\"", word));
}

void Reader::any_value(std::string_view key, Json& value, std::string_view) {
  if (const Json* node = find(key); node != nullptr) value = *node;
}

void Reader::object(std::string_view key, std::string_view,
                    const std::function<void(ScenarioVisitor&)>& describe_fields) {
  if (const Json* node = find(key); node != nullptr) read(session_, *node, at(key), describe_fields);
}

void Reader::visit_list(std::string_view key, ListRule rule, std::string_view, const ListAccess& items) {
  const Json* node = find(key);
  if (node == nullptr) return;
  const std::string pointer = at(key);
  if (!node->is(Json::Type::kArray)) return expected(*node, pointer, "an array");
  if (node->items.size() < rule.least || node->items.size() > rule.most) {
    return error(*node, pointer,
                 fmt::format("expected from {} to {} items; got {}", rule.least, rule.most, node->items.size()));
  }
  items.resize(node->items.size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const Json& item = node->items[i];
    read(session_, item, child_pointer(pointer, i), [&](ScenarioVisitor& v) { items.describe(i, v); });
    const Json* name = rule.named ? item.find("name") : nullptr;
    if (name != nullptr && name->is(Json::Type::kString) && !names.insert(name->text).second) {
      error(*name, child_pointer(child_pointer(pointer, i), "name"),
            fmt::format("the name {} is taken by another item of {}", name->describe(), pointer));
    }
  }
}

// ---- axes and points ---------------------------------------------------------------------------------------

void Reader::axes(std::string_view key, std::vector<Axis>& value, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kObject)) return expected(*node, at(key), "an object of value lists by dotted path");
  if (node->members.size() > kMostAxes) {
    return error(*node, at(key), fmt::format("expected at most {} axes; got {}", kMostAxes, node->members.size()));
  }
  std::size_t points = 1;
  for (const Json::Member& member : node->members) {
    const std::string pointer = child_pointer(at(key), member.key);
    if (!member.value.is(Json::Type::kArray) || member.value.items.empty()) {
      expected(member.value, pointer, "an array of at least one value");
      continue;
    }
    const std::vector<Json>& values = member.value.items;
    points = values.size() > kMostPoints / points ? kMostPoints + 1 : points * values.size();
    value.push_back({member.key, values});
  }
  if (points > kMostPoints) {
    value.clear();
    error(*node, at(key), fmt::format("more than {} points (the product of the numbers of values)", kMostPoints));
  }
}

void Reader::point(std::string_view key, Point& value, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kObject)) return expected(*node, at(key), "an object of values by dotted path");
  for (const Json::Member& member : node->members) value.push_back({member.key, member.value});
}

}  // namespace vcpusim
