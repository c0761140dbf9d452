// The mutex: who spins, who sleeps, who is woken.
#include <gtest/gtest.h>

#include "tests/models/locks/lock_runs.h"

namespace vcpusim::testing {
namespace {

std::shared_ptr<const Operation> after(Duration span) { return user(always(span)); }
std::shared_ptr<const Operation> hold_for(Duration span) { return hold(0, always(span)); }

SimulationConfig with_steal_clock(SimulationConfig config) {
  config.host.assists["steal_clock"] = {"steal_clock", {}};
  return config;
}

TEST(MutexSpinning, GoesOnWhileTheOwnerRuns) {
  const Results r = simulate_to_the_end(one_lock("mutex", {}, {{hold_for(50us)}, {after(1us), hold_for(1us)}}));
  EXPECT_EQ(lock_count(r, "halts"), 0);
  EXPECT_EQ(lock_count(r, "contended"), 1);
  EXPECT_NEAR(milliseconds(lock_time(r, "spin_s")), milliseconds(49us), milliseconds(100ns));
}

TEST(MutexSpinning, IsASwitch) {
  const Results r =
      simulate_to_the_end(one_lock("mutex", {{"spin", false}}, {{hold_for(50us)}, {after(1us), hold_for(1us)}}));
  EXPECT_EQ(lock_count(r, "halts"), 1);
  EXPECT_EQ(lock_count(r, "contended"), 1);
  EXPECT_LT(lock_time(r, "spin_s"), 500ns);
}

// The owner runs from 10 to 20 us and from 30 us on. The waiter comes at 12 us.
TEST(MutexSpinning, EndsWhenTheVcpuOfTheOwnerIsPreemptedAndTheGuestCanSeeIt) {
  for (const bool steal_clock : {false, true}) {
    SimulationConfig config = one_lock("mutex", {}, {{hold_for(15us)}, {after(12us), hold_for(1us)}});
    add_rival(config, 0, 10us);
    if (steal_clock) config = with_steal_clock(std::move(config));
    const Results r = simulate(config, 1ms);
    ASSERT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1}));
    EXPECT_EQ(lock_count(r, "holder_preemptions"), 1);
    EXPECT_EQ(lock_count(r, "halts"), steal_clock ? 1 : 0);
    const double spun = milliseconds(lock_time(r, "spin_s"));
    EXPECT_NEAR(spun, milliseconds(steal_clock ? 8us : 23us), milliseconds(200ns));
    if (steal_clock) {
      const Stint first = r.stints_of(1).front();
      EXPECT_EQ(first.then, HostState::kHalted);
      EXPECT_NEAR(milliseconds(first.end - at(20us)), 0, milliseconds(500ns));
    }
  }
}

TEST(MutexSpinning, IsNotBegunForAnOwnerWhoseVcpuIsPreempted) {
  SimulationConfig config = with_steal_clock(one_lock("mutex", {}, {{hold_for(15us)}, {after(22us), hold_for(1us)}}));
  add_rival(config, 0, 10us);
  const Results r = simulate(config, 1ms);
  ASSERT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(lock_count(r, "halts"), 1);
  EXPECT_LT(lock_time(r, "spin_s"), 500ns);
}

TEST(MutexSpinning, EndsWhenTheOwnerSleeps) {
  const Results r = simulate_to_the_end(one_lock(
      "mutex", {}, {{hold(0, Program{kernel(always(10us)), sleep(always(30us))})}, {after(2us), hold_for(1us)}}));
  EXPECT_EQ(lock_count(r, "halts"), 1);
  EXPECT_NEAR(milliseconds(lock_time(r, "spin_s")), milliseconds(8us), milliseconds(300ns));
}

// Tasks 1 and 2 spin, one behind the other. The vCPU of task 1 is preempted at 20 us.
TEST(MutexSpinnerQueue, IsLeftByThoseBehindAPreemptedSpinner) {
  for (const bool steal_clock : {false, true}) {
    SimulationConfig config =
        one_lock("mutex", {}, {{hold_for(35us)}, {after(1us), hold_for(1us)}, {after(12us), hold_for(1us)}});
    add_rival(config, 1, 10us);
    if (steal_clock) config = with_steal_clock(std::move(config));
    const Results r = simulate(config, 1ms);
    ASSERT_EQ(lock_count(r, "acquisitions"), 3);
    EXPECT_EQ(lock_count(r, "halts"), steal_clock ? 1 : 0);
    if (steal_clock) {
      const Stint first = r.stints_of(2).front();
      EXPECT_EQ(first.then, HostState::kHalted);
      EXPECT_NEAR(milliseconds(first.end - at(20us)), 0, milliseconds(500ns));
    }
  }
}

TEST(MutexSpinnerQueue, ServesSpinnersInTheirOrder) {
  std::vector<Program> programs{{hold_for(50us)}};
  for (int i = 1; i < 8; ++i) programs.push_back({after((8 - i) * 2us), hold_for(1us)});
  const Results r = simulate_to_the_end(one_lock("mutex", {}, std::move(programs)));
  EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(lock_count(r, "halts"), 0);
}

// A spinner whose vCPU has another task to run gives it up at the end of its slice.
TEST(MutexSpinning, EndsWhenTheVcpuOfTheSpinnerIsWantedByAnotherTask) {
  SimulationConfig config = one_lock("mutex", {}, {{hold_for(20ms)}, {after(10us), hold_for(1us)}});
  VmConfig& vm = config.vms[0];
  vm.guest.tick = 1ms;
  vm.guest.timeslice = 2ms;
  vm.tasks.push_back({"none", 1, {after(20ms)}});  // on vCPU 0, behind the owner
  vm.tasks.push_back({"other", 1, {after(5ms)}});  // on vCPU 1, behind the spinner
  const Results r = simulate_to_the_end(config);
  EXPECT_GE(lock_count(r, "halts"), 1);
  EXPECT_LT(r.time("vms.g.tasks.other.elapsed_s"), 9ms);
}

