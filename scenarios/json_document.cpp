#include "scenarios/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "scenarios/json_tokens.h"

namespace vcpusim {
namespace {

// Reads bytes and lets the tree builder see how far the parser has come.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* consumed_;
};

// Builds the tree from the parser's events.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, std::shared_ptr<const std::string> source, InputErrors& errors)
      : text_(text), source_(std::move(source)), errors_(errors) {}

  std::size_t* consumed() { return &consumed_; }
  Json take() { return std::move(root_); }

  bool null() override { return scalar(Json::Type::kNull, 4); }
  bool boolean(bool value) override {
    if (!scalar(Json::Type::kBool, value ? 4 : 5)) return false;
    last_->boolean = value;
    return true;
  }
  bool number_integer(number_integer_t) override { return number(); }
  bool number_unsigned(number_unsigned_t) override { return number(); }
  bool number_float(number_float_t, const string_t&) override { return number(); }
  bool string(string_t& value) override {
    if (!scalar(Json::Type::kString, consumed_ - string_start(text_, consumed_))) return false;
    last_->text = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::Type::kObject); }
  bool end_object() override {
    refuse_duplicate_keys();
    return close();
  }
  bool start_array(std::size_t) override { return open(Json::Type::kArray); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    open_.back()->members.push_back({std::move(value), place_of(string_start(text_, consumed_)), {}});
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    errors_.add(place_of(syntax_error_offset(text_, consumed_, e.what())), pointer(), syntax_error_reason(e.what()));
    return false;
  }

 private:
  bool scalar(Json::Type type, std::size_t length) { return add(type, consumed_ - length); }

  bool number() {
    const auto [start, end] = number_range(text_, consumed_);
    if (!add(Json::Type::kNumber, start)) return false;
    last_->text = text_.substr(start, end - start);
    return true;
  }

  void refuse_duplicate_keys() {
    const std::vector<Json::Member>& members = open_.back()->members;
    std::vector<const Json::Member*> sorted;
    for (const Json::Member& m : members) sorted.push_back(&m);
    std::ranges::stable_sort(sorted, {}, &Json::Member::key);
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->key != sorted[i - 1]->key) continue;
      errors_.add(sorted[i]->place, child_pointer(pointer(), sorted[i]->key), "the key stands twice in this object");
    }
  }

  bool open(Json::Type type) {
    if (open_.size() >= kDeepestJson) {
      errors_.add(place_of(consumed_ - 1), pointer(), fmt::format("nested deeper than {} levels", kDeepestJson));
      return false;
    }
    if (!add(type, consumed_ - 1)) return false;
    open_.push_back(last_);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // The parents of an open value do not grow before it is closed, so that pointers to it stay valid.
  bool add(Json::Type type, std::size_t start) {
    if (++values_ > kMostJsonValues) {
      errors_.add(place_of(start), pointer(), fmt::format("more than {} values in one file", kMostJsonValues));
      return false;
    }
    if (open_.empty()) {
      last_ = &root_;
    } else if (open_.back()->is(Json::Type::kArray)) {
      last_ = &open_.back()->items.emplace_back();
    } else {
      last_ = &open_.back()->members.back().value;
    }
    last_->type = type;
    last_->place = place_of(start);
    return true;
  }

  // Offsets are asked for in rising order but for a token's length, so that counting lines on the way is linear.
  Place place_of(std::size_t offset) {
    while (line_start_ > offset) {  // an error that points before a line break just read
      line_start_ = line_start_ < 2 ? 0 : text_.rfind('\n', line_start_ - 2) + 1;
      --line_;
    }
    counted_ = std::max(counted_, line_start_);
    for (; counted_ < offset; ++counted_) {
      if (text_[counted_] == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    }
    return {source_, line_, static_cast<std::uint32_t>(offset - line_start_ + 1)};
  }

  std::string pointer() const {
    std::string pointer;
    for (std::size_t depth = 0; depth + 1 < open_.size(); ++depth) {
      const Json& parent = *open_[depth];
      pointer = parent.is(Json::Type::kArray) ? child_pointer(pointer, parent.items.size() - 1)
                                              : child_pointer(pointer, parent.members.back().key);
    }
    return pointer;
  }

  const std::string_view text_;
  const std::shared_ptr<const std::string> source_;
  InputErrors& errors_;
  std::size_t consumed_ = 0;  // bytes that the parser has read
  Json root_;
  std::vector<Json*> open_;  // from the root to the innermost array or object
  Json* last_ = nullptr;
  std::size_t values_ = 0;

  std::size_t counted_ = 0;  // line breaks before this offset are in line_
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace

Json Json::string(std::string value, Place place) {
  Json json;
  json.type = Type::kString;
  json.text = std::move(value);
  json.place = std::move(place);
  return json;
}

Json Json::object(Place place) {
  Json json;
  json.type = Type::kObject;
  json.place = std::move(place);
  return json;
}

const Json* Json::find(std::string_view key) const {
  const auto at = std::ranges::find(members, key, &Member::key);
  return at == members.end() ? nullptr : &at->value;
}

Json* Json::find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }

std::optional<std::int64_t> Json::as_integer() const {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  if (type != Type::kNumber) return {};
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<double> Json::as_real() const {
  double value = 0;
  if (type != Type::kNumber) return {};
  std::from_chars(text.data(), text.data() + text.size(), value);  // the parser has checked form and size
  return value;
}

std::string Json::describe() const {
  constexpr std::size_t kLongest = 60;
  switch (type) {
    case Type::kNull:
      return "null";
    case Type::kBool:
      return boolean ? "true" : "false";
    case Type::kNumber:
      return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
    case Type::kArray:
      return items.empty() ? "an empty array" : fmt::format("an array of {}", items.size());
    case Type::kObject:
      return "an object";
    case Type::kString:
      break;
  }
  std::size_t cut = text.size();
  if (cut > kLongest) {
    cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // not inside a code point
  }
  return nlohmann::json(text.substr(0, cut)).dump() + (cut < text.size() ? "..." : "");
}

bool same_value(const Json& a, const Json& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case Json::Type::kNull:
      return true;
    case Json::Type::kBool:
      return a.boolean == b.boolean;
    case Json::Type::kNumber:
      return a.text == b.text || a.as_real() == b.as_real();
    case Json::Type::kString:
      return a.text == b.text;
    case Json::Type::kArray:
      return std::ranges::equal(a.items, b.items, same_value);
    case Json::Type::kObject:
      break;
  }
  return a.members.size() == b.members.size() && std::ranges::all_of(a.members, [&](const Json::Member& m) {
           const Json* other = b.find(m.key);
           return other != nullptr && same_value(m.value, *other);
         });
}

std::optional<Json> parse_json(std::string_view text, std::shared_ptr<const std::string> source, InputErrors& errors) {
  const Place start{source, 1, 1};
  if (text.size() > kMostJsonBytes) {
    errors.add(start, "", fmt::format("the text is larger than {} MB", kMostJsonBytes >> 20));
    return {};
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    errors.add(start, "", "the file starts with a byte order mark (expected UTF-8 without one)");
    return {};
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const std::string_view before = text.substr(0, nul);
    const auto line = static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1);
    const auto column = static_cast<std::uint32_t>(nul - (before.rfind('\n') + 1) + 1);
    errors.add(Place{source, line, column}, "", "a NUL byte (expected text in UTF-8)");
    return {};
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    errors.add(start, "", "the file is empty (expected a JSON object)");
    return {};
  }
  TreeBuilder builder(text, std::move(source), errors);
  const CountingIterator begin(text.data(), builder.consumed());
  const CountingIterator end(text.data() + text.size(), builder.consumed());
  if (!nlohmann::json::sax_parse(begin, end, &builder)) return {};
  return builder.take();
}

std::string child_pointer(std::string_view pointer, std::string_view key) {
  std::string child(pointer);
  child += '/';
  for (const char c : key) {
    if (c == '~') {
      child += "~0";
    } else if (c == '/') {
      child += "~1";
    } else {
      child += c;
    }
  }
  return child;
}

std::string child_pointer(std::string_view pointer, std::size_t index) { return fmt::format("{}/{}", pointer, index); }

}  // namespace vcpusim
