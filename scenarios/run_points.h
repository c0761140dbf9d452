// Runs a scenario at each of its points, with each seed, on some threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/simulation.h"
#include "scenarios/run_schedule.h"
#include "scenarios/scenario.h"

namespace vcpusim {

struct RunRecord {
  Point point;
  std::uint64_t seed = 0;
  std::size_t replication = 0;
  RunResult result;
  std::string config{};  // config_digest: with the same seed and models, equal results
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
  std::optional<UntilInterval> until{};
  std::vector<KnownRun> known{};  // is not run again
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

// `progress(done, all)` is called now and then, from the calling thread.
using RunProgress = std::function<void(std::size_t done, std::size_t all)>;

// `interrupt` may be set from a signal handler. The call then returns within a moment with the runs that are done,
// while threads still work on the others: the caller is expected to end the process with std::_Exit.
RunOutcome run_points(RunPlan plan, const std::atomic<bool>& interrupt, const RunProgress& progress);

// As run_points, for more runs than memory holds records.
struct StreamOutcome {
  std::vector<RunFault> faults;
  std::string problem;   // what the sink threw
  std::size_t done = 0;  // runs, known ones included
  std::size_t all = 0;
  std::vector<std::size_t> replications;  // of each point, as far as they were decided on
  std::vector<std::size_t> wide;          // points where RunPlan::until could not be reached
  bool interrupted = false;
};
// Gets each record as soon as its run has ended, from the thread that made it: several at the same time, and after an
// interrupt even after the call has returned. If it throws, no further run is started.
using RecordSink = std::function<void(const RunTask& task, RunRecord record)>;
StreamOutcome stream_points(RunPlan plan, RecordSink sink, const std::atomic<bool>& interrupt,
                            const RunProgress& progress);

// One run of a plan. Throws what Simulation throws, and std::runtime_error if a program file has changed; `record` then
// has the point and the seed.
void run_one(const RunPlan& plan, const RunTask& task, RunRecord& record);

// The value of RunPlan::until's metric in a record, if there is any.
std::optional<double> until_value(const RunPlan& plan, const RunRecord& record);

}  // namespace vcpusim
