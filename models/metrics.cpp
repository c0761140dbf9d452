#include "models/metrics.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "sim/check.h"

namespace vcpusim {

namespace {

class Writer {
 public:
  Writer(Metrics& metrics, std::string prefix) : metrics_(metrics), prefix_(std::move(prefix)) {}

  Writer in(std::string_view name) const { return Writer(metrics_, path(name) + "."); }
  void operator()(std::string_view name, double value) const { metrics_.emplace_back(path(name), value); }
  void operator()(std::string_view name, Duration value) const { metrics_.emplace_back(path(name), to_seconds(value)); }
  void operator()(std::string_view name, std::uint64_t value) const {
    metrics_.emplace_back(path(name), static_cast<std::int64_t>(value));
  }
  void operator()(std::string_view name, const std::string& value) const { metrics_.emplace_back(path(name), value); }

 private:
  std::string path(std::string_view name) const { return prefix_ + std::string(name); }
  Metrics& metrics_;
  std::string prefix_;
};

double per_second(std::uint64_t count, Duration elapsed) {
  return elapsed > Duration::zero() ? static_cast<double>(count) / to_seconds(elapsed) : 0;
}

void write_histogram(const Writer& write, const LatencyHistogram& histogram) {
  write("mean", to_microseconds(histogram.mean()));
  write("p50", to_microseconds(histogram.quantile(0.5)));
  write("p99", to_microseconds(histogram.quantile(0.99)));
  write("p999", to_microseconds(histogram.quantile(0.999)));
  write("max", to_microseconds(histogram.max()));
}

// One VM, or all copies of one.
using VmGroup = std::span<const Vm* const>;

void write_tasks(const Writer& write, VmGroup vms, std::size_t group, SimTime since, SimTime now) {
  // A task that has not ended has run until now.
  Duration shortest = Duration::max();
  Duration longest{};
  Duration total{};
  std::uint64_t operations = 0;
  double rates = 0;
  double squares = 0;
  double n = 0;
  for (const Vm* const vm : vms) {
    for (const auto& task : vm->task_groups()[group].tasks) {
      const Duration elapsed = std::max(Duration::zero(), task->finished_at.value_or(now) - since);
      shortest = std::min(shortest, elapsed);
      longest = std::max(longest, elapsed);
      total += elapsed;
      operations += task->operations;
      const double rate = per_second(task->operations, elapsed);
      rates += rate;
      squares += rate * rate;
      ++n;
    }
  }
  write("elapsed_s", longest);
  write("operations", operations);
  write("operations_per_s", per_second(operations, longest));
  const Writer per_task = write.in("per_task_s");
  per_task("min", shortest);
  per_task("mean", to_seconds(total) / n);
  per_task("max", longest);
  write("jain_fairness", squares > 0 ? rates * rates / (n * squares) : 1.0);
}

void write_lock(const Writer& write, VmGroup vms, std::size_t lock, Duration elapsed) {
  GuestLock::Statistics sum;
  for (const Vm* const vm : vms) sum.add(vm->lock_statistics(lock));
  write("kind", vms.front()->locks()[lock]->kind());
  write("acquisitions", sum.acquisitions);
  write("contended", sum.contended);
  write("acquisitions_per_s", per_second(sum.acquisitions, elapsed));
  write_histogram(write.in("wait_us"), sum.wait);
  write_histogram(write.in("hold_us"), sum.hold);
  write("spin_s", sum.spin);
  write("idle_reserved_s", sum.idle_reserved);
  write("holder_preemptions", sum.holder_preemptions);
  write("holder_preempted_s", Duration(static_cast<std::int64_t>(sum.holder_preempted.sum_ps())));
  write_histogram(write.in("holder_preempted_us"), sum.holder_preempted);
  const Writer stacked = write.in("stacked");
  stacked("type_a", sum.type_a.count());
  write_histogram(stacked.in("type_a_us"), sum.type_a);
  stacked("type_b", sum.type_b.count());
  write_histogram(stacked.in("type_b_us"), sum.type_b);
  write("waiter_preemptions", sum.waiter_preemptions);
  write("halts", sum.algorithm.halts);
  write("kicks", sum.algorithm.kicks);
  write("spurious_wakeups", sum.algorithm.spurious_wakeups);
  write("steals", sum.algorithm.steals);
  if (!sum.rcu) return;
  write("reads", sum.rcu->reads);
  write("frees_deferred", sum.rcu->frees_deferred);
  write("frees_done", sum.rcu->frees_done);
  write("grace_periods", sum.rcu->grace_period.count());
  write_histogram(write.in("grace_period_us"), sum.rcu->grace_period);
}

void write_clock(const Writer& write, VmGroup vms) {
  GuestClock::Statistics sum;
  for (const Vm* const vm : vms) sum.add(vm->clock_statistics);
  write("period_us", to_microseconds(vms.front()->config().guest.tick));
  write("expected", sum.delivered + sum.coalesced);
  write("delivered", sum.delivered);
  write("coalesced", sum.coalesced);
  write_histogram(write.in("jitter_us"), sum.jitter);
}

// The accounts of vCPUs, added up.
class TimeSpent {
 public:
  TimeSpent(VmGroup vms, Duration elapsed) {
    for (const Vm* const vm : vms) {
      for (const auto& vcpu : vm->vcpus()) {
        Duration of_vcpu{};
        for (std::size_t i = 0; i < kActivities; ++i) {
          const Duration time = vcpu->time(Activity(i));
          spent_[i] += time;
          of_vcpu += time;
        }
        SIM_CHECK(of_vcpu == elapsed, "the accounts of a vCPU do not add up to the elapsed time");
        all_ += of_vcpu;
      }
    }
  }

