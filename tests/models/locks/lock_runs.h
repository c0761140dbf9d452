// Small guests around one lock, on a machine whose costs are round numbers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/simulate.h"

namespace vcpusim::testing {

using namespace std::chrono_literals;

// A spin loop of 10 ns a turn, transfers of 20 ns, exits of 200 ns; what the host itself does costs nothing.
inline MachineConfig round_machine() {
  MachineConfig m = find_machine_kind("ideal")->make();
  m.costs.local_access = 1ns;
  m.costs.local_atomic = 5ns;
  m.costs.pause = 10ns;
  m.costs.same_socket = {.load = 20ns, .load_shared = 20ns, .store = 20ns};
  m.costs.transitions.vm_exit = 200ns;
  return m;
}

using Params = std::map<std::string, ParamValue>;

// A guest with a vCPU for each program; the lock is number 0. A vCPU has a pCPU of its own.
inline SimulationConfig one_lock(const std::string& kind, const Params& params, std::vector<Program> programs) {
  VmConfig vm;
  vm.name = "g";
  vm.vcpus = static_cast<std::int64_t>(programs.size());
  vm.affinity.rule = AffinityConfig::Rule::kOneToOne;
  vm.guest.locks.push_back({"l", {kind, params}});
  for (std::size_t i = 0; i < programs.size(); ++i) {
    vm.tasks.push_back({"t" + std::to_string(i), 1, std::move(programs[i])});
  }
  const std::int64_t pcpus = vm.vcpus;
  SimulationConfig config = host("round_robin", pcpus, {std::move(vm)});
  config.host.machine = round_machine();
  return config;
}

// A second guest, busy for ever, on one pCPU of the first.
inline void add_rival(SimulationConfig& config, std::int64_t pcpu, Duration quantum) {
  config.vms.push_back(pinned(guest("rival", 1, busy()), {pcpu}));
  config.random_start = true;  // the rival has the first turn with this seed
  config.host.scheduler.params["quantum"] = quantum;
}

inline std::int64_t lock_count(const Results& r, const std::string& what) { return r.count("vms.g.locks.l." + what); }
inline Duration lock_time(const Results& r, const std::string& what) { return r.time("vms.g.locks.l." + what); }

// The tasks in the order in which they became owners.
inline std::vector<std::uint32_t> owners(const Results& r) {
  std::vector<std::uint32_t> order;
  for (const TraceRecord& record : r.of_kind(TraceKind::kLockAcquired)) order.push_back(record.subject);
  return order;
}
inline SimTime acquired_at(const Results& r, std::uint32_t task) {
  for (const TraceRecord& record : r.of_kind(TraceKind::kLockAcquired)) {
    if (record.subject == task) return record.time;
  }
  return kNever;
}
inline SimTime released_at(const Results& r, std::uint32_t task) {
  for (const TraceRecord& record : r.of_kind(TraceKind::kLockReleased)) {
    if (record.subject == task) return record.time;
  }
  return kNever;
}

// How often `vcpu` has lost its pCPU because it halted, up to `until`.
inline std::size_t blocked(const Results& r, std::uint32_t vcpu, SimTime until) {
  std::size_t n = 0;
  for (const Stint& stint : r.stints_of(vcpu)) n += stint.then == HostState::kHalted && stint.end <= until ? 1 : 0;
  return n;
}

// (halts, kicks, spurious wake-ups) of one run.
using Outcome = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
inline Outcome outcome(const Results& r) {
  return {lock_count(r, "halts"), lock_count(r, "kicks"), lock_count(r, "spurious_wakeups")};
}

}  // namespace vcpusim::testing
