// The guest's clock through the whole simulator: what is delivered, what is lost, how late it comes, and the accounts
// that the guest makes of it.
#include <gtest/gtest.h>

#include "tests/support/simulate.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

SimulationConfig two_guests_on_a_pcpu(Duration tick, Duration quantum) {
  VmConfig vm = guest("g", 1, busy());
  vm.copies = 2;
  vm.guest.tick = tick;
  SimulationConfig config = host("round_robin", 1, {vm});
  config.host.scheduler.params["quantum"] = quantum;
  return config;
}

TEST(GuestClock, TicksOfAVcpuThatIsOffItsPcpuBecomeOne) {
  const Results r = simulate(two_guests_on_a_pcpu(1ms, 10ms), 1s);
  for (const std::string vm : {"vms.g-0.clock.", "vms.g-1.clock."}) {
    const auto expected = r.count(vm + "expected");
    EXPECT_EQ(r.count(vm + "delivered") + r.count(vm + "coalesced"), expected);
    // Those that fall into an absence at the very end are not due yet.
    EXPECT_LE(expected, 1000);
    EXPECT_GE(expected, 990);
    // Of the ten ticks of each absence one is delivered.
    EXPECT_GE(r.count(vm + "coalesced"), 9 * 49);
    EXPECT_LE(r.count(vm + "coalesced"), 9 * 50);
    EXPECT_EQ(r.number(vm + "period_us"), 1000);
  }
}

TEST(GuestClock, JitterIsTheTimeFromTheExpiryToTheReturn) {
  const Results r = simulate(two_guests_on_a_pcpu(1ms, 10ms), 1s);
  const std::vector<TraceRecord> ticks = r.of_kind(TraceKind::kTick);
  ASSERT_FALSE(ticks.empty());
  for (std::uint32_t vcpu : {0u, 1u}) {
    const std::vector<Stint> stints = r.stints_of(vcpu);
    std::optional<Duration> phase;
    std::size_t late = 0;
    for (const TraceRecord& tick : ticks) {
      if (tick.subject != vcpu) continue;
      const Duration lateness{tick.value};
      const SimTime due = tick.time - lateness;
      // All expiries are on one grid ...
      if (!phase) phase = (due - kTimeZero) % Duration(1ms);
      EXPECT_EQ((due - kTimeZero) % Duration(1ms), *phase);
      const auto stint =
          std::ranges::find_if(stints, [&](const Stint& s) { return s.begin <= tick.time && tick.time <= s.end; });
      ASSERT_NE(stint, stints.end()) << "a tick was delivered to a vCPU that does not run";
      if (lateness == Duration::zero()) continue;
      // ... and a late one is delivered at the moment of return, the first of those of the absence.
      ++late;
      EXPECT_EQ(tick.time, stint->begin);
      EXPECT_GT(lateness, Duration(9ms));
      EXPECT_LE(lateness, Duration(10ms));
    }
    EXPECT_GE(late, 49u);
  }
  EXPECT_GT(r.number("vms.g.clock.jitter_us.max"), 9000);
  EXPECT_LE(r.number("vms.g.clock.jitter_us.max"), 10000);
}

TEST(GuestClock, AVcpuThatIsNeverOffItsPcpuHasNoJitter) {
  VmConfig vm = guest("g", 2, busy());
  vm.guest.tick = 1ms;
  const Results r = simulate(host("round_robin", 2, {vm}), 1s);
  EXPECT_EQ(r.count("vms.g.clock.delivered"), 2000);
  EXPECT_EQ(r.count("vms.g.clock.coalesced"), 0);
  EXPECT_EQ(r.number("vms.g.clock.jitter_us.max"), 0);
}

// The lateness of each tick of a native vCPU that computes for `before`, then is in a section of `section`.
std::vector<TraceRecord> ticks_around(Duration before, std::shared_ptr<const Operation> section) {
  VmConfig vm = guest("g", 1, {user(always(before)), std::move(section), user(always(20ms))});
  vm.guest.tick = 1ms;
  return simulate_to_the_end(native(vm)).of_kind(TraceKind::kTick);
}

TEST(GuestClock, ASectionWithInterruptsDisabledDelaysTheTicksInsideAndNoOther) {
  // Where the grid of this guest begins depends on the seed alone.
  const Duration third = ticks_around(1ms, user(always(1ms)))[2].time - kTimeZero;
  ASSERT_GT(third, Duration(2ms));
  const Duration least{1};
  const auto lateness_of_third = [&](Duration from, Duration until, bool irqs_off) {
    const auto section = irqs_off ? hold_irqs_off(0, always(until - from)) : hold(0, always(until - from));
    return Duration(ticks_around(from, section).at(2).value);
  };
  EXPECT_EQ(lateness_of_third(third - 500us, third + 200us, true), Duration(200us));
  EXPECT_EQ(lateness_of_third(third - 500us, third + 200us, false), Duration::zero());
  // Not at t - 1, yes at t.
  EXPECT_EQ(lateness_of_third(third - 500us, third - least, true), Duration::zero());
  EXPECT_EQ(lateness_of_third(third - 500us, third + least, true), least);
  EXPECT_EQ(lateness_of_third(third + least, third + 500us, true), Duration::zero());
  EXPECT_EQ(lateness_of_third(third - least, third + 500us, true), Duration(500us));
}

