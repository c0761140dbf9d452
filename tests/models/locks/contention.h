// A machine, and what became of a lock, for the tests of lock algorithms.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tests/support/simulate.h"

namespace vcpusim::testing {

// Eight cores in one socket, with costs that are easy to tell apart.
inline MachineConfig one_socket() {
  using namespace std::chrono_literals;
  MachineConfig m = find_machine_kind("ideal")->make();
  m.sockets = 1;
  m.cores_per_socket = 8;
  m.threads_per_core = 1;
  m.clock.kilohertz = 1'000'000;
  m.costs.local_access = 1ns;
  m.costs.local_atomic = 10ns;
  m.costs.snoop_share = 0.5;
  m.costs.pause = 10ns;
  m.costs.same_socket = {.load = 100ns, .load_shared = 20ns, .store = 200ns};
  return m;
}

// On bare metal: task i runs programs[i] on CPU i, with one lock of this kind.
inline SimulationConfig contenders(const std::string& lock, const std::vector<Program>& programs) {
  VmConfig vm = guest("g", static_cast<std::int64_t>(programs.size()), {});
  vm.guest.locks[0].kind.name = lock;
  vm.tasks.clear();
  for (const Program& program : programs) vm.tasks.push_back({"t" + std::to_string(vm.tasks.size()), 1, program});
  SimulationConfig config = native(vm);
  config.host.machine = one_socket();
  return config;
}
inline SimulationConfig contenders(const std::string& lock, std::size_t tasks, const Program& program) {
  return contenders(lock, std::vector<Program>(tasks, program));
}

// Task i arrives after i + 1 microseconds, while the first one still holds the lock.
inline std::vector<Program> in_turn(std::size_t tasks, Duration hold_for) {
  using namespace std::chrono_literals;
  std::vector<Program> programs;
  for (std::size_t i = 0; i < tasks; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    programs.push_back({user(always((n + 1) * Duration(1us))), hold(0, always(i == 0 ? Duration(100us) : hold_for))});
  }
  return programs;
}

// One span of owning the lock, from owning it to the beginning of the unlocking store.
struct Section {
  std::uint32_t task;
  Duration acquired;
  Duration released;
};

inline std::vector<Section> sections(const Results& r) {
  std::vector<Section> all;
  std::map<std::uint32_t, std::size_t> open;
  for (const TraceRecord& record : r.trace()) {
    if (record.kind == static_cast<std::uint16_t>(TraceKind::kLockAcquired)) {
      open[record.subject] = all.size();
      all.push_back({record.subject, record.time - kTimeZero, {}});
    } else if (record.kind == static_cast<std::uint16_t>(TraceKind::kLockReleased)) {
      all[open.at(record.subject)].released = record.time - kTimeZero;
    }
  }
  return all;
}

inline std::vector<std::uint32_t> owners(const Results& r) {
  std::vector<std::uint32_t> tasks;
  for (const Section& section : sections(r)) tasks.push_back(section.task);
  return tasks;
}

// From the unlocking store of the owner before to the acquisition of the n-th owner.
inline Duration hand_over(const Results& r, std::size_t n) {
  const std::vector<Section> all = sections(r);
  return all.at(n).acquired - all.at(n - 1).released;
}

// The mean time between acquisitions when `tasks` tasks do nothing but take the lock, in nanoseconds.
inline double period(const std::string& lock, std::size_t tasks) {
  using namespace std::chrono_literals;
  constexpr std::int64_t kPairs = 500;
  const Program pairs{repeat(kPairs, {hold(0, always(5ns)), kernel(always(30ns))})};
  const Results r = simulate_to_the_end(contenders(lock, tasks, pairs));
  return static_cast<double>((r.end() - kTimeZero).count()) * 1e-3 / static_cast<double>(kPairs * tasks);
}

}  // namespace vcpusim::testing