TEST(MutexOwner, CanBeSwitchedOutByTheGuest) {
  std::map<std::string, Duration> other;
  for (const std::string kind : {"mutex", "ticket"}) {
    SimulationConfig config = one_lock(kind, {}, {{hold_for(20ms)}});
    config.vms[0].guest.tick = 1ms;
    config.vms[0].guest.timeslice = 1ms;
    config.vms[0].tasks.push_back({"other", 1, {after(1ms)}});
    other[kind] = simulate_to_the_end(config).time("vms.g.tasks.other.elapsed_s");
  }
  EXPECT_LT(other["mutex"], 5ms);
  EXPECT_GT(other["ticket"], 20ms);
}

TEST(MutexSleepers, AreWokenInTheirOrderOnePerRelease) {
  std::vector<Program> programs{{hold_for(50us)}};
  for (int i = 1; i < 8; ++i) programs.push_back({after((8 - i) * 2us), hold_for(10us)});
  const Results r = simulate_to_the_end(one_lock("mutex", {{"spin", false}}, std::move(programs)));
  EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(lock_count(r, "halts"), 7);
  EXPECT_EQ(lock_count(r, "spurious_wakeups"), 0);
}

// Task 0 takes the mutex again right after each release, before the sleeper that it has woken has been switched in.
TEST(MutexSleepers, AreHandedTheMutexAfterTheyWereWokenInVain) {
  for (const bool handoff : {false, true}) {
    const Params params{{"spin", false}, {"handoff", handoff}};
    SimulationConfig config =
        one_lock("mutex", params, {{repeat(1000, {hold_for(10us)})}, {after(1us), hold_for(1us)}});
    config.host.machine.costs.transitions.guest_switch = 1500ns;
    const Results r = simulate_to_the_end(config);
    const Duration wait = acquired_at(r, 1) - kTimeZero;
    if (handoff) {
      EXPECT_LT(wait, 25us);
      EXPECT_EQ(lock_count(r, "spurious_wakeups"), 1);
    } else {
      EXPECT_GT(wait, 9ms);
      EXPECT_GT(lock_count(r, "spurious_wakeups"), 500);
    }
    EXPECT_GT(lock_count(r, "steals"), 0);
  }
}

// The owner releases at each half nanosecond of a window around the moment in which the waiter falls asleep.
TEST(MutexSleepers, LoseNoWakeUpWheneverTheOwnerReleases) {
  for (const bool spin : {false, true}) {
    std::map<std::int64_t, int> slept;
    for (Duration hold_time = Duration(20ns); hold_time <= 300ns; hold_time += Duration(500)) {
      SimulationConfig config =
          one_lock("mutex", {{"spin", spin}}, {{hold_for(hold_time)}, {after(50ns), hold_for(100ns)}});
      const Results r = simulate_to_the_end(config, 1ms);
      ASSERT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone) << hold_time.count() << r.run().why;
      ++slept[lock_count(r, "halts")];
    }
    EXPECT_GT(slept[0], 50);
    EXPECT_TRUE(spin ? slept[1] == 0 : slept[1] > 50);
  }
}

// The owner sleeps from time to time, so that spinners give up in the midst of it.
TEST(MutexSleepers, LoseNoWakeUpAmongManyWhoSpinAndSleep) {
  std::vector<Program> programs;
  for (int i = 0; i < 6; ++i) {
    programs.push_back({repeat(200, {user(exponential(3us)), hold(0, exponential(1us)),
                                     hold(0, Program{kernel(exponential(500ns)), sleep(exponential(3us))})})});
  }
  SimulationConfig config = with_steal_clock(one_lock("mutex", {}, std::move(programs)));
  for (std::int64_t pcpu = 0; pcpu < 3; ++pcpu) add_rival(config, pcpu, 2us);
  config.vms[1].name = "rival0";
  config.vms[2].name = "rival1";
  const Results r = simulate(config, 1s);
  EXPECT_EQ(lock_count(r, "acquisitions"), 6 * 400);
  EXPECT_GT(lock_count(r, "halts"), 500);
  EXPECT_GT(lock_count(r, "steals"), 50);
  EXPECT_GT(lock_count(r, "holder_preemptions"), 10);
  EXPECT_GT(lock_time(r, "spin_s"), 100us);
}

TEST(MutexStandstill, OfSleepersIsFound) {
  const auto take = [](std::size_t first, std::size_t second) {
    return Program{hold(first, Program{user(always(1us)), hold(second, always(1us))})};
  };
  SimulationConfig config = one_lock("mutex", {{"spin", false}}, {take(0, 1), take(1, 0)});
  config.vms[0].guest.locks.push_back({"m", {"mutex", {}}});
  const Results r = simulate_to_the_end(std::move(config));
  EXPECT_EQ(r.run().ended, RunResult::Ended::kDeadlock);
  EXPECT_NE(r.run().why.find("vms.g.tasks.t0.0 waits for lock \"m\", held by vms.g.tasks.t1.0"), std::string::npos)
      << r.run().why;
}

TEST(MutexNatively, NeedsNoHypervisor) {
  SimulationConfig config = one_lock("mutex", {}, {{hold_for(50us)}, {after(1us), hold_for(1us)}});
  config.vms[0].native = true;
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(lock_count(r, "halts"), 0);
}

}  // namespace
}  // namespace vcpusim::testing
