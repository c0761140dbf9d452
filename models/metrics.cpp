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
  times("user", time(Activity::kUser));
  times("system", time(Activity::kSystem));
  times("hold", time(Activity::kHold));
  times("spin", time(Activity::kSpin));
  times("idle", time(Activity::kIdle));
  write("cpu_s", all - time(Activity::kIdle));

  for (const Vm::TaskGroup& group : vm.task_groups()) {
    write_tasks(write.in("tasks").in(group.config->name), group, since, now);
  }
  for (const auto& lock : vm.locks()) write_lock(write.in("locks").in(lock->name()), *lock, now - since);
}

}  // namespace

Metrics collect_metrics(const SimulationConfig& config, const std::vector<std::unique_ptr<Vm>>& vms,
                        const Engine& engine, SimTime since) {
  Metrics metrics;
  const Writer root(metrics, "");
  const SimTime now = engine.now();
  const Duration elapsed = now - since;
  Duration busy{};
  for (const auto& vm : vms) {
    for (const auto& vcpu : vm->vcpus()) busy += elapsed - vcpu->time(Activity::kIdle);
  }
  const Writer host = root.in("host");
  host("busy_fraction", elapsed > Duration::zero()
                            ? to_seconds(busy) / (to_seconds(elapsed) * static_cast<double>(config.host.pcpus))
                            : 0.0);
  host("events", engine.events());
  for (const auto& vm : vms) write_vm(root.in("vms").in(vm->name()), *vm, since, now);
  return metrics;
}

}  // namespace vcpusim
