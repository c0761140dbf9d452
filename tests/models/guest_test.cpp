// Guest tasks on vCPUs through the whole simulator: time slices, wake-ups, barriers, devices, interprocessor
// interrupts.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/simulate.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

// One guest of its own, with as many pCPUs as vCPUs, whose tasks are these programs: task i begins on vCPU i modulo
// their number.
SimulationConfig alone(std::int64_t vcpus, std::vector<Program> tasks) {
  VmConfig vm = guest("g", vcpus, {});
  vm.tasks.clear();
  for (Program& task : tasks) vm.tasks.push_back({"t" + std::to_string(vm.tasks.size()), 1, std::move(task)});
  return host("round_robin", vcpus, {vm});
}

// When each task ended, by its number.
std::vector<Duration> ends(const Results& r) {
  std::map<std::uint32_t, Duration> by_task;
  for (const TraceRecord& record : r.of_kind(TraceKind::kTaskFinished))
    by_task[record.subject] = record.time - kTimeZero;
  std::vector<Duration> all;
  for (const auto& [task, end] : by_task) all.push_back(end);
  return all;
}
std::vector<Duration> ends(const SimulationConfig& config) { return ends(simulate_to_the_end(config, 100s)); }

using Ends = std::vector<Duration>;

// ---- time slices -----------------------------------------------------------------------------------------------

TEST(GuestScheduler, TasksOfOneVcpuTakeTurnsAtTheFirstTickAfterTheirSlice) {
  SimulationConfig config = alone(1, {{user(always(10ms))}, {user(always(10ms))}});
  config.vms[0].guest.tick = 1ms;
  config.vms[0].guest.timeslice = 4ms;
  // The first turn lasts until the fifth tick, wherever on the grid the first one is; the others last four ticks.
  EXPECT_EQ(ends(config), (Ends{18ms, 20ms}));
}

TEST(GuestScheduler, WithoutATickTasksRunUntilTheyBlock) {
  EXPECT_EQ(ends(alone(1, {{user(always(10ms))}, {user(always(10ms))}})), (Ends{10ms, 20ms}));
}

TEST(GuestScheduler, ASliceIsTimeOnThePcpu) {
  // Two guests take turns of 3 ms; each has two tasks with slices of 4 ms. A slice by the wall clock would be over
  // at every return to the pCPU.
  VmConfig vm = guest("g", 1, {user(always(40ms))});
  vm.copies = 2;
  vm.tasks[0].count = 2;
  vm.guest.tick = 500us;
  vm.guest.timeslice = 4ms;
  SimulationConfig config = host("round_robin", 1, {vm});
  config.host.scheduler.params["quantum"] = Duration(3ms);
  config.host.machine.costs.transitions.guest_switch = 1us;
  const Results r = simulate_to_the_end(config);
  // 80 ms of work per guest: about 20 switches of 1 us.
  EXPECT_GE(r.time("vms.g-0.time_s.system"), Duration(16us));
  EXPECT_LE(r.time("vms.g-0.time_s.system"), Duration(22us));
}

TEST(GuestScheduler, EachSwitchAndTickIsChargedToTheSystem) {
  SimulationConfig config = alone(1, {{user(always(10ms))}, {user(always(10ms))}});
  config.host.machine.costs.transitions.guest_switch = 3us;
  EXPECT_EQ(simulate_to_the_end(config).time("vms.g.time_s.system"), Duration(6us));
  config.vms[0].guest.tick = 1ms;
  config.host.machine.costs.transitions.guest_tick = 2us;
  const Results r = simulate_to_the_end(config);
  const auto ticks = r.count("vms.g.clock.delivered");
  EXPECT_EQ(ticks, 20);
  EXPECT_EQ((r.time("vms.g.time_s.system") - ticks * Duration(2us)) % 3us, Duration::zero());
  EXPECT_GT(r.time("vms.g.time_s.system"), ticks * Duration(2us) + 4 * 3us);
}

