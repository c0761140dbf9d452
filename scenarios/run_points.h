// Runs a scenario at each of its points, with each seed, on some threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/simulation.h"
#include "scenarios/scenario.h"

namespace vcpusim {

struct RunRecord {
  Point point;
  std::uint64_t seed = 0;
  std::size_t replication = 0;
  RunResult result;
};

struct RunPlan {
  ScenarioDocument document;
  std::vector<Setting> settings;
  std::vector<Point> points;     // REQUIRES that the scenario loads at each of them (check_points)
  std::uint64_t first_seed = 1;  // replication i has seed first_seed + i
  std::size_t replications = 1;
  unsigned threads = 1;  // one run is one thread
  // Makes the sink for one run, numbered from 0 in the order of the records; may be empty, and may return null.
  // REQUIRES threads == 1 if not empty.
  std::function<std::unique_ptr<TraceSink>(std::size_t run, const Point& point, std::uint64_t seed)> trace;
};

struct RunOutcome {
  std::vector<RunRecord> records;  // by point, then replication, whatever the number of threads
  // A broken invariant: point, seed and what happened. No further run was started after it.
  std::vector<std::string> faults;
  bool interrupted = false;
};

// `interrupt` may be set from a signal handler. The call then returns within a moment with the runs that are done,
// while threads still work on the others: the caller is expected to end the process with std::_Exit.
// `progress(done, all)` is called now and then, from the calling thread.
RunOutcome run_points(RunPlan plan, const std::atomic<bool>& interrupt,
                      const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace vcpusim
