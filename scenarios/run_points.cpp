#include "scenarios/run_points.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "scenarios/points.h"
#include "scenarios/results.h"

namespace vcpusim {
namespace {

// Shared by the threads that run and the one that waits; the last of them frees it.
struct Work {
  Work(RunPlan p, RecordSink s)
      : plan(std::move(p)),
        sink(std::move(s)),
        schedule(plan.points.size(), plan.replications, plan.until, plan.known) {}

  const RunPlan plan;
  const RecordSink sink;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  RunSchedule schedule;
  std::size_t running = 0;
  bool stop = false;  // take no more
  std::vector<RunFault> faults;
  std::string problem;  // of the sink
};

void work_on(const std::shared_ptr<Work>& work) {
  std::unique_lock lock(work->mutex);
  for (;;) {
    if (work->stop) return;
    const auto task = work->schedule.next();
    if (!task) {
      if (work->running == 0) {
        work->changed.notify_all();
        return;
      }
      work->changed.wait(lock);  // a point may need more replications
      continue;
    }
    ++work->running;
    lock.unlock();
    RunRecord record;
    std::optional<double> value;
    std::optional<RunFault> fault;
    std::string problem;
    try {
      run_one(work->plan, *task, record);
      value = until_value(work->plan, record);
    } catch (const std::exception& e) {
      fault = {record.point, record.seed, e.what()};
    }
    try {
      if (!fault) work->sink(*task, std::move(record));
    } catch (const std::exception& e) {
      problem = e.what();
    }
    lock.lock();
    --work->running;
    if (fault) work->faults.push_back(std::move(*fault));
    if (!problem.empty()) work->problem = problem;
    if (fault || !problem.empty()) {
      work->stop = true;
    } else {
      work->schedule.done(*task, value);
    }
    work->changed.notify_all();
  }
}

}  // namespace

void run_one(const RunPlan& plan, const RunTask& task, RunRecord& record) {
  record.point = plan.points[task.point];
  record.replication = task.replication;
  InputErrors errors;
  auto scenario = plan.document.load(settings_at(plan.settings, record.point), errors);
  if (!scenario) throw std::runtime_error(errors.lines().front());  // a program file has changed since it was checked
  scenario->simulation.seed += record.replication;
  record.seed = scenario->simulation.seed;
  record.config = config_digest(scenario->simulation);
  const std::size_t run = task.point * plan.replications + task.replication;
  const auto sink = plan.trace ? plan.trace(run, record.point, record.seed) : nullptr;
  record.result = Simulation(scenario->simulation, sink.get()).run();
}

std::optional<double> until_value(const RunPlan& plan, const RunRecord& record) {
  return plan.until ? number_at(record.result.metrics, plan.until->metric) : std::nullopt;
}

StreamOutcome stream_points(RunPlan plan, RecordSink sink, const std::atomic<bool>& interrupt,
                            const RunProgress& progress) {
  const auto work = std::make_shared<Work>(std::move(plan), std::move(sink));
  const std::size_t runs = work->schedule.all();
  const std::size_t threads = std::clamp<std::size_t>(work->plan.threads, 1, std::max<std::size_t>(runs, 1));
  // Detached, because after an interrupt nobody waits for a run that may take minutes.
  for (std::size_t i = 0; i < threads; ++i) std::thread(work_on, work).detach();

  StreamOutcome outcome;
  std::unique_lock lock(work->mutex);
  for (;;) {
    if (work->running == 0 && (work->stop || work->schedule.finished())) break;
    if (interrupt) {
      work->stop = true;
      outcome.interrupted = true;
      break;
    }
    const std::size_t ended = work->schedule.ended();
    const std::size_t all = work->schedule.all();
    lock.unlock();
    if (progress) progress(ended, all);
    lock.lock();
    // A signal handler cannot notify, so look at the flag from time to time.
    work->changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return work->schedule.ended() != ended; });
  }
  work->stop = true;
  work->changed.notify_all();
  outcome.faults = work->faults;
  outcome.problem = work->problem;
  outcome.done = work->schedule.ended();
  outcome.all = work->schedule.all();
  outcome.replications = work->schedule.replications();
  outcome.wide = work->schedule.wide();
  return outcome;
}

RunOutcome run_points(RunPlan plan, const std::atomic<bool>& interrupt, const RunProgress& progress) {
  struct Records {
    std::mutex mutex;
    std::map<std::pair<std::size_t, std::size_t>, RunRecord> by_task;
  };
  const auto records = std::make_shared<Records>();
  const auto keep = [records](const RunTask& task, RunRecord record) {
    const std::lock_guard lock(records->mutex);
    records->by_task.insert({{task.point, task.replication}, std::move(record)});
  };
  StreamOutcome stream = stream_points(std::move(plan), keep, interrupt, progress);
  RunOutcome outcome{{}, std::move(stream.faults), stream.interrupted};
  const std::lock_guard lock(records->mutex);
  for (auto& [task, record] : records->by_task) outcome.records.push_back(std::move(record));
  return outcome;
}

}  // namespace vcpusim