TEST(GuestScheduler, ATaskThatHoldsASpinlockIsNotSwitched) {
  SimulationConfig config = alone(1, {{hold(0, always(10ms)), user(always(5ms))}, {hold(0, always(1ms))}});
  config.vms[0].guest.tick = 1ms;
  config.vms[0].guest.timeslice = 4ms;
  const Results r = simulate_to_the_end(config, 1s);
  ASSERT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone);
  // The switch that was due in the section comes at its end.
  EXPECT_EQ(ends(r), (Ends{16ms, 11ms}));
  EXPECT_EQ(r.count("vms.g.locks.l.contended"), 0);
}

TEST(GuestScheduler, ATaskThatYieldsGoesBehindTheOthersOfItsVcpu) {
  const Program program = {user(always(1ms)), yield(), user(always(1ms))};
  EXPECT_EQ(ends(alone(1, {program, program})), (Ends{3ms, 4ms}));
  EXPECT_EQ(ends(alone(1, {program})), (Ends{2ms}));
}

// ---- sleeping and waking ---------------------------------------------------------------------------------------

TEST(GuestScheduler, AVcpuWithoutTasksHalts) {
  const Results r = simulate(alone(2, {forever({user(always(1ms)), sleep(always(3ms))})}), 400ms);
  EXPECT_EQ(r.time("vms.g.time_s.user"), Duration(100ms));
  EXPECT_EQ(r.time("vms.g.time_s.idle"), Duration(700ms));
  EXPECT_EQ(r.time("vms.g.time_s.halted"), Duration::zero());
  EXPECT_EQ(r.count("host.exits.halt"), 100);
  for (const Stint& s : r.stints_of(0)) EXPECT_EQ(s.then, s.end == r.end() ? HostState::kRunning : HostState::kHalted);
  EXPECT_TRUE(r.stints_of(1).empty());
}

TEST(GuestScheduler, ATaskThatWakesGoesToAnIdleVcpuIfItsOwnIsBusy) {
  const Results r = simulate_to_the_end(
      alone(2, {{sleep(always(1ms)), user(always(5ms))}, {user(always(500us))}, {user(always(10ms))}}));
  EXPECT_EQ(ends(r), (Ends{6ms, 500us, 10ms}));
  ASSERT_EQ(r.stints_of(1).size(), 2u);
  EXPECT_EQ(r.stints_of(1)[1].begin, at(1ms));
}

TEST(GuestScheduler, ATaskThatWakesWaitsForItsOwnVcpuIfNoneIsIdle) {
  EXPECT_EQ(ends(alone(2, {{sleep(always(1ms)), user(always(5ms))}, {user(always(20ms))}, {user(always(10ms))}})),
            (Ends{15ms, 20ms, 10ms}));
}

TEST(GuestScheduler, AnIdleVcpuPullsAWaitingTask) {
  EXPECT_EQ(ends(alone(2, {{user(always(10ms))}, {user(always(1ms))}, {user(always(10ms))}})), (Ends{10ms, 1ms, 11ms}));
}

TEST(GuestScheduler, AnIdleVcpuPullsFromOneThatIsSwitchingButLeavesItATask) {
  SimulationConfig config =
      alone(2, {{user(always(1ms))}, {user(always(500us))}, {user(always(10ms))}, {}, {user(always(10ms))}});
  config.host.machine.costs.transitions.guest_switch = 2ms;
  // vCPU 0 switches until 2 ms and, with two tasks waiting, from 3 ms to 5 ms; vCPU 1 falls idle at 4.5 ms.
  EXPECT_EQ(ends(config), (Ends{3ms, 2500us, 15ms, 4500us, 16500us}));
}

TEST(GuestScheduler, ATaskThatWakesOnAVcpuOffItsPcpuWaitsForIt) {
  // The guest does not see that its vCPU waits for its pCPU: quanta of 10 ms, the sleeper's tick of work is done in
  // the quantum after the one in which it has woken.
  VmConfig sleeper = guest("sleeper", 1, {});
  sleeper.tasks.clear();
  sleeper.tasks.push_back({"t0", 1, {sleep(always(12ms)), user(always(1ms))}});
  sleeper.tasks.push_back({"t1", 1, busy()});
  sleeper.guest.tick = 1ms;
  sleeper.guest.timeslice = 4ms;
  // The hog comes first but leaves the first quantum to the others.
  SimulationConfig config = host("round_robin", 1, {guest("hog", 1, {sleep(always(1us)), user(always(1s))}), sleeper});
  config.host.scheduler.params["quantum"] = Duration(10ms);
  const Results r = simulate(config, 100ms);
  // At its return at 20 ms its slice is long used up: the pending tick switches at once.
  EXPECT_EQ(ends(r), (Ends{21ms}));
}

