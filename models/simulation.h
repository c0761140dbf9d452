// One run of one configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/config.h"
#include "sim/trace.h"

namespace vcpusim {

using MetricValue = std::variant<std::int64_t, double, std::string>;
// Dotted path and value, in the order of the reference documentation.
using Metrics = std::vector<std::pair<std::string, MetricValue>>;

struct RunResult {
  enum class Ended { kAtStop, kWorkloadsDone, kAtMost, kDeadlock };
  Ended ended = Ended::kAtStop;
  std::string why;      // for kDeadlock: who waits for what
  Duration sim_time{};  // simulated time from the start to the end of the run, the warm-up included
  Metrics metrics;
};

class Simulation {
 public:
  // `trace` may be null; it never changes what happens. `config` must outlive the simulation.
  // Throws InvariantError if the configuration names something that does not exist.
  Simulation(const SimulationConfig& config, TraceSink* trace);
  ~Simulation();

  // Runs to the end. Call once. Throws InvariantError if the simulator is at fault.
  RunResult run();

 private:
  class World;
  std::unique_ptr<World> world_;
};

}  // namespace vcpusim
