// The paravirtual queue spinlock: its races, forced by the time of the release, stealing, and who is kicked when.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/locks/lock_runs.h"

namespace vcpusim::testing {
namespace {

// A budget of 1 us.
Params short_spins(Params more = {}) {
  Params params{
      {"spin_threshold", std::int64_t{100}}, {"check_period", std::int64_t{16}}, {"kick_cost", Duration(100ns)}};
  more.merge(params);
  return more;
}

std::shared_ptr<const Operation> after(Duration span) { return user(always(span)); }
std::shared_ptr<const Operation> hold_for(Duration span) { return hold(0, always(span)); }

Results run(const Params& params, std::vector<Program> programs) {
  return simulate_to_the_end(one_lock("pv_qspinlock", params, std::move(programs)), 1ms);
}

class PvQspinlock : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Steal, PvQspinlock, ::testing::Values("none", "once", "hybrid"));

// ---- races -----------------------------------------------------------------------------------------------------
// There is no clock, so a halted vCPU that nobody kicks sleeps for ever.

TEST_P(PvQspinlock, LosesNoWakeUpWhenTheHeadHashesWhileTheOwnerReleases) {
  std::map<Outcome, int> seen;
  int took_by_swap = 0;
  for (Duration hold_time = 900ns; hold_time <= 1700ns; hold_time += Duration(500)) {
    const Results r =
        run(short_spins({{"steal", GetParam()}}), {{hold_for(hold_time)}, {after(50ns), hold_for(100ns)}});
    ASSERT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone) << hold_time.count() << r.run().why;
    const auto [halts, kicks, spurious] = outcome(r);
    ASSERT_LE(halts, 1);
    ASSERT_EQ(kicks, r.count("host.exits.hypercall"));
    ASSERT_LE(kicks, 1);
    ASSERT_EQ(spurious, 0);
    ++seen[{halts, kicks, spurious}];
    // Its budget was spent, yet it neither halts nor is kicked: its swap found the lock free.
    took_by_swap += halts == 0 && kicks == 0 && lock_time(r, "spin_s") == Duration(1us) ? 1 : 0;
  }
  EXPECT_GT((seen[{0, 0, 0}]), 0);
  EXPECT_GT((seen[{1, 1, 0}]), 200);
  EXPECT_EQ(seen.size(), 2U);  // after its swap, a slow release takes longer than its last look
  EXPECT_GT(took_by_swap, 0);
}

TEST_P(PvQspinlock, LosesNoWakeUpWhereverTheHeadIsPreempted) {
  std::map<Outcome, int> seen;
  int kicked_before_it_halted = 0;
  for (Duration quantum = 900ns; quantum <= 1700ns; quantum += 2ns) {
    SimulationConfig config = one_lock("pv_qspinlock", short_spins({{"steal", GetParam()}}),
                                       {{hold_for(2 * quantum + 300ns)}, {after(50ns), hold_for(100ns)}});
    add_rival(config, 1, quantum);  // it comes first and third
    const Results r = simulate(config, 1ms);
    ASSERT_EQ(lock_count(r, "acquisitions"), 2) << quantum.count();
    const auto [halts, kicks, spurious] = outcome(r);
    ++seen[{halts, kicks, spurious}];
    kicked_before_it_halted += halts == 1 && kicks == 1 && blocked(r, 1, acquired_at(r, 1)) == 0 ? 1 : 0;
  }
  EXPECT_GT((seen[{0, 0, 0}]), 0);
  EXPECT_GT((seen[{0, 1, 0}]), 0);
  EXPECT_GT((seen[{1, 1, 0}]), 0);
  EXPECT_GT(kicked_before_it_halted, 50);
}

