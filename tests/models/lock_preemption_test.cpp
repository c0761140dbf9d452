// What happens to spinlocks when the vCPUs of their holders and waiters lose their pCPUs, by hand and by closed form.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/simulate.h"
#include "tests/support/statistics.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

// Two vCPUs of one guest on one pCPU, in turns of 10 ms. A computes and holds a lock for long; B takes the lock often,
// for no time at all.
SimulationConfig textbook(const std::string& lock, Duration compute, Duration hold_for) {
  VmConfig vm = guest("g", 2, {});
  vm.guest.locks[0].kind.name = lock;
  vm.tasks.clear();
  vm.tasks.push_back(
      {"a", 1, {user(always(500us)), repeat(kForever, {user(always(compute)), hold(0, always(hold_for))})}});
  vm.tasks.push_back({"b", 1, {user(always(250us)), repeat(kForever, {hold(0, always(0us)), user(always(3ms))})}});
  SimulationConfig config = host("round_robin", 1, {vm});
  config.host.scheduler.params["quantum"] = Duration(10ms);
  return config;
}

TEST(HolderPreemption, UnderAnUnfairLockFollowsTheArithmeticOfTheTextbook) {
  // A alternates 4 ms of computing and 10 ms in the section, after a start of 0.5 ms. The ends of its first seven turns
  // are at 9.5, 5.5, 1.5, 11.5, 7.5, 3.5 and 13.5 ms of this cycle of 14 ms, then it begins again: five of seven are
  // beyond 4 ms, in the section, and B has a turn of 10 ms each time.
  //
  // B wastes what is left of such a turn when it wants the lock. After a turn without the holder it has 2 ms of
  // computing left (0 + 3 + 3 + 3 + 1 ms), after one with the holder nothing: 10, 10, (free), 8, 10, (free), 8 ms in
  // seven turns, but 9.75 ms in the very first, and acquires the lock four times in each free turn.
  constexpr std::int64_t kCycles = 20;
  const Results r = simulate(textbook("ttas", 4ms, 10ms), kCycles * 140ms + 5ms);
  EXPECT_EQ(r.count("vms.g.locks.l.holder_preemptions"), 5 * kCycles);
  EXPECT_EQ(r.time("vms.g.locks.l.holder_preempted_s"), 5 * kCycles * Duration(10ms));
  EXPECT_EQ(r.time("vms.g.time_s.spin"), kCycles * Duration(46ms) - 250us);
  EXPECT_EQ(r.count("vms.g.locks.l.waiter_preemptions"), 5 * kCycles);
  EXPECT_EQ(r.count("vms.g.locks.l.acquisitions"), (5 * kCycles + 1) + 8 * kCycles);
  // Before each free turn of B, which waits, the lock is free for the last 1.5 or 3.5 ms of A's turn, for anybody.
  EXPECT_EQ(r.time("vms.g.locks.l.idle_reserved_s"), Duration::zero());
}

