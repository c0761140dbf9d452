// Runs of the whole simulator in a few lines: builders in which a test names only what matters to it, and what a test
// asks of the result.
//
//   Results r = simulate(host("cfs", 1, {guest("a", 1, busy()), guest("b", 1, busy())}), 10s);
//   r.number("vms.a.percent.ready");  r.time("vms.a.time_s.user");  r.stints();
//
// Machines are ideal (nothing costs anything) unless the test sets another.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/catalogue.h"
#include "models/config.h"
#include "models/guest/vcpu.h"
#include "models/simulation.h"
#include "models/trace_kinds.h"
#include "tests/support/program.h"

namespace vcpusim::testing {

inline Distribution always(Duration span) { return Distribution::constant(span); }
inline Distribution exponential(Duration mean) { return Distribution::exponential(mean); }

constexpr SimTime at(Duration since_zero) { return kTimeZero + since_zero; }
constexpr double milliseconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

// Computes in user mode as long as the simulation runs.
inline Program busy() { return {user(always(std::chrono::hours(1)))}; }
inline Program forever(Program body) { return {repeat(kForever, std::move(body))}; }

// `vcpus` vCPUs, on each of them one task that runs `program`, called "t"; one ticket lock and one barrier for all.
inline VmConfig guest(std::string name, std::int64_t vcpus, Program program) {
  VmConfig vm;
  vm.name = std::move(name);
  vm.vcpus = vcpus;
  vm.guest.locks.push_back({"l", {"ticket", {}}});
  vm.guest.barriers.push_back({"b", vcpus});
  vm.tasks.push_back({"t", vcpus, std::move(program)});
  return vm;
}

// The same guest with each of its vCPUs allowed on these pCPUs only.
inline VmConfig pinned(VmConfig vm, const std::vector<std::int64_t>& pcpus) {
  vm.affinity.rule = AffinityConfig::Rule::kLists;
  vm.affinity.lists.assign(static_cast<std::size_t>(vm.vcpus), pcpus);
  return vm;
}

inline SimulationConfig host(std::string scheduler, std::int64_t pcpus, std::vector<VmConfig> vms) {
  SimulationConfig config;
  config.random_start = false;  // who comes first is part of what a test says
  config.name = "test";
  config.host.machine = find_machine_kind("ideal")->make();
  config.host.pcpus = pcpus;
  config.host.scheduler.name = std::move(scheduler);
  config.vms = std::move(vms);
  return config;
}

// No hypervisor: each vCPU has a pCPU of its own.
inline SimulationConfig native(VmConfig vm) {
  vm.native = true;
  const std::int64_t pcpus = vm.vcpus;
  return host("round_robin", pcpus, {std::move(vm)});
}

inline std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const SchedulerKind& kind : scheduler_kinds()) names.emplace_back(kind.name);
  return names;
}

// A vCPU on a pCPU, without interruption.
struct Stint {
  std::uint32_t vcpu;
  std::uint32_t pcpu;
  SimTime begin;
  SimTime end;     // the end of the run if nothing else
  HostState then;  // what it became; kRunning at the end of the run
  Duration length() const { return end - begin; }
};

class Trace final : public TraceSink {
 public:
  void record(const TraceRecord& record) override { records_.push_back(record); }
  const std::vector<TraceRecord>& records() const { return records_; }

 private:
  std::vector<TraceRecord> records_;
};

class Results {
 public:
  Results(RunResult result, std::vector<TraceRecord> trace) : result_(std::move(result)), trace_(std::move(trace)) {}

  const RunResult& run() const { return result_; }
  const Metrics& metrics() const { return result_.metrics; }
  const std::vector<TraceRecord>& trace() const { return trace_; }
  SimTime end() const { return kTimeZero + result_.sim_time; }

  double number(const std::string& path) const {
    const MetricValue& value = at_path(path);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return static_cast<double>(std::get<std::int64_t>(value));
  }
  std::int64_t count(const std::string& path) const { return std::get<std::int64_t>(at_path(path)); }
  // A metric in seconds, exactly as it was counted: a double has room for 2 hours of picoseconds.
  Duration time(const std::string& path) const { return Duration(std::llround(number(path) * 1e12)); }
  Duration microseconds(const std::string& path) const { return Duration(std::llround(number(path) * 1e6)); }

  std::vector<TraceRecord> of_kind(TraceKind kind) const {
    std::vector<TraceRecord> found;
    std::ranges::copy_if(trace_, std::back_inserter(found),
                         [kind](const TraceRecord& r) { return r.kind == static_cast<std::uint16_t>(kind); });
    return found;
  }

  // In the order in which they began.
  std::vector<Stint> stints() const {
    std::vector<Stint> all;
    std::vector<std::size_t> last;  // by vCPU
    for (const TraceRecord& r : trace_) {
      const auto kind = static_cast<TraceKind>(r.kind);
      if (kind == TraceKind::kDispatch) {
        if (last.size() <= r.subject) last.resize(r.subject + 1);
        last[r.subject] = all.size();
        all.push_back({r.subject, r.object, r.time, end(), HostState::kRunning});
      } else if (kind == TraceKind::kDeschedule) {
        all[last.at(r.subject)].end = r.time;
        all[last.at(r.subject)].then = static_cast<HostState>(r.value);
      }
    }
    return all;
  }
  std::vector<Stint> stints_of(std::uint32_t vcpu) const {
    std::vector<Stint> of_vcpu = stints();
    std::erase_if(of_vcpu, [vcpu](const Stint& s) { return s.vcpu != vcpu; });
    return of_vcpu;
  }
  // Time on a pCPU.
  Duration ran(std::uint32_t vcpu) const {
    Duration total{};
    for (const Stint& stint : stints_of(vcpu)) total += stint.length();
    return total;
  }

  // From becoming ready by a wake-up to running, for each wake-up of `vcpu` but the first of all, at the start.
  std::vector<Duration> wakeup_delays(std::uint32_t vcpu) const {
    std::vector<Duration> delays;
    std::optional<SimTime> woken;
    bool started = false;
    for (const TraceRecord& r : trace_) {
      if (r.subject != vcpu) continue;
      if (r.kind == static_cast<std::uint16_t>(TraceKind::kWake)) woken = r.time;
      if (r.kind == static_cast<std::uint16_t>(TraceKind::kDispatch) && woken) {
        if (std::exchange(started, true)) delays.push_back(r.time - *woken);
        woken.reset();
      }
    }
    return delays;
  }

 private:
  const MetricValue& at_path(const std::string& path) const {
    for (const auto& [name, value] : result_.metrics) {
      if (name == path) return value;
    }
    throw std::out_of_range("no metric " + path);
  }

  RunResult result_;
  std::vector<TraceRecord> trace_;
};

inline Results simulate(const SimulationConfig& config) {
  Trace trace;
  Simulation simulation(config, &trace);
  RunResult result = simulation.run();
  return {std::move(result), trace.records()};
}
// Until a time, or until all workloads are done, which they have to be after so long.
inline Results simulate(SimulationConfig config, Duration until) {
  config.stop.at = until;
  return simulate(config);
}
inline Results simulate_to_the_end(SimulationConfig config, Duration at_most = std::chrono::hours(1)) {
  config.stop.at.reset();
  config.stop.at_most = at_most;
  return simulate(config);
}

}  // namespace vcpusim::testing