  Duration on(Activity activity) const { return spent_[static_cast<std::size_t>(activity)]; }
  Duration steal() const { return on(Activity::kReady) + on(Activity::kCostop) + on(Activity::kLimited); }
  Duration waiting() const { return on(Activity::kHalted) + on(Activity::kIdle); }
  Duration on_pcpu() const { return all_ - steal() - waiting(); }
  double percent(Duration part) const {
    return all_ > Duration::zero() ? 100 * to_seconds(part) / to_seconds(all_) : 0.0;
  }

 private:
  std::array<Duration, kActivities> spent_{};
  Duration all_{};
};

void write_vm(const Writer& write, VmGroup vms, SimTime since, SimTime now) {
  const Vm& first = *vms.front();
  SimTime last = since;
  Vm::ReportedTime reported;
  std::uint64_t hints = 0;
  std::uint64_t deferred_flushes = 0;
  for (const Vm* const vm : vms) {
    for (const Vm::TaskGroup& group : vm->task_groups()) {
      for (const auto& task : group.tasks) last = std::max(last, task->finished_at.value_or(now));
    }
    reported.add(vm->reported());
    hints += vm->counts.hints;
    deferred_flushes += vm->counts.deferred_flushes;
  }
  write("elapsed_s", last - since);

  const TimeSpent time(vms, now - since);
  const Writer times = write.in("time_s");
  times("user", time.on(Activity::kUser));
  times("system", time.on(Activity::kSystem));
  times("hold", time.on(Activity::kHold));
  times("spin", time.on(Activity::kSpin));
  times("overhead", time.on(Activity::kOverhead));
  times("steal", time.steal());
  times("halted", time.on(Activity::kHalted));
  times("idle", time.on(Activity::kIdle));
  write("cpu_s", time.on_pcpu());

  const Writer guest = write.in("guest_reported_s");
  guest("user", reported.user);
  guest("system", reported.system);
  guest("steal", reported.steal);

  write("hints", hints);
  write("deferred_flushes", deferred_flushes);

  const Writer percent = write.in("percent");
  percent("run", time.percent(time.on_pcpu()));
  percent("ready", time.percent(time.on(Activity::kReady) + time.on(Activity::kLimited)));
  percent("costop", time.percent(time.on(Activity::kCostop)));
  percent("limited", time.percent(time.on(Activity::kLimited)));
  percent("wait", time.percent(time.waiting()));

  if (first.config().guest.tick > Duration::zero()) write_clock(write.in("clock"), vms);
  for (std::size_t i = 0; i < first.task_groups().size(); ++i) {
    write_tasks(write.in("tasks").in(first.task_groups()[i].config->name), vms, i, since, now);
  }
  for (std::size_t i = 0; i < first.locks().size(); ++i) {
    write_lock(write.in("locks").in(first.locks()[i]->name()), vms, i, now - since);
  }
}

}  // namespace

Metrics collect_metrics(const SimulationConfig& config, const std::vector<std::unique_ptr<Vm>>& vms, const Host* host,
                        const Engine& engine, SimTime since) {
  Metrics metrics;
  const Writer root(metrics, "");
  const SimTime now = engine.now();
  const Duration elapsed = now - since;
  Duration busy{};
  ExitCounts exits;
  for (const auto& vm : vms) {
    for (const auto& vcpu : vm->vcpus()) {
      if (host == nullptr) busy += elapsed - vcpu->time(Activity::kIdle);
      exits.ple += vcpu->exits().ple;
      exits.hypercall += vcpu->exits().hypercall;
      exits.halt += vcpu->exits().halt;
      exits.ipi += vcpu->exits().ipi;
      exits.timer += vcpu->exits().timer;
    }
  }
  if (host != nullptr) busy = host->busy_time();
  const Writer write = root.in("host");
  double vcpus = 0;
  for (const auto& vm : vms) vcpus += static_cast<double>(vm->vcpus().size());
  write("overcommit", vcpus / static_cast<double>(config.host.pcpus));
  const double capacity = to_seconds(elapsed) * static_cast<double>(config.host.pcpus);
  write("busy_fraction", capacity > 0 ? to_seconds(busy) / capacity : 0.0);
  if (host != nullptr) {
    write("context_switches", host->statistics().context_switches);
    write("migrations", host->statistics().migrations);
    const Writer by_reason = write.in("exits");
    by_reason("ple", exits.ple);
    by_reason("halt", exits.halt);
    by_reason("hypercall", exits.hypercall);
    by_reason("ipi", exits.ipi);
    by_reason("timer", exits.timer);
    const Writer yields = write.in("directed_yields");
    const HostStatistics::DirectedYields& counts = host->statistics().directed_yields;
    yields("attempted", counts.attempted);
    yields("succeeded", counts.succeeded);
    yields("to_spinner", counts.to_spinner);
    yields("to_holder", counts.to_holder);
    yields("to_woken", counts.to_woken);
    yields("to_marked", counts.to_marked);
    yields("not_honoured", counts.not_honoured);
    yields("none_marked", counts.none_marked);
  }
  write("events", engine.events());

  std::size_t next = 0;
  for (const VmConfig& vm : config.vms) {
    std::vector<const Vm*> copies;
    for (std::int64_t i = 0; i < vm.copies; ++i) copies.push_back(vms[next++].get());
    write_vm(root.in("vms").in(vm.name), copies, since, now);
    if (copies.size() == 1) continue;
    for (const Vm* const& copy : copies) write_vm(root.in("vms").in(copy->name()), VmGroup(&copy, 1), since, now);
  }
  return metrics;
}

}  // namespace vcpusim