// Task 2 becomes owner, and grants task 3 the headship, at each half nanosecond of a window around the moment in which
// the latter halts in the queue. (Task 2 is a fresh head then, so that it has not halted itself.)
TEST_P(PvQspinlock, LosesNoWakeUpWhenAWaiterHaltsWhileItIsGranted) {
  std::map<Outcome, int> seen;
  for (Duration hold_time = 500ns; hold_time <= 950ns; hold_time += Duration(500)) {
    const Results r = run(short_spins({{"steal", GetParam()}, {"wait_early", std::string("off")}}),
                          {{hold_for(1us)},
                           {after(600ns), hold_for(hold_time)},
                           {after(650ns), hold_for(100ns)},
                           {after(700ns), hold_for(100ns)}});
    ASSERT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone) << hold_time.count() << r.run().why;
    ASSERT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1, 2, 3}));
    ++seen[outcome(r)];
  }
  EXPECT_GT((seen[{0, 0, 0}]), 100);  // granted while it spun, or seen by its last look
  EXPECT_GT((seen[{1, 1, 0}]), 100);  // halted, hashed by the owner, kicked by its release
  EXPECT_EQ(seen.size(), 2U);         // without a preemption, its last look comes before the owner's
}

// The same with the waiter's vCPU preempted at each half nanosecond of that window. The head has halted in these runs.
TEST_P(PvQspinlock, LosesNoWakeUpWhereverAWaiterIsPreempted) {
  std::map<Outcome, int> seen;
  int kicked_before_it_halted = 0;
  for (Duration quantum = 1150ns; quantum <= 1550ns; quantum += Duration(500)) {
    SimulationConfig config = one_lock(
        "pv_qspinlock", short_spins({{"steal", GetParam()}, {"wait_early", std::string("off")}}),
        {{hold_for(2 * quantum + 300ns)}, {after(quantum + 150ns), hold_for(100ns)}, {after(200ns), hold_for(100ns)}});
    add_rival(config, 2, quantum);  // it comes first and third
    const Results r = simulate(config, 1ms);
    ASSERT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1, 2})) << quantum.count();
    const auto [halts, kicks, spurious] = outcome(r);
    ++seen[{halts, kicks, spurious}];
    kicked_before_it_halted += halts == 2 && kicks == 2 && blocked(r, 2, acquired_at(r, 2)) == 0 ? 1 : 0;
  }
  EXPECT_GT((seen[{1, 1, 0}]), 0);  // granted while it spun
  EXPECT_GT((seen[{1, 2, 0}]), 0);  // hashed by the owner, but it saw the grant and did not halt
  EXPECT_GT((seen[{2, 2, 0}]), 0);
  EXPECT_GT(kicked_before_it_halted, 50);
}

TEST(PvQspinlockHead, NeverHaltsAgainAfterItHasLostTheLockToAStealer) {
  // Task 1 halts as head; task 2 comes then and spins beside the queue; it steals from the kicked head.
  const Results r = run(short_spins(), {{hold_for(3us)}, {after(50ns), hold_for(100ns)}, {after(2us), hold_for(50us)}});
  EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 2, 1}));
  EXPECT_EQ(lock_count(r, "steals"), 1);
  EXPECT_EQ(lock_count(r, "halts"), 1);  // though 50 us are as long as fifty of its budgets
  EXPECT_EQ(lock_count(r, "kicks"), 1);
  EXPECT_EQ(lock_count(r, "spurious_wakeups"), 1);
  EXPECT_GT(lock_time(r, "spin_s"), 45us);
}

TEST(PvQspinlockHead, HaltsAgainIfOnlyAnInterruptHasWokenIt) {
  SimulationConfig config = one_lock("pv_qspinlock", short_spins(), {{hold_for(10ms)}, {after(50ns), hold_for(100ns)}});
  config.vms[0].guest.tick = 1ms;
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(lock_count(r, "halts"), 11);
  EXPECT_EQ(lock_count(r, "kicks"), 1);
}

// ---- stealing --------------------------------------------------------------------------------------------------