// ---- barriers, devices -----------------------------------------------------------------------------------------

TEST(Barrier, OpensWhenTheLastHasArrivedAndAgainTheNextTime) {
  std::vector<Program> tasks;
  for (const Duration work : {Duration(1ms), Duration(4ms), Duration(2ms)}) {
    tasks.push_back({repeat(3, {user(always(work)), barrier(0)})});
  }
  SimulationConfig config = alone(3, tasks);
  config.vms[0].guest.barriers[0].parties = 3;
  EXPECT_EQ(ends(config), (Ends{12ms, 12ms, 12ms}));
  EXPECT_EQ(simulate_to_the_end(config).time("vms.g.time_s.idle"), Duration(3 * (3 + 0 + 2) * 1ms));
}

TEST(Barrier, TheWakerPaysForTheInterruptsThatItSends) {
  SimulationConfig config = alone(3, {{barrier(0)}, {barrier(0)}, {user(always(1ms)), barrier(0), user(always(1ms))}});
  config.host.machine.costs.transitions.ipi_send = 2us;
  config.host.machine.costs.transitions.vm_exit = 1us;
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(ends(r)[2], Duration(2ms + 2 * 3us));
  EXPECT_EQ(r.count("host.exits.ipi"), 2);
}

TEST(Io, BlocksForTheDeviceAndThenHandlesItsInterrupt) {
  SimulationConfig config = alone(1, {{io(always(2ms)), user(always(1ms))}, {user(always(1ms))}});
  config.host.machine.costs.transitions.ipi_handler = 5us;
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(ends(r), (Ends{3ms + 5us, 1ms}));
  EXPECT_EQ(r.time("vms.g.time_s.system"), Duration(5us));
  EXPECT_EQ(r.time("vms.g.time_s.idle"), Duration(1ms));
}

// ---- interprocessor interrupts ---------------------------------------------------------------------------------

// vCPU 0 calls `targets` others 1 ms after the start; the rest is up to the test.
Program caller(std::int64_t targets) { return {user(always(1ms)), ipi(targets, always(10us)), user(always(1ms))}; }

void charge_for_interrupts(SimulationConfig& config) {
  config.host.machine.costs.transitions.ipi_send = 500ns;
  config.host.machine.costs.transitions.ipi_handler = 1us;
  config.host.machine.costs.transitions.vm_exit = 2us;
  config.host.machine.costs.transitions.idle_wake = 5us;
}

TEST(Ipi, ARunningTargetAnswersAfterAnExitAndItsHandler) {
  SimulationConfig config = alone(2, {caller(1), {user(always(10ms))}});
  charge_for_interrupts(config);
  config.host.machine.costs.transitions.idle_wake = Duration::zero();
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(ends(r)[0], Duration(2ms + 13us));
  EXPECT_EQ(ends(r)[1], Duration(10ms + 13us));
  EXPECT_EQ(r.count("host.exits.ipi"), 2);  // sent and taken
  // The caller spins for as long as it has nothing to pay itself.
  EXPECT_EQ(r.time("vms.g.time_s.spin"), Duration(13us - 2500ns));
}

TEST(Ipi, AHaltedTargetIsWokenForIt) {
  SimulationConfig config = alone(2, {caller(1)});
  charge_for_interrupts(config);
  const Results r = simulate_to_the_end(config);
  // The start of vCPU 0 takes as long as the wake-up of vCPU 1; no exit is needed to interrupt one that is halted.
  EXPECT_EQ(ends(r)[0], Duration(5us + 2ms + 5us + 11us));
  EXPECT_EQ(r.stints_of(1).size(), 1u);
}

