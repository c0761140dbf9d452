#include "scenarios/library.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include "models/simulation.h"
#include "scenarios/scenario.h"
#include "sim/check.h"

namespace vcpusim {

std::vector<LibraryEntry> scenarios_below(const std::filesystem::path& folder) {
  std::vector<LibraryEntry> entries;
  std::error_code problem;
  for (std::filesystem::recursive_directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem)) {
    if (at->path().extension() != ".json") continue;
    InputErrors errors;
    const auto document = ScenarioDocument::open(at->path(), errors);
    if (!document || !document->is_scenario()) continue;
    const auto scenario = document->load({}, errors);
    entries.push_back({at->path(), scenario ? scenario->simulation.name : at->path().stem().string(),
                       scenario ? scenario->summary : "(not valid: see vcpusim validate)"});
  }
  std::ranges::sort(entries, {}, &LibraryEntry::file);
  return entries;
}

std::vector<std::string> metric_paths() {
  constexpr std::string_view kSmallest = R"({"schema": "vcpusim.scenario/1", "name": "smallest",
      "host": {"machine": "ideal", "pcpus": 1}, "stop": {"when": "workloads_done", "at_most": "1s"},
      "vms": [{"name": "VM", "native": true, "vcpus": 1, "guest": {"locks": {"LOCK": "ticket"}},
               "tasks": [{"name": "TASK", "program": [{"lock": "LOCK", "hold": "1us"}]}]}]})";
  InputErrors errors;
  const auto document = ScenarioDocument::parse(kSmallest, "smallest", "", errors);
  const auto scenario = document ? document->load({}, errors) : std::nullopt;
  SIM_CHECK(scenario.has_value(), errors.lines().front());
  std::vector<std::string> paths;
  for (const auto& [path, value] : Simulation(scenario->simulation, nullptr).run().metrics) paths.push_back(path);
  return paths;
}

}  // namespace vcpusim