std::vector<Program> crowd(int tasks) {
  std::vector<Program> programs;
  for (int i = 0; i < tasks; ++i) {
    programs.push_back({repeat(300, {user(exponential(1us)), hold(0, exponential(1us))})});
  }
  return programs;
}

TEST_P(PvQspinlock, StealsIfAndOnlyIfItMay) {
  const Results r = simulate_to_the_end(one_lock("pv_qspinlock", short_spins({{"steal", GetParam()}}), crowd(6)));
  EXPECT_EQ(lock_count(r, "acquisitions"), 1800);
  EXPECT_GT(lock_count(r, "halts"), 100);
  if (GetParam() == "none") {
    EXPECT_EQ(lock_count(r, "steals"), 0);
  } else {
    EXPECT_GT(lock_count(r, "steals"), 20);
  }
}

TEST(PvQspinlockSteal, OnceIsOnArrivalAndHybridGoesOn) {
  // Task 1 halts as head. Task 2 arrives long before the release: too early for its one attempt.
  const std::vector<Program> programs{{hold_for(10us)}, {after(50ns), hold_for(100ns)}, {after(5us), hold_for(100ns)}};
  const Results once = run(short_spins({{"steal", std::string("once")}}), programs);
  EXPECT_EQ(owners(once), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(lock_count(once, "steals"), 0);
  const Results hybrid = run(short_spins({{"steal", std::string("hybrid")}}), programs);
  EXPECT_EQ(owners(hybrid), (std::vector<std::uint32_t>{0, 2, 1}));
  EXPECT_EQ(lock_count(hybrid, "steals"), 1);
}

TEST(PvQspinlockSteal, IsForbiddenWhileTheHeadSpins) {
  const Results r = run({}, {{hold_for(10us)}, {after(50ns), hold_for(100ns)}, {after(5us), hold_for(100ns)}});
  EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(lock_count(r, "steals"), 0);
  EXPECT_EQ(lock_count(r, "halts"), 0);
}

TEST(PvQspinlockSteal, WithoutItTheOrderIsThatOfArrival) {
  std::vector<Program> programs{{hold_for(100us)}};
  for (int i = 1; i < 8; ++i) programs.push_back({after((8 - i) * 3us), hold_for(1us)});
  const Results r = run(short_spins({{"steal", std::string("none")}}), std::move(programs));
  EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(lock_count(r, "halts"), 7);
  EXPECT_EQ(lock_count(r, "kicks"), 7);
}

// ---- wait_early ------------------------------------------------------------------------------------------------

TEST(PvQspinlockWaitEarly, AWaiterBehindAHaltedNodeHaltsAtOnce) {
  const std::vector<Program> programs{
      {hold_for(20us)}, {after(50ns), hold_for(100ns)}, {after(5us), hold_for(100ns)}, {after(6us), hold_for(100ns)}};
  const Params once{{"steal", std::string("once")}};
  const auto spun = [&](const char* form) {
    Params params = once;
    params["wait_early"] = std::string(form);
    const Results r = run(short_spins(params), programs);
    EXPECT_EQ(lock_count(r, "halts"), 3) << form;
    return lock_time(r, "spin_s");
  };
  // Tasks 2 and 3 spend their budgets, or nothing; what is left of all others is spent by the head.
  EXPECT_NEAR(milliseconds(spun("off") - spun("node")), milliseconds(2us), milliseconds(200ns));
  EXPECT_EQ(spun("node"), spun("node_or_preempted"));
}

// Task 1, with a long budget, is preempted at 10 us for 10 us, while task 2 spins behind it.
TEST(PvQspinlockWaitEarly, ThePreemptedFlagCountsInOneFormOnlyAndNeedsAStealClock) {
  for (const bool steal_clock : {false, true}) {
    for (const char* form : {"off", "node", "node_or_preempted"}) {
      const Params params{{"spin_threshold", std::int64_t{10000}},
                          {"check_period", std::int64_t{50}},
                          {"wait_early", std::string(form)}};
      SimulationConfig config = one_lock(
          "pv_qspinlock", params, {{hold_for(35us)}, {after(50ns), hold_for(1us)}, {after(12us), hold_for(1us)}});
      add_rival(config, 1, 10us);  // task 1 runs from 10 to 20 us, and from 30 us on
      if (steal_clock) config.host.assists["steal_clock"] = {"steal_clock", {}};
      const Results r = simulate(config, 1ms);
      ASSERT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1, 2}));
      const bool halts = steal_clock && form == std::string("node_or_preempted");
      EXPECT_EQ(lock_count(r, "halts"), halts ? 1 : 0) << form << steal_clock;
      if (!halts) continue;
      // It is looked at once every 500 ns of spinning from 12 us on: a little after 20 us.
      const Stint spun = r.stints_of(2).front();
      EXPECT_EQ(spun.then, HostState::kHalted);
      EXPECT_GT(spun.end, at(20us));
      EXPECT_LT(spun.end, at(20us + 500ns + 500ns));
      EXPECT_LT(lock_time(r, "spin_s"), 20us + 10us + 1us);
    }
  }
}

