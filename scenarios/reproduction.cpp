#include "scenarios/reproduction.h"

#include <algorithm>

#include "scenarios/printer.h"
#include "scenarios/version.h"

namespace vcpusim {
namespace {

using Output = nlohmann::ordered_json;

template <class T>
void put(Output& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

void put(Output& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

Output figure_json(const FigureResult& result) {
  const PublishedFigure& f = *result.figure;
  Output figure = Output::object();
  put(figure, "what", f.what);
  figure["metric"] = f.metric;
  put(figure, "over", f.over);
  figure["point"] = point_json(f.point);
  if (!f.relative_to.empty()) figure["relative_to"] = point_json(f.relative_to);
  put(figure, "unit", f.unit);
  put(figure, "published", f.value);
  put(figure, "tolerance", f.tolerance);
  put(figure, "at_least", f.at_least);
  put(figure, "at_most", f.at_most);
  figure["fitted"] = f.fitted;
  figure["simulated"] = result.simulated ? summary_json(*result.simulated) : Output();
  figure["error"] = result.error ? Output(*result.error) : Output();
  figure["verdict"] = verdict(result);
  return figure;
}

std::size_t leaves(const Json& json) {
  std::size_t count = 0;
  for (const Json& item : json.items) count += leaves(item);
  for (const Json::Member& member : json.members) count += leaves(member.value);
  return json.is(Json::Type::kArray) || json.is(Json::Type::kObject) ? count : 1;
}

}  // namespace

std::vector<Setting> size_settings(const Scenario& scenario, bool full) {
  std::vector<Setting> settings;
  if (full) return settings;
  for (const Coordinate& c : scenario.quick.settings) settings.push_back({c.path, c.value});
  return settings;
}

Reproduction judge(Scenario scenario, bool full, std::size_t replications, std::span<const RunRecord> records) {
  Reproduction result{std::move(scenario), full, replications, {}};
  result.figures = compare_figures(result.scenario, records, full ? 1 : result.scenario.quick.scale);
  return result;
}

std::string_view verdict(const FigureResult& figure) {
  if (!figure.run) return "not run";
  if (!figure.reproduced) return "";
  return *figure.reproduced ? "reproduced" : "missed";
}

bool missed(const Reproduction& reproduction) {
  return std::ranges::any_of(reproduction.figures,
                             [](const FigureResult& f) { return f.run && f.reproduced == false; });
}

std::string reproductions_text(std::span<const Reproduction> reproductions) {
  Output scenarios = Output::array();
  for (const Reproduction& r : reproductions) {
    Output figures = Output::array();
    for (const FigureResult& figure : r.figures) figures.push_back(figure_json(figure));
    scenarios.push_back({{"name", r.scenario.simulation.name},
                         {"digest", digest(r.scenario)},
                         {"full", r.full},
                         {"replications", r.replications},
                         {"figures", std::move(figures)}});
  }
  const Output all{{"schema", "vcpusim.reproduction/1"}, {"vcpusim", version()}, {"scenarios", std::move(scenarios)}};
  return all.dump(1) + "\n";
}

std::size_t fitted_numbers(const Scenario& scenario) {
  std::size_t numbers = 0;
  for (const Calibration& calibration : scenario.calibrated) numbers += leaves(calibration.value);
  return numbers;
}

}  // namespace vcpusim
