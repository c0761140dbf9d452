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
  std::size_t replications = 1;  // replication i has the seed of the scenario at that point, plus i
  unsigned threads = 1;          // one run is one thread
  // Makes the sink for one run, numbered from 0 in the order of the records; may be empty, and may return null.
  // REQUIRES threads == 1 if not empty.
  std::function<std::unique_ptr<TraceSink>(std::size_t run, const Point& point, std::uint64_t seed)> trace;
};

// A run that could not be finished: an invariant was broken, or there was not enough memory.
struct RunFault {
  Point point;
  std::uint64_t seed;
  std::string what;
};

struct RunOutcome {
  std::vector<RunRecord> records;  // by point, then replication, whatever the number of threads
  std::vector<RunFault> faults;    // no further run was started after the first
  bool interrupted = false;
};

// `interrupt` may be set from a signal handler. The call then returns within a moment with the runs that are done,
// while threads still work on the others: the caller is expected to end the process with std::_Exit.
// `progress(done, all)` is called now and then, from the calling thread.
RunOutcome run_points(RunPlan plan, const std::atomic<bool>& interrupt,
                      const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace vcpusim