TEST(PvQspinlockWaitEarly, LooksCostNoEvents) {
  // A wait of 100000 turns, with and without looks at a predecessor that runs.
  const auto events = [](const char* form) {
    const Params params{{"spin_threshold", std::int64_t{1} << 20}, {"wait_early", std::string(form)}};
    return run(params, {{hold_for(900us)}, {after(50ns), hold_for(1us)}, {after(1us), hold_for(1us)}})
        .count("host.events");
  };
  EXPECT_LE(events("node"), events("off") + 3);
  EXPECT_LE(events("node_or_preempted"), events("off") + 3);
  EXPECT_LT(events("off"), 100);
}

// ---- kicks -----------------------------------------------------------------------------------------------------

// vCPUs woken between the release of the first owner and the next acquisition.
std::size_t woken_by_first_release(const Params& params, int waiters) {
  std::vector<Program> programs{{hold_for(100us)}};
  for (int i = 0; i < waiters; ++i) programs.push_back({after((i + 1) * 2us), hold_for(20us)});
  SimulationConfig config = one_lock("pv_qspinlock", params, std::move(programs));
  config.host.machine.costs.transitions.idle_wake = 10us;  // the head takes its time
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(lock_count(r, "acquisitions"), waiters + 1);
  return static_cast<std::size_t>(std::ranges::count_if(r.of_kind(TraceKind::kWake), [&](const TraceRecord& wake) {
    return wake.time > released_at(r, 0) && wake.time <= acquired_at(r, 1);
  }));
}

TEST(PvQspinlockKickAhead, KicksSoManyBehindTheHead) {
  for (const std::int64_t level : {0, 1, 2, 4}) {
    const Params params = short_spins({{"kick_ahead", level}, {"steal", std::string("once")}});
    EXPECT_EQ(woken_by_first_release(params, 6), static_cast<std::size_t>(1 + level));
  }
}

// The woken vCPUs take 10 us to run, while sections of 100 ns come and go.
TEST(PvQspinlockKickAhead, KicksNobodyTwice) {
  std::vector<Program> programs{{hold_for(100us)}};
  for (int i = 0; i < 7; ++i) programs.push_back({after((i + 1) * 2us), hold_for(100ns)});
  SimulationConfig config =
      one_lock("pv_qspinlock", short_spins({{"kick_ahead", std::int64_t{6}}, {"steal", std::string("once")}}),
               std::move(programs));
  config.host.machine.costs.transitions.idle_wake = 10us;
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(lock_count(r, "halts"), 7);
  EXPECT_EQ(lock_count(r, "kicks"), 7);
}