TEST(Ipi, ATargetThatWaitsForAPcpuAddsItsWholeSchedulingDelay) {
  // vCPU 1 shares pCPU 1 with a hog that begins earlier and has a quantum of 100 ms; vCPU 2 runs.
  VmConfig vm = guest("g", 3, {});
  vm.tasks.clear();
  vm.tasks.push_back({"caller", 1, caller(2)});
  vm.tasks.push_back({"target", 2, {sleep(always(20us)), user(always(1s))}});
  vm.affinity = {AffinityConfig::Rule::kLists, {{0}, {1}, {2}}};
  const VmConfig hog = guest("hog", 1, {sleep(always(10us)), user(always(1s))});
  SimulationConfig config = host("round_robin", 3, {pinned(hog, {1}), vm});
  config.host.machine.costs.transitions.ipi_handler = 1us;
  const Results r = simulate(config, 300ms);
  EXPECT_EQ(ends(r), (Ends{10us + 100ms + 11us + 1ms}));
  EXPECT_EQ(r.count("host.exits.ipi"), 3);  // two sent, one taken while running
}

TEST(Ipi, ATargetWithInterruptsDisabledAnswersAtTheEndOfItsSection) {
  const SimulationConfig config = alone(2, {caller(1), {hold_irqs_off(0, always(5ms)), user(always(1ms))}});
  EXPECT_EQ(ends(config), (Ends{5ms + 10us + 1ms, 6ms + 10us}));
  const SimulationConfig enabled = alone(2, {caller(1), {hold(0, always(5ms)), user(always(1ms))}});
  EXPECT_EQ(ends(enabled), (Ends{2ms + 10us, 6ms + 10us}));
}

TEST(Ipi, TwoVcpusMayCallEachOther) {
  // The first to call interrupts the other, which so calls 10 us later and interrupts the first.
  EXPECT_EQ(ends(alone(2, {caller(1), caller(1)})), (Ends{2ms + 20us, 2ms + 20us}));
}

TEST(Ipi, TheCallerSpinsAndIsNotSwitched) {
  // Another task waits for the caller's vCPU, whose slice is over long before the answer comes.
  VmConfig vm = guest("g", 2, {});
  vm.tasks.clear();
  vm.tasks.push_back({"caller", 1, caller(1)});
  vm.tasks.push_back({"target", 1, {hold_irqs_off(0, always(50ms))}});
  vm.tasks.push_back({"other", 1, {user(always(1ms))}});
  vm.guest.tick = 1ms;
  const Results r = simulate_to_the_end(host("round_robin", 2, {vm}));
  EXPECT_GT(ends(r)[2], Duration(50ms));
  EXPECT_EQ(r.time("vms.g.time_s.spin"), Duration(49ms + 10us));
}

// ---- native ----------------------------------------------------------------------------------------------------

TEST(Native, NothingIsEverStolenAndNobodyExits) {
  VmConfig vm =
      guest("g", 4, forever({user(exponential(100us)), hold(0, exponential(20us)), sleep(exponential(50us))}));
  vm.guest.tick = 1ms;
  SimulationConfig config = native(vm);
  config.host.machine = find_machine_kind("generic")->make();
  const Results r = simulate(config, 1s);
  EXPECT_EQ(r.number("vms.g.time_s.steal") + r.number("vms.g.time_s.halted"), 0);
  EXPECT_EQ(r.number("vms.g.time_s.overhead"), 0);
  EXPECT_EQ(r.number("vms.g.percent.ready"), 0);
  EXPECT_GT(r.number("vms.g.time_s.idle"), 0);
  EXPECT_GT(r.count("vms.g.locks.l.contended"), 0);
  EXPECT_EQ(r.count("vms.g.locks.l.holder_preemptions") + r.count("vms.g.locks.l.waiter_preemptions"), 0);
  EXPECT_EQ(r.number("vms.g.locks.l.idle_reserved_s"), 0);
}

// ---- ends ------------------------------------------------------------------------------------------------------

