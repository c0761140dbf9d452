#include "scenarios/printer.h"

#include <algorithm>

#include "models/operation.h"
#include "scenarios/points.h"
#include "scenarios/sha256.h"
#include "scenarios/text_forms.h"

namespace vcpusim {

Printer::Output Printer::print(const std::function<void(ScenarioVisitor&)>& describe) {
  Printer printer;
  describe(printer);
  return printer.finish();
}

// An optional key that holds its default says nothing, unless one of a group has to be there.
Printer::Output Printer::finish() {
  for (const auto& keys : one_of_) {
    if (std::ranges::any_of(keys, [this](const std::string& key) { return out_.contains(key); })) continue;
    const auto first = std::ranges::find(unset_, keys.front(), &std::pair<std::string, Output>::first);
    if (first != unset_.end()) out_[first->first] = first->second;
  }
  return std::move(out_);
}

void Printer::exactly_one_of(std::span<const std::string_view> keys) { one_of_.emplace_back(keys.begin(), keys.end()); }

// ---- parameters --------------------------------------------------------------------------------------------

template <class T>
T Printer::effective(std::string_view key, const T& fallback) const {
  if (kind_ == nullptr) return fallback;
  const auto given = kind_->params.find(prefix_ + std::string(key));
  return given == kind_->params.end() ? fallback : std::get<T>(given->second);
}

void Printer::duration(std::string_view key, Duration& value, DurationRange, std::string_view) {
  put(key, format_duration(effective(key, value)));
}
void Printer::cycles(std::string_view key, Cycles& value, IntegerRange, std::string_view) {
  put(key, format_cycles(effective(key, value)));
}
void Printer::integer(std::string_view key, std::int64_t& value, IntegerRange, std::string_view) {
  put(key, effective(key, value));
}
void Printer::real(std::string_view key, double& value, RealRange, std::string_view) {
  put(key, effective(key, value));
}
void Printer::flag(std::string_view key, bool& value, std::string_view) { put(key, effective(key, value)); }
void Printer::choice_index(std::string_view key, std::size_t& index, std::span<const std::string_view> names,
                           std::string_view) {
  put(key, effective(key, std::string(names[index])));
}

void Printer::group(std::string_view key, std::string_view, const std::function<void(ParamVisitor&)>& describe_fields) {
  Printer inner;
  inner.kind_ = kind_;
  inner.prefix_ = prefix_ + std::string(key) + ".";
  describe_fields(inner);
  put(key, inner.finish());
}

// ---- programs ----------------------------------------------------------------------------------------------

void Printer::program(std::string_view key, TaskConfig& task, GuestConfig& guest, std::string_view) {
  guest_ = &guest;
  put(key, print_program(task.program));
  guest_ = nullptr;
}

Printer::Output Printer::print_program(const Program& program) {
  Output operations = Output::array();
  for (const auto& operation : program) {
    Printer inner;
    inner.guest_ = guest_;
    const_cast<Operation&>(*operation).describe(inner);  // a Printer writes to nothing
    operations.push_back(inner.finish());
  }
  return operations;
}

void Printer::body(std::string_view key, Program& value, std::string_view) { put(key, print_program(value)); }

void Printer::optional_body(std::string_view key, Program& value, std::string_view) {
  if (!value.empty()) put(key, print_program(value));
}

void Printer::branches(std::string_view key, std::vector<Branch>& value, std::string_view) {
  Output branches = Output::array();
  for (const Branch& branch : value)
    branches.push_back({{"weight", branch.weight}, {"do", print_program(branch.body)}});
  put(key, std::move(branches));
}

void Printer::repetitions(std::string_view key, std::int64_t& value, std::string_view) {
  put(key, value == kForever ? Output("forever") : Output(value));
}

void Printer::lock(std::string_view key, std::size_t& index, std::string_view) { put(key, guest_->locks[index].name); }

void Printer::barrier(std::string_view key, std::size_t& index, std::string_view) {
  put(key, guest_->barriers[index].name);
}

namespace {

nlohmann::ordered_json distribution_json(const Distribution& d) {
  using Output = nlohmann::ordered_json;
  const std::string location = format_duration(d.location());
  switch (d.shape()) {
    case Distribution::Shape::kConstant:
      return location;
    case Distribution::Shape::kExponential:
      return Output{{"exponential", location}};
    case Distribution::Shape::kUniform:
      return Output{{"uniform", Output::array({location, format_duration(d.spread())})}};
    case Distribution::Shape::kNormal:
      return Output{{"normal", {{"mean", location}, {"stddev", format_duration(d.spread())}}}};
    case Distribution::Shape::kLognormal:
      return Output{{"lognormal", {{"median", location}, {"sigma", d.parameter()}}}};
    case Distribution::Shape::kPareto:
      return Output{{"pareto", {{"scale", location}, {"shape", d.parameter()}}}};
    case Distribution::Shape::kEmpirical:
      break;
  }
  Output values = Output::array();
  for (const Duration value : d.values()) values.push_back(format_duration(value));
  return Output{{"empirical", std::move(values)}};
}

}  // namespace

void Printer::distribution(std::string_view key, Distribution& value, std::string_view) {
  put(key, distribution_json(value));
}

void Printer::optional_distribution(std::string_view key, Distribution& value, std::string_view) {
  const bool is_default = value.is_constant() && value.location() == Duration::zero();
  if (is_default) {
    unset_.emplace_back(key, distribution_json(value));
  } else {
    put(key, distribution_json(value));
  }
}

// ---- structure ---------------------------------------------------------------------------------------------

void Printer::name(std::string_view key, std::string& value, std::string_view) {
  if (!value.empty()) put(key, value);
}

void Printer::text(std::string_view key, std::string& value, std::string_view) {
  if (!value.empty()) put(key, value);
}

void Printer::texts(std::string_view key, std::vector<std::string>& value, std::string_view) {
  if (!value.empty()) put(key, value);
}

void Printer::word(std::string_view key, std::string_view word, bool present, std::string_view) {
  if (present) put(key, word);
}

void Printer::optional_duration(std::string_view key, std::optional<Duration>& value, DurationRange, std::string_view) {
  if (value) put(key, format_duration(*value));
}

void Printer::optional_real(std::string_view key, std::optional<double>& value, RealRange, std::string_view) {
  if (value) put(key, *value);
}

void Printer::any_value(std::string_view key, Json& value, std::string_view) { put(key, to_library_json(value)); }

void Printer::object(std::string_view key, std::string_view,
                     const std::function<void(ScenarioVisitor&)>& describe_fields) {
  put(key, print(describe_fields));
}

void Printer::visit_list(std::string_view key, ListRule rule, std::string_view, const ListAccess& items) {
  if (items.size() == 0 && !rule.named) return;
  Output list = Output::array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    list.push_back(print([&](ScenarioVisitor& v) { items.describe(i, v); }));
  }
  put(key, std::move(list));
}

