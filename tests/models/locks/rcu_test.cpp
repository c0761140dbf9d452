// RCU: readers that never wait, grace periods that wait for the vCPUs of all readers.
#include <gtest/gtest.h>

#include "tests/models/locks/lock_runs.h"

namespace vcpusim::testing {
namespace {

std::shared_ptr<const Operation> read(Distribution span) {
  Fill fill;
  fill.indices["rcu_read"] = 0;
  fill.distributions["hold"] = std::move(span);
  return operation("rcu_read", std::move(fill));
}
std::shared_ptr<const Operation> read(Program body) {
  Fill fill;
  fill.indices["rcu_read"] = 0;
  fill.bodies["do"] = std::move(body);
  return operation("rcu_read", std::move(fill));
}
std::shared_ptr<const Operation> read_for(Duration span) { return read(always(span)); }
std::shared_ptr<const Operation> after(Duration span) { return user(always(span)); }
std::shared_ptr<const Operation> update() { return hold(0, always(1us)); }

constexpr Duration kTick = 1ms;

SimulationConfig ticking(SimulationConfig config) {
  config.vms[0].guest.tick = kTick;
  return config;
}
Duration longest_grace_period(const Results& r) { return r.microseconds("vms.g.locks.l.grace_period_us.max"); }

TEST(RcuReaders, NeverWait) {
  // Updaters keep grace periods under way all the time, and one of them holds the updaters' lock for long.
  std::vector<Program> programs{{repeat(1000, {read_for(1us)})}};
  for (int i = 0; i < 3; ++i) programs.push_back(forever({hold(0, always(100us)), after(1us)}));
  const Results r = simulate(ticking(one_lock("rcu", {}, std::move(programs))), 10ms);
  EXPECT_EQ(lock_count(r, "reads"), 1000);
  // What they compute, and the exit of one tick.
  EXPECT_EQ(r.time("vms.g.tasks.t0.elapsed_s"), 1ms + 200ns);
  EXPECT_GT(lock_count(r, "grace_periods"), 5);
  EXPECT_GT(lock_count(r, "contended"), 5);
}

TEST(RcuReaders, AreOutlastedByGracePeriods) {
  // The vCPU of the reader runs, and ticks, but is inside of the section.
  const Results r =
      simulate_to_the_end(ticking(one_lock("rcu", {}, {{read_for(10ms), after(5ms)}, {after(3ms), update()}})));
  const Duration grace_period = r.time("vms.g.tasks.t1.elapsed_s") - 3ms;
  EXPECT_GE(grace_period, 7ms);
  EXPECT_LE(grace_period, 7ms + kTick);  // the first tick in user mode
  EXPECT_EQ(lock_count(r, "grace_periods"), 1);
}

TEST(RcuReaders, MayHoldLocksInside) {
  SimulationConfig config =
      one_lock("rcu", {}, {{repeat(100, {read(Program{hold(1, always(1us))})})}, {repeat(5, {update()})}});
  config.vms[0].guest.locks.push_back({"timer", {"ticket", {}}});
  const Results r = simulate_to_the_end(ticking(std::move(config)));
  EXPECT_EQ(lock_count(r, "reads"), 100);
  EXPECT_EQ(r.count("vms.g.locks.timer.acquisitions"), 100);
}

// The vCPU of task 0 waits for its pCPU every other 10 ms; the same guest alone on the host has its tick.
TEST(RcuGracePeriod, IsDelayedByAPreemptedVcpu) {
  std::map<bool, Duration> longest;
  for (const bool overcommitted : {false, true}) {
    SimulationConfig config = ticking(one_lock("rcu", {}, {busy(), forever({after(3ms), update()})}));
    if (overcommitted) add_rival(config, 0, 10ms);
    const Results r = simulate(config, 1s);
    EXPECT_GT(lock_count(r, "grace_periods"), 20);
    longest[overcommitted] = longest_grace_period(r);
  }
  EXPECT_LE(longest[false], kTick);
  EXPECT_GE(longest[true], 5ms);
  EXPECT_LE(longest[true], 10ms + kTick);
}

TEST(RcuGracePeriod, DoesNotWaitForIdleVcpus) {
  const Results r =
      simulate_to_the_end(ticking(one_lock("rcu", {}, {{sleep(always(1s))}, {after(3ms), repeat(10, {update()})}})));
  EXPECT_EQ(lock_count(r, "grace_periods"), 10);
  EXPECT_LT(longest_grace_period(r), 1us);
}

// A vCPU that has halted in a spinlock is in the kernel: it passes no quiescent state before it is kicked.
TEST(RcuGracePeriod, WaitsForAVcpuThatHasHaltedInASpinlock) {
  SimulationConfig config = one_lock(
      "rcu", {}, {{hold(1, always(20ms))}, {after(1us), hold_irqs_off(1, always(1us))}, {after(3ms), update()}});
  config.vms[0].guest.locks.push_back({"spin", {"pv_ticket", {{"spin_threshold", std::int64_t{100}}}}});
  const Results r = simulate_to_the_end(ticking(std::move(config)));
  EXPECT_EQ(r.count("vms.g.locks.spin.halts"), 1);
  EXPECT_GE(longest_grace_period(r), 16ms);
}

TEST(RcuGracePeriod, EndsInUserModeIfThereIsNoClock) {
  const Results r = simulate_to_the_end(
      one_lock("rcu", {}, {{kernel(always(10ms)), after(10ms)}, {after(3ms), update(), after(10ms), update()}}));
  EXPECT_EQ(lock_count(r, "grace_periods"), 2);
  // The first lasts until task 0 returns to user mode at 10 ms, the second finds it there.
  EXPECT_NEAR(milliseconds(longest_grace_period(r)), 7, 0.01);
  EXPECT_LT(r.microseconds("vms.g.locks.l.grace_period_us.mean"), 3600us);
}

TEST(RcuUpdaters, ShareTheNextGracePeriod) {
  // Task 1 starts one while task 0 reads; tasks 2 and 3 come in the midst of it, and have to wait for another.
  const Results r = simulate_to_the_end(ticking(one_lock(
      "rcu", {},
      {{read_for(10ms), after(5ms)}, {after(3ms), update()}, {after(4ms), update()}, {after(5ms), update()}})));
  EXPECT_EQ(lock_count(r, "acquisitions"), 3);
  EXPECT_EQ(lock_count(r, "grace_periods"), 2);
}

TEST(RcuUpdaters, LeaveTheirFreesForLater) {
  const Params deferred{{"synchronous", false}};
  SimulationConfig config = ticking(
      one_lock("rcu", deferred, {{read_for(10ms), after(10ms)}, {repeat(50, {update(), kernel(always(1us))})}}));
  const Results early = simulate(config, 5ms);
  EXPECT_LT(early.time("vms.g.tasks.t1.elapsed_s"), 110us);
  EXPECT_EQ(lock_count(early, "frees_deferred"), 50);
  EXPECT_EQ(lock_count(early, "frees_done"), 0);
  const Results late = simulate(config, 20ms);
  EXPECT_EQ(lock_count(late, "frees_done"), 50);
  EXPECT_EQ(lock_count(late, "grace_periods"), 2);  // the first free's, and that of all others
}

// The lookup of a posix timer: a global lock around that of the timer, or a reader around it. Each task has its timer.
TEST(RcuReaders, ScaleWhereAGlobalLockDoesNot) {
  std::map<bool, double> rate;
  for (const bool with_rcu : {false, true}) {
    std::vector<Program> programs;
    for (std::size_t task = 0; task < 8; ++task) {
      const Program lookup{kernel(always(100ns)), hold(1 + task, always(50ns))};
      programs.push_back(forever({after(200ns), with_rcu ? read(lookup) : hold(0, lookup)}));
    }
    SimulationConfig config = one_lock(with_rcu ? "rcu" : "ticket", {}, std::move(programs));
    for (int i = 0; i < 8; ++i) config.vms[0].guest.locks.push_back({"timer" + std::to_string(i), {"ticket", {}}});
    config.vms[0].native = true;
    const Results r = simulate(config, 1ms);
    for (int i = 0; i < 8; ++i) rate[with_rcu] += r.number("vms.g.tasks.t" + std::to_string(i) + ".operations");
  }
  EXPECT_GT(rate[true], 3.5 * rate[false]);
}

}  // namespace
}  // namespace vcpusim::testing