TEST(Standstill, TasksThatWaitForEachOtherEndTheRunWithTheirNames) {
  VmConfig vm = guest("g", 2, {});
  vm.tasks.clear();
  vm.guest.locks.push_back({"m", {"ticket", {}}});
  vm.tasks.push_back({"ab", 1, {hold(0, {user(always(1ms)), hold(1, always(1ms))})}});
  vm.tasks.push_back({"ba", 1, {hold(1, {user(always(1ms)), hold(0, always(1ms))})}});
  const Results r = simulate_to_the_end(host("round_robin", 2, {vm}), 1000s);
  EXPECT_EQ(r.run().ended, RunResult::Ended::kDeadlock);
  EXPECT_NE(r.run().why.find("vms.g.tasks.ab.0 waits for lock \"m\", held by vms.g.tasks.ba.0"), std::string::npos)
      << r.run().why;
  EXPECT_NE(r.run().why.find("vms.g.tasks.ba.0 waits for lock \"l\", held by vms.g.tasks.ab.0"), std::string::npos)
      << r.run().why;
  EXPECT_LT(r.run().sim_time, Duration(10s));
}

TEST(Standstill, ABarrierThatCannotOpenEndsTheRun) {
  SimulationConfig config = alone(2, {{barrier(0)}, {user(always(1ms))}});
  config.vms[0].guest.barriers[0].parties = 2;
  const Results r = simulate_to_the_end(config, 1000s);
  EXPECT_EQ(r.run().ended, RunResult::Ended::kDeadlock);
  EXPECT_NE(r.run().why.find("vms.g.tasks.t0.0"), std::string::npos) << r.run().why;
}

TEST(Standstill, ABodyThatIsRepeatedForeverWithoutTakingTimeEndsTheRun) {
  // On a machine without costs; the other task does go on.
  for (const Program& body : {Program{user(always(0us))}, {hold(0, always(0us))}, {sleep(always(0us))}, {yield()}}) {
    for (const Duration warmup : {Duration(0us), Duration(5s)}) {
      SimulationConfig config = alone(2, {{user(always(1ms)), repeat(3, {repeat(kForever, body)})}, busy()});
      config.warmup = warmup;
      const Results r = simulate(config, 10s);
      EXPECT_EQ(r.run().ended, RunResult::Ended::kDeadlock);
      EXPECT_EQ(r.run().why, "vms.g.tasks.t0.0 repeats a body forever that takes no time");
      EXPECT_EQ(r.run().sim_time, Duration(1ms));
      EXPECT_EQ(r.time("vms.g.time_s.user"), warmup == Duration::zero() ? Duration(2ms) : Duration::zero());
    }
  }
}

TEST(Standstill, ABodyThatTakesTimeOnceInAWhileIsNone) {
  const Program rarely = forever({choose({{9'999, {yield()}}, {1, {user(always(1us))}}})});
  EXPECT_EQ(simulate(alone(1, {rarely}), 1ms).run().ended, RunResult::Ended::kAtStop);
}

TEST(Standstill, AnAnswerThatIsOnItsWayIsNone) {
  // Whenever a run is looked at, the only task waits for a vCPU that waits for its pCPU.
  VmConfig vm = guest("g", 2, {});
  vm.tasks.clear();
  vm.tasks.push_back({"caller", 1, {repeat(3, {ipi(1, always(10us))})}});
  SimulationConfig config = host("round_robin", 1, {vm, guest("hog", 1, {user(always(12s))})});
  config.host.scheduler.params["quantum"] = Duration(5s);
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone) << r.run().why;
}

TEST(Standstill, ACallToAVcpuThatWaitsForTheCallerWithInterruptsDisabledIsOne) {
  const Program caller = {hold(0, {user(always(1ms)), ipi(1, always(10us))})};
  const Results r =
      simulate_to_the_end(alone(2, {caller, {user(always(500us)), hold_irqs_off(0, always(1us))}}), 1000s);
  EXPECT_EQ(r.run().ended, RunResult::Ended::kDeadlock);
  EXPECT_NE(r.run().why.find("vms.g.tasks.t0.0 spins for an answer"), std::string::npos) << r.run().why;
}

}  // namespace
}  // namespace vcpusim::testing