TEST(GuestClock, ALongSectionWithInterruptsDisabledLosesTicks) {
  VmConfig vm = guest("g", 1, {user(always(1ms)), hold_irqs_off(0, always(10ms)), user(always(9ms))});
  vm.guest.tick = 1ms;
  const Results r = simulate_to_the_end(native(vm));
  EXPECT_EQ(r.count("vms.g.clock.expected"), 20);
  EXPECT_EQ(r.count("vms.g.clock.coalesced"), 9);
  EXPECT_GT(r.number("vms.g.clock.jitter_us.max"), 9000);
}

TEST(GuestClock, SpinningWithInterruptsDisabledDelaysToo) {
  VmConfig vm = guest("g", 2, {});
  vm.tasks.clear();
  vm.tasks.push_back({"holder", 1, {hold(0, always(5ms))}});
  vm.tasks.push_back({"waiter", 1, {user(always(100us)), hold_irqs_off(0, always(1us)), user(always(5ms))}});
  vm.guest.tick = 3ms;
  const Results r = simulate_to_the_end(native(vm));
  Duration latest{};
  for (const TraceRecord& tick : r.of_kind(TraceKind::kTick)) {
    if (tick.subject == 1) {
      latest = std::max(latest, Duration(tick.value));
    } else {
      EXPECT_EQ(tick.value, 0);
    }
  }
  EXPECT_GT(latest, Duration(2ms));
  EXPECT_LE(latest, Duration(5ms + 1us));
}

TEST(GuestClock, AnIdleTicklessVcpuHasNoTicksAndAnotherHasThemAll) {
  VmConfig vm = guest("g", 1, forever({user(always(10ms)), sleep(always(90ms))}));
  vm.guest.tick = 1ms;
  const Results tickless = simulate(host("round_robin", 1, {vm}), 1s);
  EXPECT_EQ(tickless.count("vms.g.clock.expected"), 100);
  EXPECT_EQ(tickless.count("host.exits.halt"), 10);
  vm.guest.tickless_idle = false;
  const Results ticking = simulate(host("round_robin", 1, {vm}), 1s);
  EXPECT_EQ(ticking.count("vms.g.clock.expected"), 1000);
  EXPECT_EQ(ticking.count("vms.g.clock.coalesced"), 0);
  EXPECT_EQ(ticking.count("host.exits.halt"), 10 * (1 + 90));  // every tick wakes it and lets it halt again
  EXPECT_EQ(ticking.time("vms.g.time_s.user"), tickless.time("vms.g.time_s.user"));
}

TEST(GuestClock, ATickOfARunningVcpuCostsAnExitAndItsHandler) {
  VmConfig vm = guest("g", 1, busy());
  vm.guest.tick = 1ms;
  SimulationConfig config = host("round_robin", 1, {vm});
  config.host.machine.costs.transitions.vm_exit = 3us;
  config.host.machine.costs.transitions.guest_tick = 2us;
  const Results r = simulate(config, 1s + 500us);
  const auto ticks = r.count("vms.g.clock.delivered");
  EXPECT_GE(ticks, 1000);
  EXPECT_EQ(r.count("host.exits.timer"), ticks);
  EXPECT_EQ(r.time("vms.g.time_s.overhead"), ticks * Duration(3us));
  EXPECT_EQ(r.time("vms.g.time_s.system"), ticks * Duration(2us));
  // The exit is part of the way from the expiry to the handler.
  EXPECT_EQ(r.microseconds("vms.g.clock.jitter_us.max"), Duration(3us));
  const Results bare = simulate(native(vm), 1s);
  EXPECT_EQ(bare.number("vms.g.clock.jitter_us.max"), 0);
}

// ---- the guest's accounts --------------------------------------------------------------------------------------

TEST(GuestAccounts, WithoutAStealClockTheGuestTakesDeliveredTicksForItsTime) {
  const Results r = simulate(two_guests_on_a_pcpu(1ms, 10ms), 2s);
  // In 20 ms: ten ticks while it runs and one for the absence, each of which counts for 1 ms.
  EXPECT_NEAR(r.number("vms.g-0.guest_reported_s.user"), 1.1, 0.02);
  EXPECT_EQ(r.number("vms.g-0.guest_reported_s.steal"), 0);
  EXPECT_NEAR(r.number("vms.g-0.time_s.user"), 1.0, 0.01);
  EXPECT_NEAR(r.number("vms.g-0.time_s.steal"), 1.0, 0.01);
}

TEST(GuestAccounts, WithAStealClockTheGuestSeesWhatWasStolen) {
  SimulationConfig config = two_guests_on_a_pcpu(1ms, 10ms);
  config.host.assists["steal_clock"] = {"steal_clock", {}};
  const Results r = simulate(config, 2s);
  EXPECT_NEAR(r.number("vms.g-0.guest_reported_s.user"), 1.0, 0.02);
  EXPECT_NEAR(r.number("vms.g-0.guest_reported_s.steal"), 1.0, 0.02);
  EXPECT_GT(r.number("vms.g-0.time_s.steal"), 0.9);
}

TEST(GuestAccounts, SystemTimeIsWhatATickInterruptsInTheKernel) {
  VmConfig vm = guest("g", 1, forever({user(exponential(300us)), kernel(exponential(700us))}));
  vm.guest.tick = 1ms;
  const Results r = simulate(native(vm), 20s);
  EXPECT_NEAR(r.number("vms.g.guest_reported_s.system"), r.number("vms.g.time_s.system"), 0.4);
  EXPECT_NEAR(r.number("vms.g.guest_reported_s.user"), r.number("vms.g.time_s.user"), 0.4);
  EXPECT_NEAR(r.number("vms.g.time_s.system"), 14, 0.5);
}

}  // namespace
}  // namespace vcpusim::testing