// A preset with all its fields spelled out: it says where it came from and does not depend on it.
void Printer::machine(std::string_view key, MachineConfig& value, std::string_view) {
  Printer inner;
  if (value.name != kCustomMachine) inner.put("preset", value.name);
  value.describe(inner);
  put(key, inner.finish());
}

Printer::Output Printer::print_kind(const Kind& kind, const KindFamily& family) {
  Printer inner;
  inner.put("kind", kind.name);
  inner.kind_ = &kind;
  if (const auto* entry = family.find(kind.name); entry != nullptr) entry->describe(inner);
  return inner.finish();
}

void Printer::locks(std::string_view key, std::vector<LockConfig>& value, const KindFamily& family, std::string_view) {
  Output locks = Output::object();
  for (const LockConfig& lock : value) locks[lock.name] = print_kind(lock.kind, family);
  put(key, std::move(locks));
}

void Printer::kind(std::string_view key, Kind& value, const KindFamily& family, std::string_view) {
  put(key, print_kind(value, family));
}

void Printer::switches(std::string_view key, std::map<std::string, Kind>& on, const KindFamily& family,
                       std::string_view) {
  Output all = Output::object();
  for (const KindFamily::Entry& entry : family.entries) {
    const auto kind = on.find(std::string(entry.name));
    if (kind == on.end()) {
      all[std::string(entry.name)] = false;
      continue;
    }
    Printer inner;
    inner.kind_ = &kind->second;
    entry.describe(inner);
    all[std::string(entry.name)] = inner.finish();
  }
  put(key, std::move(all));
}

void Printer::affinity(std::string_view key, AffinityConfig& value, std::string_view) {
  switch (value.rule) {
    case AffinityConfig::Rule::kAny:
      return put(key, "any");
    case AffinityConfig::Rule::kOneToOne:
      return put(key, "one_to_one");
    case AffinityConfig::Rule::kLists:
      return put(key, value.lists);
  }
}

void Printer::axes(std::string_view key, std::vector<Axis>& value, std::string_view) {
  if (value.empty()) return;
  Output axes = Output::object();
  for (const Axis& axis : value) {
    Output values = Output::array();
    for (const Json& json : axis.values) values.push_back(to_library_json(json));
    axes[axis.path] = std::move(values);
  }
  put(key, std::move(axes));
}

void Printer::point(std::string_view key, Point& value, std::string_view) {
  if (!value.empty()) put(key, point_json(value));
}

// ---- whole scenarios ---------------------------------------------------------------------------------------

nlohmann::ordered_json to_library_json(const Json& json) {
  using Output = nlohmann::ordered_json;
  switch (json.type) {
    case Json::Type::kNull:
      return nullptr;
    case Json::Type::kBool:
      return json.boolean;
    case Json::Type::kNumber:
      if (const auto integer = json.as_integer()) return *integer;
      return *json.as_real();
    case Json::Type::kString:
      return json.text;
    case Json::Type::kArray:
      break;
    case Json::Type::kObject: {
      Output object = Output::object();
      for (const Json::Member& member : json.members) object[member.key] = to_library_json(member.value);
      return object;
    }
  }
  Output array = Output::array();
  for (const Json& item : json.items) array.push_back(to_library_json(item));
  return array;
}

nlohmann::ordered_json point_json(const Point& point) {
  auto object = nlohmann::ordered_json::object();
  for (const Coordinate& coordinate : point) object[coordinate.path] = to_library_json(coordinate.value);
  return object;
}

std::string value_text(const Json& value) {
  return value.is(Json::Type::kString) ? value.text : to_library_json(value).dump();
}

std::string point_text(const Point& point) { return point_json(point).dump(); }

nlohmann::ordered_json resolved_json(const Scenario& scenario) {
  return Printer::print([&](ScenarioVisitor& v) { describe(const_cast<Scenario&>(scenario), v); });
}

std::string resolved_text(const Scenario& scenario) { return resolved_json(scenario).dump(2) + "\n"; }

std::string digest(const Scenario& scenario) { return sha256_hex(resolved_json(scenario).dump()); }

std::string config_digest(const SimulationConfig& config) {
  Scenario bare;
  bare.simulation = config;
  bare.simulation.seed = 0;
  return digest(bare).substr(0, 16);
}

}  // namespace vcpusim
