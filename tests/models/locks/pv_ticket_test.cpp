// The paravirtual ticket lock: its races, forced by the time of the release, and what it costs.
#include <gtest/gtest.h>

#include "tests/models/locks/lock_runs.h"

namespace vcpusim::testing {
namespace {

Params short_spins(const std::string& flag) {
  return {{"spin_threshold", std::int64_t{100}}, {"flag", flag}, {"kick_cost", Duration(100ns)}};
}

class PvTicket : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Flag, PvTicket, ::testing::Values("tail", "head"));

// The owner releases at each half nanosecond of a window around the moment in which the waiter halts. Nothing but a
// kick can wake it: there is no clock.
TEST_P(PvTicket, LosesNoWakeUpWheneverTheOwnerReleases) {
  std::map<Outcome, int> seen;
  int blocked_runs = 0;
  for (Duration hold_for = 900ns; hold_for <= 1700ns; hold_for += Duration(500)) {
    const Results r =
        simulate_to_the_end(one_lock("pv_ticket", short_spins(GetParam()),
                                     {{hold(0, always(hold_for))}, {user(always(50ns)), hold(0, always(100ns))}}),
                            1ms);
    ASSERT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone) << hold_for.count() << r.run().why;
    const auto [halts, kicks, spurious] = outcome(r);
    ASSERT_LE(halts, 1);
    ASSERT_LE(kicks, 1);
    ASSERT_EQ(spurious, 0);
    ++seen[{halts, kicks, spurious}];
    const bool was_blocked = blocked(r, 1, acquired_at(r, 1)) > 0;
    blocked_runs += was_blocked ? 1 : 0;
    ASSERT_EQ(was_blocked, halts == 1);
  }
  EXPECT_GT((seen[{0, 0, 0}]), 0);    // seen while it spun, or by its last look, before the flag was set
  EXPECT_GT((seen[{0, 1, 0}]), 0);    // seen by its last look, and kicked although awake
  EXPECT_GT((seen[{1, 1, 0}]), 200);  // halted and kicked
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_EQ(blocked_runs, (seen[{1, 1, 0}]));
}

// The same with the waiter's vCPU preempted at every 2 ns of that window and the release in the meantime.
TEST_P(PvTicket, LosesNoWakeUpWhereverTheWaiterIsPreempted) {
  std::map<Outcome, int> seen;
  int kicked_before_it_halted = 0;
  for (Duration quantum = 900ns; quantum <= 1700ns; quantum += 2ns) {
    SimulationConfig config =
        one_lock("pv_ticket", short_spins(GetParam()),
                 {{hold(0, always(2 * quantum + 300ns))}, {user(always(50ns)), hold(0, always(100ns))}});
    add_rival(config, 1, quantum);  // it comes first and third
    config.stop.at = 1ms;
    const Results r = simulate(config);
    ASSERT_EQ(lock_count(r, "acquisitions"), 2) << quantum.count();
    ++seen[outcome(r)];
    const auto [halts, kicks, spurious] = outcome(r);
    kicked_before_it_halted += halts == 1 && kicks == 1 && blocked(r, 1, acquired_at(r, 1)) == 0 ? 1 : 0;
  }
  EXPECT_GT((seen[{0, 0, 0}]), 0);
  EXPECT_GT((seen[{0, 1, 0}]), 0);
  EXPECT_GT((seen[{1, 1, 0}]), 0);
  EXPECT_GT(kicked_before_it_halted, 50);  // between its last look and the end of its exit: the kick is kept
}

