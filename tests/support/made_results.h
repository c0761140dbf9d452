// Results files with any numbers in them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vcpusim::testing {

struct MadeRun {
  nlohmann::ordered_json point;
  std::uint64_t seed;
  nlohmann::ordered_json metrics;
};

inline std::string made_results(const std::vector<MadeRun>& runs) {
  auto list = nlohmann::ordered_json::array();
  for (const MadeRun& run : runs) {
    list.push_back({{"point", run.point.is_null() ? nlohmann::ordered_json::object() : run.point},
                    {"seed", run.seed},
                    {"replication", 0},
                    {"ended", "at"},
                    {"sim_time_s", 1},
                    {"metrics", run.metrics}});
  }
  const nlohmann::ordered_json all{
      {"schema", "vcpusim.results/1"},
      {"vcpusim", "0.1.0"},
      {"scenario", {{"name", "made"}, {"digest", "d"}, {"resolved", nlohmann::ordered_json::object()}}},
      {"runs", list}};
  return all.dump(1);
}

}  // namespace vcpusim::testing