TEST(PvQspinlockKickAhead, ItsLevelFollowsTheNumberOfVcpus) {
  const Params params = short_spins({{"kick_ahead", std::int64_t{-1}}, {"steal", std::string("once")}});
  for (const auto& [vcpus, level] :
       std::map<int, std::size_t>{{3, 0}, {4, 1}, {7, 1}, {8, 2}, {15, 2}, {16, 3}, {31, 3}, {32, 4}, {40, 4}}) {
    EXPECT_EQ(woken_by_first_release(params, vcpus - 1), 1 + level) << vcpus;
  }
}

TEST(PvQspinlockKick, HappensAtLockTimeOrAtUnlockTime) {
  // Tasks 1 and 2 halt; task 1 then holds for 20 us.
  const auto woken = [](Params params, int idle_vcpus) {
    std::vector<Program> programs{{hold_for(10us)}, {after(1us), hold_for(20us)}, {after(2us), hold_for(1us)}};
    for (int i = 0; i < idle_vcpus; ++i) programs.push_back({after(1ns)});
    params["steal"] = std::string("once");
    const Results r = run(short_spins(params), std::move(programs));
    EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 1, 2}));
    SimTime first = kNever;
    for (const TraceRecord& wake : r.of_kind(TraceKind::kWake)) {
      if (wake.subject == 2 && wake.time > at(5us)) first = std::min(first, wake.time);
    }
    return std::pair{first < released_at(r, 1), lock_count(r, "kicks")};
  };
  const auto at_lock_time = std::pair{true, std::int64_t{3}};  // it halts again in the long section: two kicks for it
  const auto at_unlock_time = std::pair{false, std::int64_t{2}};
  EXPECT_EQ(woken({{"kick", std::string("lock_time")}}, 0), at_lock_time);
  EXPECT_EQ(woken({{"kick", std::string("unlock_time")}}, 0), at_unlock_time);
  EXPECT_EQ(woken({{"kick", std::string("adaptive")}}, 0), at_unlock_time);  // a guest of three
  EXPECT_EQ(woken({{"kick", std::string("adaptive")}}, 1), at_lock_time);    // a guest of four ...
}

TEST(PvQspinlockKick, AdaptiveIsAtUnlockTimeIfThereIsKickAhead) {
  const auto metrics = [](const char* kick) {
    const Params params{{"kick", std::string(kick)}, {"kick_ahead", std::int64_t{1}}};
    const Results r = simulate_to_the_end(one_lock("pv_qspinlock", short_spins(params), crowd(6)));
    return std::tuple{lock_count(r, "kicks"), lock_count(r, "halts"), lock_time(r, "spin_s")};
  };
  EXPECT_EQ(metrics("adaptive"), metrics("unlock_time"));
  EXPECT_NE(metrics("adaptive"), metrics("lock_time"));
}

TEST(PvQspinlockKick, AtMostOncePerReleaseWithoutKickAhead) {
  const Results r = simulate_to_the_end(one_lock("pv_qspinlock", short_spins(), crowd(6)));
  EXPECT_GT(lock_count(r, "kicks"), 50);
  EXPECT_LE(lock_count(r, "kicks"), lock_count(r, "acquisitions"));
  EXPECT_EQ(lock_count(r, "kicks"), r.count("host.exits.hypercall"));
}

TEST(PvQspinlockNatively, IsAQueueSpinlock) {
  std::vector<std::vector<std::uint32_t>> orders;
  for (const std::string kind : {"qspinlock", "pv_qspinlock"}) {
    SimulationConfig config = one_lock(kind, kind == "qspinlock" ? Params{} : short_spins(), crowd(6));
    config.vms[0].native = true;
    const Results r = simulate_to_the_end(config);
    EXPECT_EQ(lock_count(r, "halts"), 0);
    EXPECT_GT(lock_count(r, "contended"), 500);
    orders.push_back(owners(r));
  }
  EXPECT_EQ(orders[0], orders[1]);
}

}  // namespace
}  // namespace vcpusim::testing
