#include "scenarios/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <sstream>
#include <utility>

#include "scenarios/dotted_path.h"
#include "scenarios/files.h"
#include "scenarios/reader.h"
#include "scenarios/scenario_checks.h"

namespace vcpusim {
namespace {

// The value at `pointer` or, where there is none, what would hold it.
const Json& nearest_at(const Json& root, std::string_view pointer) {
  const Json* at = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view part = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(part.size());
    const Json* next = nullptr;
    if (at->is(Json::Type::kArray)) {
      next = &at->items[std::stoul(std::string(part))];
    } else {
      for (const Json::Member& member : at->members) {
        if (child_pointer("", member.key).substr(1) == part) next = &member.value;
      }
    }
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

std::vector<Axis> written_axes(const Json& root) {
  std::vector<Axis> axes;
  if (const Json* vary = root.find("vary"); vary != nullptr) {
    for (const Json::Member& member : vary->members) axes.push_back({member.key, member.value.items});
  }
  return axes;
}

void put_axis(Json& root, const Axis& axis) {
  const Place place = axis.values.front().place;
  Json values;
  values.type = Json::Type::kArray;
  values.items = axis.values;
  values.place = place;
  if (root.find("vary") == nullptr) root.members.push_back({"vary", place, Json::object(place)});
  Json& vary = *root.find("vary");
  if (Json* present = vary.find(axis.path)) {
    *present = std::move(values);
  } else {
    vary.members.push_back({axis.path, place, std::move(values)});
  }
}

// "...locks.kernel" and "...locks.kernel.kind" name the same thing where the value is a bare name.
std::string_view without_kind(std::string_view path) {
  for (const std::string_view last : {".kind", ".preset"}) {
    if (path.ends_with(last)) return path.substr(0, path.size() - last.size());
  }
  return path;
}

constexpr std::string_view kOvercommit = "overcommit";

void apply(Json& root, const Setting& setting, InputErrors& errors) {
  const std::string_view path = setting.path == kOvercommit ? "overcommit.ratio" : std::string_view(setting.path);
  if (!set_path(root, path, setting.value, errors)) return;
  Json* vary = root.find("vary");
  if (vary == nullptr) return;
  for (Json::Member& axis : vary->members) {
    const bool same = axis.key == setting.path ||
                      (setting.value.is(Json::Type::kString) && without_kind(axis.key) == without_kind(setting.path));
    if (same && axis.value.is(Json::Type::kArray)) axis.value.items = {setting.value};
  }
}

// Adds copies or takes pCPUs away until the ratio is as close as it can be.
void reach_overcommit(Scenario& scenario) {
  const Overcommit& overcommit = scenario.overcommit;
  if (!overcommit.ratio) return;
  SimulationConfig& simulation = scenario.simulation;
  std::int64_t others = 0;
  VmConfig* grown = nullptr;
  for (VmConfig& vm : simulation.vms) {
    if (overcommit.by == Overcommit::By::kCopies && vm.name == overcommit.vm) {
      grown = &vm;
    } else {
      others += vm.vcpus * vm.copies;
    }
  }
  if (overcommit.by == Overcommit::By::kPcpus) {
    simulation.host.pcpus = std::llround(static_cast<double>(others) / *overcommit.ratio);
  } else if (grown != nullptr) {
    const double wanted = *overcommit.ratio * static_cast<double>(simulation.host.pcpus) - static_cast<double>(others);
    grown->copies = std::llround(wanted / static_cast<double>(grown->vcpus));
  }
}

}  // namespace

Setting make_setting(std::string_view origin, std::string_view path, std::string_view text) {
  InputErrors no_json;
  auto value = parse_json(text, nullptr, no_json);
  if (!value || !no_json.empty()) value = Json::string(std::string(text), {});
  // Whatever is wrong with the value is wrong with the option, not with a line of a file.
  const Place place{std::make_shared<const std::string>(origin), 0, 0};
  const std::function<void(Json&)> put_place = [&](Json& json) {
    json.place = place;
    for (Json& item : json.items) put_place(item);
    for (Json::Member& member : json.members) {
      member.place = place;
      put_place(member.value);
    }
  };
  put_place(*value);
  return {std::string(path), std::move(*value)};
}

std::optional<Setting> parse_setting(std::string_view option, std::string_view assignment, InputErrors& errors) {
  const std::string origin = fmt::format("{} {}", option, assignment);
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    errors.add(origin, "expected PATH=VALUE");
    return {};
  }
  return make_setting(origin, assignment.substr(0, equals), assignment.substr(equals + 1));
}

std::optional<std::vector<MetricTerm>> metric_terms(std::string_view sum) {
  std::istringstream words{std::string(sum)};
  std::vector<MetricTerm> terms;
  double sign = 1;
  for (;;) {
    MetricTerm term{sign, ""};
    if (!(words >> term.path)) return {};
    std::string next;
    words >> next;
    if (next == "*") {
      double factor = 0;
      const char* const end = term.path.data() + term.path.size();
      const auto [stop, problem] = std::from_chars(term.path.data(), end, factor, std::chars_format::fixed);
      if (problem != std::errc() || stop != end || !(words >> term.path)) return {};
      term.factor *= factor;
      next.clear();
      words >> next;
    }
    terms.push_back(std::move(term));
    if (next.empty()) return terms;
    if (next != "+" && next != "-") return {};
    sign = next == "+" ? 1 : -1;
  }
}

std::optional<ScenarioDocument> ScenarioDocument::open(const std::filesystem::path& file, InputErrors& errors) {
  const FileText text = read_file(file, kMostJsonBytes);
  if (!text.problem.empty()) {
    errors.add_unreadable(file.string(), text.problem);
    return {};
  }
  if (text.too_large) {
    const Place start{std::make_shared<const std::string>(file.string()), 1, 1};
    errors.add(start, "", fmt::format("the file is larger than {} MB", kMostJsonBytes >> 20));
    return {};
  }
  return parse(text.text, file.string(), file.parent_path(), errors);
}

std::optional<ScenarioDocument> ScenarioDocument::parse(std::string_view text, std::string_view name,
                                                        const std::filesystem::path& folder, InputErrors& errors) {
  auto root = parse_json(text, std::make_shared<const std::string>(name), errors);
  if (!root) return {};
  return ScenarioDocument(std::move(*root), folder);
}

bool ScenarioDocument::is_scenario() const {
  const Json* schema = root_.find("schema");
  return schema != nullptr && schema->is(Json::Type::kString) && schema->text.starts_with("vcpusim.scenario/");
}

std::vector<Axis> ScenarioDocument::axes() const { return written_axes(root_); }

void ScenarioDocument::vary(std::vector<Axis> axes) {
  axes_.insert(axes_.end(), std::make_move_iterator(axes.begin()), std::make_move_iterator(axes.end()));
}

std::optional<Scenario> ScenarioDocument::load(std::span<const Setting> settings, InputErrors& errors) const {
  InputErrors found;
  Json root = root_;
  std::vector<Axis> written = written_axes(root);  // expectations may be of values that are not run
  for (const Axis& axis : axes_) {
    put_axis(root, axis);
    const auto same = std::ranges::find(written, axis.path, &Axis::path);
    if (same == written.end()) {
      written.push_back(axis);
    } else {
      same->values.insert(same->values.end(), axis.values.begin(), axis.values.end());
    }
  }
  for (const Setting& setting : settings) apply(root, setting, found);

  Scenario scenario;
  ReadSession session{.errors = found, .folder = folder_};
  Reader::read(session, root, "", [&](ScenarioVisitor& v) { describe(scenario, v); });

  if (found.empty()) reach_overcommit(scenario);
  // What is wrong between values can only be told once each of them is right.
  if (found.empty()) {
    const Report report = [&](const std::string& pointer, const std::string& message) {
      found.add(nearest_at(root, pointer).place, pointer, message);
    };
    check(scenario, written, report);
    if (settings.empty() && axes_.empty() && found.empty()) check_calibrations(scenario, report);
  }
  errors.add_all(found);
  return found.empty() ? std::optional(std::move(scenario)) : std::nullopt;
}

}  // namespace vcpusim
