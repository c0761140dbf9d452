#include "scenarios/run_points.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "scenarios/points.h"

namespace vcpusim {
namespace {

// Shared by the threads that run and the one that waits; the last of them frees it.
struct Work {
  explicit Work(RunPlan p) : plan(std::move(p)), records(plan.points.size() * plan.replications) {}

  const RunPlan plan;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t next = 0;   // the first run that nobody has taken
  std::size_t done = 0;   // runs that ended, well or not
  std::size_t taken = 0;  // runs that were started
  bool stop = false;      // take no more
  std::vector<std::optional<RunRecord>> records;
  std::vector<RunFault> faults;
};

// Fills `record` from left to right, so that what is there can be told if the run fails.
void run_one(const RunPlan& plan, std::size_t run, RunRecord& record) {
  record.point = plan.points[run / plan.replications];
  record.replication = run % plan.replications;
  InputErrors errors;
  auto scenario = plan.document.load(settings_at(plan.settings, record.point), errors);
  if (!scenario) throw std::runtime_error(errors.lines().front());  // a program file has changed since it was checked
  scenario->simulation.seed += record.replication;
  record.seed = scenario->simulation.seed;
  const auto sink = plan.trace ? plan.trace(run, record.point, record.seed) : nullptr;
  record.result = Simulation(scenario->simulation, sink.get()).run();
}

void work_on(const std::shared_ptr<Work>& work) {
  for (;;) {
    std::size_t run = 0;
    {
      const std::lock_guard lock(work->mutex);
      if (work->stop || work->next == work->records.size()) return;
      run = work->next++;
      ++work->taken;
    }
    RunRecord record;
    std::optional<std::string> problem;
    try {
      run_one(work->plan, run, record);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    const std::lock_guard lock(work->mutex);
    ++work->done;
    if (!problem) {
      work->records[run] = std::move(record);
    } else {
      work->faults.push_back({std::move(record.point), record.seed, std::move(*problem)});
      work->stop = true;
    }
    work->changed.notify_all();
  }
}

}  // namespace

RunOutcome run_points(RunPlan plan, const std::atomic<bool>& interrupt,
                      const std::function<void(std::size_t done, std::size_t all)>& progress) {
  const auto work = std::make_shared<Work>(std::move(plan));
  const std::size_t all = work->records.size();
  const std::size_t threads = std::clamp<std::size_t>(work->plan.threads, 1, std::max<std::size_t>(all, 1));
  // Detached, because after an interrupt nobody waits for a run that may take minutes.
  for (std::size_t i = 0; i < threads; ++i) std::thread(work_on, work).detach();

  RunOutcome outcome;
  std::unique_lock lock(work->mutex);
  for (;;) {
    const bool ended = work->done == all || (work->stop && work->done == work->taken);
    if (ended) break;
    if (interrupt) {
      work->stop = true;
      outcome.interrupted = true;
      break;
    }
    const std::size_t done = work->done;
    lock.unlock();
    if (progress) progress(done, all);
    lock.lock();
    // A signal handler cannot notify, so look at the flag from time to time.
    work->changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return work->done != done; });
  }
  for (auto& record : work->records) {
    if (record) outcome.records.push_back(std::move(*record));
  }
  outcome.faults = work->faults;
  return outcome;
}

}  // namespace vcpusim