TEST_P(PvTicket, ServesHaltedWaitersInOrderWithOneKickEach) {
  std::vector<Program> programs{{hold(0, always(100us))}};
  for (int i = 1; i < 8; ++i) programs.push_back({user(always((8 - i) * 1us)), hold(0, always(1us))});
  const Results r = simulate_to_the_end(one_lock("pv_ticket", short_spins(GetParam()), std::move(programs)));
  EXPECT_EQ(owners(r), (std::vector<std::uint32_t>{0, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(lock_count(r, "halts"), 7);
  EXPECT_EQ(lock_count(r, "kicks"), 7);
  EXPECT_EQ(r.count("host.exits.hypercall"), 7);
  EXPECT_GT(lock_time(r, "idle_reserved_s"), 7 * Duration(300ns));  // each waits for the exit and the kick
}

TEST_P(PvTicket, KicksAtMostOncePerRelease) {
  std::vector<Program> programs;
  for (int i = 0; i < 4; ++i) {
    programs.push_back({repeat(200, {user(exponential(2us)), hold(0, exponential(1500ns))})});
  }
  SimulationConfig config = one_lock("pv_ticket", short_spins(GetParam()), std::move(programs));
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(lock_count(r, "acquisitions"), 800);
  EXPECT_LE(lock_count(r, "kicks"), lock_count(r, "acquisitions"));
  EXPECT_GT(lock_count(r, "kicks"), 100);
  EXPECT_GT(lock_count(r, "halts"), 100);
}

// Interrupts were enabled when it asked for the lock: the clock wakes it, in vain, and it halts again.
TEST_P(PvTicket, AnInterruptEndsAHaltUnlessInterruptsWereDisabled) {
  for (const bool irqs_off : {false, true}) {
    const auto section = irqs_off ? hold_irqs_off(0, always(1us)) : hold(0, always(1us));
    SimulationConfig config =
        one_lock("pv_ticket", short_spins(GetParam()), {{hold(0, always(10ms))}, {user(always(50ns)), section}});
    config.vms[0].guest.tick = 1ms;
    const Results r = simulate_to_the_end(config);
    EXPECT_EQ(lock_count(r, "spurious_wakeups"), irqs_off ? 0 : 10);
    EXPECT_EQ(lock_count(r, "halts"), irqs_off ? 1 : 11);
    EXPECT_EQ(lock_count(r, "kicks"), 1);
  }
}

// The waiter halts on the pCPU of the owner; woken, it would wait there for the rest of the owner's turn.
TEST_P(PvTicket, AKickMayYieldToTheKickedVcpu) {
  for (const bool yields : {false, true}) {
    Params params = short_spins(GetParam());
    params["kick_yield"] = yields;
    SimulationConfig config =
        one_lock("pv_ticket", params, {{hold(0, always(15ms)), user(always(4ms))}, {hold(0, always(1us))}});
    config.host.pcpus = 1;
    config.host.scheduler.params["quantum"] = Duration(10ms);
    const Results r = simulate_to_the_end(config);
    const Duration wait = acquired_at(r, 1) - released_at(r, 0);
    if (yields) {
      EXPECT_LT(wait, 2us);
    } else {
      EXPECT_GT(wait, 3ms);
    }
    EXPECT_EQ(lock_count(r, "kicks"), 1);
  }
}

TEST_P(PvTicket, FlagOutlivesItsCauseAtMostUntilTheQueueIsEmpty) {
  // One waiter halts, then the owner comes back alone: only the first of its later releases may be slow.
  const Results r =
      simulate_to_the_end(one_lock("pv_ticket", short_spins(GetParam()),
                                   {{hold(0, always(10us)), user(always(20us)), repeat(5, {hold(0, always(1us))})},
                                    {user(always(1us)), hold(0, always(1us))}}));
  EXPECT_EQ(lock_count(r, "halts"), 1);
  EXPECT_EQ(lock_count(r, "kicks"), 1);
}

TEST_P(PvTicket, WithoutContentionCostsAtMostOnePercentMoreThanATicketLock) {
  for (const bool native : {false, true}) {
    std::map<std::string, double> rate;
    for (const std::string kind : {"ticket", "pv_ticket"}) {
      const Params params = kind == "ticket" ? Params{} : Params{{"flag", GetParam()}};
      SimulationConfig config =
          one_lock(kind, params, {forever({user(exponential(2us)), hold(0, exponential(500ns))})});
      config.host.machine = find_machine_kind("generic")->make();
      config.vms[0].native = native;
      rate[kind] = simulate(config, 100ms).number("vms.g.tasks.t0.operations");
    }
    EXPECT_GT(rate["pv_ticket"], 0.99 * rate["ticket"]) << native;
    EXPECT_LE(rate["pv_ticket"], rate["ticket"]) << native;
  }
}

TEST(PvTicketStandstill, OfHaltedWaitersIsFound) {
  const auto take = [](std::size_t first, std::size_t second) {
    return Program{hold(first, Program{user(always(1us)), hold(second, always(1us))})};
  };
  SimulationConfig config = one_lock("pv_ticket", short_spins("head"), {take(0, 1), take(1, 0)});
  config.vms[0].guest.locks.push_back({"m", {"pv_ticket", short_spins("tail")}});
  const Results r = simulate_to_the_end(std::move(config));
  EXPECT_EQ(r.run().ended, RunResult::Ended::kDeadlock);
  EXPECT_NE(r.run().why.find("vms.g.tasks.t0.0 waits for lock \"m\", held by vms.g.tasks.t1.0"), std::string::npos)
      << r.run().why;
  EXPECT_EQ(lock_count(r, "halts"), 1);
}

TEST(PvTicketNatively, IsATicketLock) {
  std::vector<std::vector<std::uint32_t>> orders;
  for (const std::string kind : {"ticket", "pv_ticket"}) {
    std::vector<Program> programs;
    for (int i = 0; i < 4; ++i) programs.push_back(forever({user(exponential(1us)), hold(0, exponential(3us))}));
    SimulationConfig config = one_lock(kind, {}, std::move(programs));
    config.vms[0].native = true;
    const Results r = simulate(config, 10ms);
    EXPECT_EQ(lock_count(r, "halts"), 0);
    EXPECT_GT(lock_count(r, "contended"), 1000);
    orders.push_back(owners(r));
  }
  EXPECT_EQ(orders[0], orders[1]);
}

}  // namespace
}  // namespace vcpusim::testing
