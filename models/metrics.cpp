#include "models/metrics.h"

#include <algorithm>
#include <string_view>

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

void write_tasks(const Writer& write, const Vm::TaskGroup& group, SimTime since, SimTime now) {
  // A task that has not ended has run until now.
  Duration shortest = Duration::max();
  Duration longest{};
  Duration total{};
  std::uint64_t operations = 0;
  double rates = 0;
  double squares = 0;
  for (const auto& task : group.tasks) {
    const Duration elapsed = std::max(Duration::zero(), task->finished_at.value_or(now) - since);
    shortest = std::min(shortest, elapsed);
    longest = std::max(longest, elapsed);
    total += elapsed;
    operations += task->operations;
    const double rate = per_second(task->operations, elapsed);
    rates += rate;
    squares += rate * rate;
  }
  const auto n = static_cast<double>(group.tasks.size());
  write("elapsed_s", longest);
  write("operations", operations);
  write("operations_per_s", per_second(operations, longest));
  const Writer per_task = write.in("per_task_s");
  per_task("min", shortest);
  per_task("mean", to_seconds(total) / n);
  per_task("max", longest);
  write("jain_fairness", squares > 0 ? rates * rates / (n * squares) : 1.0);
}

void write_lock(const Writer& write, const GuestLock& lock, Duration elapsed) {
  const GuestLock::Statistics& s = lock.statistics();
  write("kind", lock.kind());
  write("acquisitions", s.acquisitions);
  write("contended", s.contended);
  write("acquisitions_per_s", per_second(s.acquisitions, elapsed));
  write_histogram(write.in("wait_us"), s.wait);
  write_histogram(write.in("hold_us"), s.hold);
  write("spin_s", s.spin);
  write("idle_reserved_s", s.idle_reserved);
  write("holder_preemptions", s.holder_preemptions);
  write("holder_preempted_s", s.holder_preempted);
  write("waiter_preemptions", s.waiter_preemptions);
}

void write_clock(const Writer& write, const Vm& vm) {
  GuestClock::Statistics total;
  for (const auto& vcpu : vm.vcpus()) {
    const GuestClock::Statistics& of_vcpu = vcpu->clock().statistics();
    total.delivered += of_vcpu.delivered;
    total.coalesced += of_vcpu.coalesced;
    total.jitter.merge(of_vcpu.jitter);
  }
  write("period_us", to_microseconds(vm.config().guest.tick));
  write("expected", total.delivered + total.coalesced);
  write("delivered", total.delivered);
  write("coalesced", total.coalesced);
  write_histogram(write.in("jitter_us"), total.jitter);
}

void write_vm(const Writer& write, const Vm& vm, SimTime since, SimTime now) {
  SimTime last = since;
  for (const Vm::TaskGroup& group : vm.task_groups()) {
    for (const auto& task : group.tasks) last = std::max(last, task->finished_at.value_or(now));
  }
  write("elapsed_s", last - since);

  std::array<Duration, kActivities> spent{};
  Duration all{};
  for (const auto& vcpu : vm.vcpus()) {
    Duration of_vcpu{};
    for (std::size_t i = 0; i < kActivities; ++i) {
      const Duration time = vcpu->time(Activity(i));
      spent[i] += time;
      of_vcpu += time;
    }
    SIM_CHECK(of_vcpu == now - since, "the accounts of a vCPU do not add up to the elapsed time");
    all += of_vcpu;
  }
  const auto time = [&](Activity activity) { return spent[static_cast<std::size_t>(activity)]; };
  const Writer times = write.in("time_s");
  const Duration steal = time(Activity::kReady) + time(Activity::kCostop) + time(Activity::kLimited);
  times("user", time(Activity::kUser));
  times("system", time(Activity::kSystem));
  times("hold", time(Activity::kHold));
  times("spin", time(Activity::kSpin));
  times("overhead", time(Activity::kOverhead));
  times("steal", steal);
  times("halted", time(Activity::kHalted));
  times("idle", time(Activity::kIdle));
  const Duration waiting = time(Activity::kHalted) + time(Activity::kIdle);
  write("cpu_s", all - steal - waiting);

  const Writer reported = write.in("guest_reported_s");
  reported("user", vm.reported().user);
  reported("system", vm.reported().system);
  reported("steal", vm.reported().steal);

  const Writer percent = write.in("percent");
  const auto share = [&](Duration part) {
    return all > Duration::zero() ? 100 * to_seconds(part) / to_seconds(all) : 0.0;
  };
  percent("run", share(all - steal - waiting));
  percent("ready", share(time(Activity::kReady) + time(Activity::kLimited)));
  percent("costop", share(time(Activity::kCostop)));
  percent("limited", share(time(Activity::kLimited)));
  percent("wait", share(waiting));

  if (vm.config().guest.tick > Duration::zero()) write_clock(write.in("clock"), vm);

  for (const Vm::TaskGroup& group : vm.task_groups()) {
    write_tasks(write.in("tasks").in(group.config->name), group, since, now);
  }
  for (const auto& lock : vm.locks()) write_lock(write.in("locks").in(lock->name()), *lock, now - since);
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
      exits.halt += vcpu->exits().halt;
      exits.ipi += vcpu->exits().ipi;
      exits.timer += vcpu->exits().timer;
    }
  }
  if (host != nullptr) busy = host->busy_time();
  const Writer write = root.in("host");
  const double capacity = to_seconds(elapsed) * static_cast<double>(config.host.pcpus);
  write("busy_fraction", capacity > 0 ? to_seconds(busy) / capacity : 0.0);
  if (host != nullptr) {
    write("context_switches", host->statistics().context_switches);
    write("migrations", host->statistics().migrations);
    const Writer by_reason = write.in("exits");
    by_reason("halt", exits.halt);
    by_reason("ipi", exits.ipi);
    by_reason("timer", exits.timer);
  }
  write("events", engine.events());
  for (const auto& vm : vms) write_vm(root.in("vms").in(vm->name()), *vm, since, now);
  return metrics;
}

}  // namespace vcpusim