TEST(WaiterPreemption, UnderATicketLockFollowsTheArithmeticOfTheTextbook) {
  // A: 5 ms of computing, 9 ms in the section. By hand, in ms, [A's turn] and [B's turn]:
  //    0 [5.5 compute, hold 4.5]           10 [0.25 compute, spin 9.75]
  //   20 [hold 4.5, compute 5, spin 0.5]   30 [owner after 5.5 unused; compute 3, spin 7]
  //   40 [owner after 10 unused; hold 9, compute 1]
  //   50 [owner after 1 unused; three passes of 3, compute 1]
  //   60 [compute 4, hold 6]               70 [compute 2, spin 8]
  //   80 [hold 3, compute 5, spin 2]       90 [owner after 7 unused; compute 3, spin 7]
  //  100 as at 40, and so on every 60 ms.
  constexpr std::int64_t kCycles = 30;
  const Results r = simulate(textbook("ticket", 5ms, 9ms), 40ms + kCycles * 60ms + 5ms);
  EXPECT_EQ(r.time("vms.g.locks.l.idle_reserved_s"), Duration(5500us + 10ms) + kCycles * 18ms);
  EXPECT_EQ(r.count("vms.g.locks.l.holder_preemptions"), 1 + kCycles);
  EXPECT_EQ(r.time("vms.g.locks.l.holder_preempted_s"), (1 + kCycles) * Duration(10ms));
  EXPECT_EQ(r.time("vms.g.time_s.spin"), Duration(17'250us) + kCycles * 17ms);
}

TEST(HolderPreemption, IncludesTheStoreThatReleasesTheLock) {
  // The store takes from 9.999 to 10.002 ms, but the holder's turn ends at 10 ms and a hog's begins.
  for (const std::string lock : {"ticket", "ttas", "mcs"}) {
    VmConfig vm = guest("g", 2, {});
    vm.guest.locks[0].kind.name = lock;
    vm.tasks.clear();
    vm.tasks.push_back({"holder", 1, {user(always(9ms)), hold(0, always(999us)), user(always(1ms))}});
    vm.tasks.push_back({"waiter", 1, {user(always(9500us)), hold(0, always(1ms))}});
    vm.affinity = {AffinityConfig::Rule::kLists, {{0}, {1}}};
    const VmConfig hog = pinned(guest("hog", 1, {sleep(always(1us)), user(always(1h))}), {0});
    SimulationConfig config = host("round_robin", 2, {hog, vm});
    config.host.machine.costs.same_socket = {.load = 3us, .load_shared = 3us, .store = 3us};
    config.host.scheduler.params["quantum"] = Duration(10ms);
    const Results r = simulate(config, 50ms);
    EXPECT_EQ(r.count("vms.g.locks.l.acquisitions"), 2) << lock;
    EXPECT_EQ(r.count("vms.g.locks.l.holder_preemptions"), 1) << lock;
    EXPECT_EQ(r.time("vms.g.locks.l.holder_preempted_s"), Duration(10ms)) << lock;
    EXPECT_EQ(r.count("vms.g.locks.l.waiter_preemptions"), 0) << lock;
    EXPECT_EQ(r.time("vms.g.locks.l.idle_reserved_s"), Duration::zero()) << lock;
    EXPECT_GT(r.time("vms.g.locks.l.spin_s"), Duration(10ms)) << lock;
  }
}

TEST(HolderPreemption, HappensAsOftenAsTheHoldersShareOfTimeInTheSection) {
  // A turn of 1 ms ends at a random moment of A's cycle of, on average, 80 us outside and 20 us inside.
  std::vector<double> probability;
  std::vector<double> wasted;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    VmConfig vm = guest("g", 2, {});
    vm.guest.locks[0].kind.name = "ttas";
    vm.tasks.clear();
    vm.tasks.push_back({"a", 1, forever({user(exponential(80us)), hold(0, exponential(20us))})});
    vm.tasks.push_back({"b", 1, forever({user(exponential(50us)), hold(0, always(0us))})});
    SimulationConfig config = host("round_robin", 1, {vm});
    config.host.scheduler.params["quantum"] = Duration(1ms);
    config.seed = seed;
    const Results r = simulate(config, 4s);
    const auto turns = static_cast<double>(r.stints_of(0).size());
    ASSERT_NEAR(turns, 2000, 1);
    probability.push_back(r.number("vms.g.locks.l.holder_preemptions") / turns);
    wasted.push_back(r.number("vms.g.time_s.spin") / 2);
  }
  // If the holder is away, B spins for the whole of its turn if it did so at the end of the last, else from the end
  // of its computing, of which 50 us are left on average.
  const double p = 20.0 / (80 + 20);
  EXPECT_TRUE(confidence_interval(probability, 0.99).contains(p)) << confidence_interval(probability, 0.99);
  EXPECT_LT(confidence_interval(probability, 0.99).width(), 0.1 * p);
  const double burnt = p * (p * 1000 + (1 - p) * (1000 - 50)) / 1000;
  EXPECT_TRUE(confidence_interval(wasted, 0.99).contains(burnt)) << confidence_interval(wasted, 0.99);
}

TEST(HolderPreemption, DoesNotHappenOnPcpusOfTheirOwn) {
  for (const LockKind& kind : lock_kinds()) {
    VmConfig vm = guest("g", 4, forever({user(exponential(20us)), hold(0, exponential(5us))}));
    vm.guest.locks[0].kind.name = kind.name;
    SimulationConfig config = host("round_robin", 4, {vm});
    config.host.machine = find_machine_kind("generic")->make();
    config.host.machine.costs.transitions.idle_wake = Duration::zero();
    const Results r = simulate(config, 100ms);
    EXPECT_GT(r.count("vms.g.locks.l.contended"), 100) << kind.name;
    EXPECT_EQ(r.count("vms.g.locks.l.holder_preemptions") + r.count("vms.g.locks.l.waiter_preemptions"), 0);
    EXPECT_EQ(r.number("vms.g.locks.l.idle_reserved_s"), 0) << kind.name;
  }
}

TEST(Locks, AWriterPreemptedInTheMiddleOfItsStoreWritesLateAndIsSeen) {
  // Quanta shorter than the transfers: most stores and reads are cut in two.
  for (const LockKind& kind : lock_kinds()) {
    VmConfig vm = guest("g", 4, {repeat(200, {user(exponential(2us)), hold(0, exponential(1us))})});
    vm.guest.locks[0].kind.name = kind.name;
    SimulationConfig config = host("round_robin", 3, {vm});
    config.host.machine.costs.same_socket = {.load = 3us, .load_shared = 2us, .store = 3us};
    config.host.scheduler.params["quantum"] = Duration(2500ns);
    const Results r = simulate_to_the_end(config, 10s);
    EXPECT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone) << kind.name << ": " << r.run().why;
    EXPECT_EQ(r.count("vms.g.locks.l.acquisitions"), 800) << kind.name;
  }
}

TEST(Locks, CountsOfTheWarmUpAreForgottenEvenForThoseWhoWait) {
  VmConfig vm = guest("g", 2, {});
  vm.tasks.clear();
  vm.tasks.push_back({"holder", 1, {hold(0, always(10ms)), user(always(1ms))}});
  vm.tasks.push_back({"waiter", 1, {user(always(1ms)), hold(0, always(1ms))}});
  SimulationConfig config = host("round_robin", 2, {vm});
  config.warmup = 8ms;
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(r.time("vms.g.locks.l.spin_s"), Duration(2ms));
  EXPECT_EQ(r.time("vms.g.time_s.spin"), Duration(2ms));
  EXPECT_EQ(r.count("vms.g.locks.l.acquisitions"), 1);
}

}  // namespace
}  // namespace vcpusim::testing
