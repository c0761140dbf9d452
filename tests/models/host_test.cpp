// vCPUs on pCPUs through the whole simulator: shares, steal, quotas, wake-ups, costs.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/simulate.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

class UnderEachScheduler : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, UnderEachScheduler, ::testing::ValuesIn(scheduler_names()),
                         [](const auto& scheduler) { return scheduler.param; });

// The time that `stints` have run up to `when`.
Duration ran_until(const std::vector<Stint>& stints, SimTime when) {
  Duration total{};
  for (const Stint& s : stints) {
    if (s.begin < when) total += std::min(s.end, when) - s.begin;
  }
  return total;
}

// How far from `share` of a window of length `window` what `stints` ran in it is at most, over all windows in the run.
Duration worst_deviation(const std::vector<Stint>& stints, double share, Duration window, SimTime end) {
  double worst = 0;
  const auto look = [&](SimTime from) {
    if (from < kTimeZero || from + window > end) return;
    const Duration ran = ran_until(stints, from + window) - ran_until(stints, from);
    worst = std::max(worst, std::abs(static_cast<double>(ran.count()) - share * static_cast<double>(window.count())));
  };
  // What a window holds is piecewise linear in where it begins; it bends where either end meets the end of a stint.
  for (const Stint& s : stints) {
    for (const SimTime bend : {s.begin, s.end}) {
      look(bend);
      look(bend - window);
    }
  }
  return Duration(std::llround(worst));
}

TEST_P(UnderEachScheduler, BusyVcpusShareAPcpuByWeightWithinOneSliceOfAnyTwenty) {
  for (const std::vector<std::int64_t>& weights :
       {std::vector<std::int64_t>{1024, 1024}, {1024, 1024, 1024}, {512, 1024}, {1024, 2048, 1024, 512}}) {
    std::vector<VmConfig> vms;
    double all = 0;
    for (const std::int64_t weight : weights) {
      vms.push_back(guest("g" + std::to_string(vms.size()), 1, busy()));
      vms.back().weight = weight;
      all += static_cast<double>(weight);
    }
    const Results r = simulate(host(GetParam(), 1, vms), 10s);
    // Xen hands out credit every 30 ms, as long as a slice: what one vCPU overdraws comes on top of what another does.
    const int slices = GetParam() == "credit" ? 2 : 1;
    Duration slice{};
    for (const Stint& s : r.stints()) slice = std::max(slice, s.length());
    ASSERT_LT(20 * slice, Duration(10s));
    for (std::uint32_t i = 0; i < weights.size(); ++i) {
      const double share = static_cast<double>(weights[i]) / all;
      EXPECT_LE(worst_deviation(r.stints_of(i), share, 20 * slice, r.end()), slices * slice)
          << "vCPU " << i << " of " << weights.size() << ", weight " << weights[i] << ", slice " << milliseconds(slice)
          << " ms";
    }
  }
}

TEST_P(UnderEachScheduler, TwoBusyVcpusOnOnePcpuHaveHalfOfTheirTimeStolen) {
  for (const std::string machine : {"ideal", "generic"}) {
    SimulationConfig config = host(GetParam(), 1, {guest("a", 1, busy()), guest("b", 1, busy())});
    config.host.machine = find_machine_kind(machine)->make();
    const Results r = simulate(config, 10s);
    for (const std::string vm : {"vms.a.", "vms.b."}) {
      EXPECT_NEAR(r.number(vm + "percent.ready") + r.number(vm + "percent.costop"), 50, 0.5) << machine;
      EXPECT_NEAR(r.number(vm + "time_s.steal"), 5, 0.05) << machine;
    }
    EXPECT_NEAR(r.number("host.busy_fraction"), 1, 1e-6);  // it takes a few microseconds to wake the pCPU
  }
}

TEST_P(UnderEachScheduler, EightBusyVcpusUnderAQuotaOfFourCpusRunForHalfThePeriodAndStallForTheRest) {
  VmConfig vm = guest("g", 8, busy());
  vm.quota = {.cpus = 4, .period = 100ms, .slice = 5ms};
  const Results r = simulate(host(GetParam(), 8, {vm}), 1s);
  EXPECT_EQ(r.number("vms.g.percent.limited"), 50);
  EXPECT_EQ(r.number("vms.g.percent.ready"), 50);
  EXPECT_EQ(r.number("vms.g.percent.run"), 50);
  for (std::uint32_t vcpu = 0; vcpu < 8; ++vcpu) {
    const std::vector<Stint> stints = r.stints_of(vcpu);
    ASSERT_EQ(stints.size(), 10u + 1) << vcpu;
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(stints[i].begin, at(i * 100ms));
      EXPECT_EQ(stints[i].end, at(i * 100ms + 50ms));
      EXPECT_EQ(stints[i].then, HostState::kThrottled);
    }
    EXPECT_EQ(stints[10].length(), Duration::zero());  // the refill at the very end of the run
  }
}

TEST_P(UnderEachScheduler, ABusyGuestThatIsAloneUsesItsQuotaToTheLastPicosecond) {
  VmConfig vm = guest("g", 4, busy());
  vm.quota = {.cpus = 1.7, .period = 30ms, .slice = 4ms};
  EXPECT_EQ(simulate(host(GetParam(), 4, {vm}), 3s).time("vms.g.cpu_s"), Duration(5100ms));
}

TEST_P(UnderEachScheduler, AQuotaShorterThanASliceLeavesEveryVcpuItsTurn) {
  VmConfig vm = guest("g", 2, busy());
  vm.quota = {.cpus = 0.2, .period = 10ms, .slice = 5ms};
  const Results r = simulate(host(GetParam(), 1, {vm}), 10s);
  EXPECT_GT(r.number("vms.g.percent.limited"), 0);
  for (const std::uint32_t vcpu : {0u, 1u}) EXPECT_GT(r.ran(vcpu), Duration(800ms)) << vcpu;
}

TEST_P(UnderEachScheduler, AQuotaIsNotExceededInAnyPeriod) {
  VmConfig limited = guest("limited", 4, busy());
  limited.quota.cpus = 1.5;
  const Results r = simulate(host(GetParam(), 4, {limited, guest("other", 4, busy())}), 2s);
  EXPECT_GT(r.number("vms.limited.percent.limited"), 0);
  std::vector<std::vector<Stint>> stints;
  for (std::uint32_t vcpu = 0; vcpu < 4; ++vcpu) stints.push_back(r.stints_of(vcpu));
  for (Duration from{}; from < 2s; from += 100ms) {
    Duration ran{};
    for (const auto& s : stints) ran += ran_until(s, at(from + 100ms)) - ran_until(s, at(from));
    // A pCPU may have kept up to one slice from the period before.
    EXPECT_LE(ran, Duration(150ms) + 4 * 5ms) << milliseconds(from);
  }
  EXPECT_LE(r.number("vms.limited.cpu_s"), 3);
}

class UnderEachBalancingScheduler : public UnderEachScheduler {};
INSTANTIATE_TEST_SUITE_P(Kinds, UnderEachBalancingScheduler, ::testing::Values("cfs", "eevdf"),
                         [](const auto& scheduler) { return scheduler.param; });

// Where vCPUs come one by one, two sockets of 23 and 25 are as good as balanced (imbalance_pct): one socket, then.
TEST_P(UnderEachBalancingScheduler, FortyEightBusyVcpusOnThirtyTwoPcpusGetTwoThirdsEach) {
  const Program soon = {sleep(Distribution::uniform(0us, 50ms)), user(always(1h))};
  for (const std::string machine : {"ideal", "generic"}) {
    for (const std::int64_t guests : {1, 3, 48}) {
      for (const bool at_once : {true, false}) {
        VmConfig vm = guest("g", 48 / guests, at_once ? busy() : soon);
        vm.copies = guests;
        SimulationConfig config = host(GetParam(), 32, {vm});
        config.random_start = true;
        config.host.machine = find_machine_kind(machine)->make();
        if (!at_once) config.host.machine.sockets = 1, config.host.machine.cores_per_socket = 32;
        config.warmup = 50ms;
        const Results r = simulate(config, 10s + 50ms);
        EXPECT_GT(r.number("host.busy_fraction"), 0.999);
        EXPECT_GT(r.count("host.migrations"), 100);
        const std::vector<Stint> stints = r.stints();
        for (std::uint32_t vcpu = 0; vcpu < 48; ++vcpu) {
          Duration ran{};
          for (const Stint& s : stints) {
            if (s.vcpu == vcpu && s.end > at(50ms)) ran += s.end - std::max(s.begin, at(50ms));
          }
          EXPECT_NEAR(to_seconds(ran) / 10, 2.0 / 3, 0.03 * 2 / 3)
              << machine << ", " << guests << " guests, vCPU " << vcpu << (at_once ? ", at once" : ", later");
        }
      }
    }
  }
}

TEST_P(UnderEachScheduler, ALoneGuestIsNeverPreempted) {
  SimulationConfig config = host(GetParam(), 4, {guest("g", 4, busy())});
  config.host.machine = find_machine_kind("generic")->make();
  const Results r = simulate(config, 1s);
  EXPECT_EQ(r.count("host.context_switches"), 4);
  EXPECT_EQ(r.count("host.migrations"), 0);
  EXPECT_LT(r.number("vms.g.time_s.steal"), 4 * 10e-6);  // waking the idle pCPUs
  EXPECT_EQ(r.stints().size(), 4u);
}

// Four pCPUs for 4, 6, 8, 12 and 16 vCPUs: overcommit 1, 1.5, 2, 3 and 4. Switches and migrations have a cost.
SimulationConfig overcommitted(const std::string& scheduler, std::int64_t vcpus, Program program) {
  VmConfig vm = guest("g", 1, std::move(program));
  vm.copies = vcpus;
  SimulationConfig config = host(scheduler, 4, {vm});
  config.host.machine.costs.transitions.context_switch = 2us;
  config.host.machine.costs.transitions.refill_same_socket = 20us;
  return config;
}
double stated_costs(const Results& r) {
  return 2e-6 * r.number("host.context_switches") + 20e-6 * r.number("host.migrations");
}

TEST_P(UnderEachScheduler, OvercommitCostsItsShareAndTheStatedSwitches) {
  for (const std::int64_t vcpus : {4, 6, 8, 12, 16}) {
    const Results r = simulate(overcommitted(GetParam(), vcpus, busy()), 10s);
    const double capacity = 10 * 4 - stated_costs(r);
    EXPECT_LE(r.number("vms.g.time_s.user"), capacity + 1e-4);  // a cost may be cut short by the end
    EXPECT_GE(r.number("vms.g.time_s.user"), 0.99 * capacity) << vcpus;
    EXPECT_LT(stated_costs(r), 0.01 * 40);
  }
}

TEST_P(UnderEachScheduler, CpuBoundWorkTakesAsLongAsItsShareOfThePcpusSays) {
  for (const std::int64_t vcpus : {4, 6, 8, 12, 16}) {
    const Results r = simulate_to_the_end(overcommitted(GetParam(), vcpus, {user(always(10s))}));
    ASSERT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone);
    // All that is not work is the stated cost of switches and migrations ...
    const double switches = stated_costs(r);
    const double work = 10 * static_cast<double>(vcpus);
    EXPECT_NEAR(r.number("vms.g.time_s.overhead"), switches, 1e-9);
    EXPECT_NEAR(r.number("vms.g.cpu_s"), work + switches, 1e-9);
    // ... and the whole takes as long as four pCPUs need for it. Towards the end there are fewer vCPUs than pCPUs: the
    // last to finish had up to 3 % less than its share until then.
    const double ideal = std::max(10.0, (work + switches) / 4);
    EXPECT_GE(r.number("vms.g.elapsed_s"), ideal * (1 - 1e-9)) << vcpus;
    EXPECT_LE(r.number("vms.g.elapsed_s"), ideal * 1.01) << vcpus;
  }
}

TEST(Gang, TwoVmsOfThreeVcpusOnFourPcpusLeaveExactlyOneIdle) {
  if (find_scheduler_kind("gang") == nullptr) GTEST_SKIP();
  const Results r = simulate(host("gang", 4, {guest("a", 3, busy()), guest("b", 3, busy())}), 10s);
  EXPECT_DOUBLE_EQ(r.number("host.busy_fraction"), 0.75);
  EXPECT_NEAR(r.number("vms.a.percent.run"), 50, 1);
  EXPECT_NEAR(r.number("vms.b.percent.run"), 50, 1);
  EXPECT_GT(r.stints().size(), 6u);  // they do take turns
}

// ---- wake-ups --------------------------------------------------------------------------------------------------

// A hog and, on the same pCPU, a vCPU that works for `run` after each `sleep`.
Results hog_and_sleeper(const std::string& scheduler, Duration run, Duration sleeps, Duration until) {
  const VmConfig hog = guest("hog", 1, {sleep(always(1us)), user(always(1h))});  // whoever starts first
  const VmConfig sleeper = guest("sleeper", 1, forever({sleep(always(sleeps)), user(always(run))}));
  return simulate(host(scheduler, 1, {hog, sleeper}), until);
}

TEST(Cfs, AVcpuThatWakesAfterASleepPreemptsAtOnce) {
  if (find_scheduler_kind("cfs") == nullptr) GTEST_SKIP();
  const Results r = hog_and_sleeper("cfs", 1ms, 50ms, 10s);
  const std::vector<Duration> delays = r.wakeup_delays(1);
  ASSERT_GT(delays.size(), 190u);
  for (const Duration delay : delays) EXPECT_EQ(delay, Duration::zero());
  EXPECT_EQ(r.time("vms.sleeper.time_s.steal"), Duration::zero());
}

TEST(Eevdf, AVcpuThatWakesWithNoLagWaitsForTheProtectedOne) {
  if (find_scheduler_kind("eevdf") == nullptr) GTEST_SKIP();
  // It uses all that it is owed and more, so that it never comes back with a claim.
  const Results r = hog_and_sleeper("eevdf", 2ms, 100us, 10s);
  const std::vector<Duration> delays = r.wakeup_delays(1);
  ASSERT_GT(delays.size(), 100u);
  const Duration longest = *std::ranges::max_element(delays);
  EXPECT_GT(longest, Duration(100us));
  EXPECT_LE(longest, Duration(8ms));  // a slice, rounded up to a tick
}

TEST(RoundRobin, AVcpuThatWakesWaitsForTheEndOfTheQuantum) {
  const Results r = hog_and_sleeper("round_robin", 1ms, 30ms, 10s);
  std::vector<Duration> delays = r.wakeup_delays(1);
  ASSERT_GT(delays.size(), 50u);
  EXPECT_EQ(delays[0], Duration(70ms + 1us));  // the first quantum begins late
  delays.erase(delays.begin());
  for (const Duration delay : delays) EXPECT_EQ(delay, Duration(70ms));
}

TEST(RoundRobin, AnIdlePcpuHelpsOutWhereAffinitiesStackVcpus) {
  // b, which has no choice, is stacked behind a for a's first quantum; then a goes to the idle pCPU.
  const VmConfig a = guest("a", 1, {user(always(1s))});
  const VmConfig b = pinned(guest("b", 1, {user(always(1s))}), {0});
  const Results r = simulate_to_the_end(host("round_robin", 2, {a, b}));
  EXPECT_EQ(r.time("vms.a.elapsed_s"), Duration(1s));
  EXPECT_EQ(r.time("vms.b.elapsed_s"), Duration(1s + 100ms));
  EXPECT_EQ(r.count("host.migrations"), 1);
}

// ---- costs -----------------------------------------------------------------------------------------------------

TEST(Costs, EachContextSwitchIsChargedToTheVcpuThatComes) {
  SimulationConfig config = host("round_robin", 1, {guest("a", 1, busy()), guest("b", 1, busy())});
  config.host.machine.costs.transitions.context_switch = 3us;
  const Results r = simulate(config, 1s + 50ms);  // quanta of 100 ms
  EXPECT_EQ(r.count("host.context_switches"), 11);
  EXPECT_EQ(r.time("vms.a.time_s.overhead"), static_cast<std::int64_t>(r.stints_of(0).size()) * Duration(3us));
  EXPECT_EQ(r.time("vms.b.time_s.overhead"), static_cast<std::int64_t>(r.stints_of(1).size()) * Duration(3us));
}

TEST(Costs, AVcpuThatComesBackToItsPcpuBeforeAnyOtherDoesNotSwitch) {
  SimulationConfig config = host("round_robin", 1, {guest("a", 1, forever({user(always(1ms)), sleep(always(1ms))}))});
  config.host.machine.costs.transitions.context_switch = 3us;
  const Results r = simulate(config, 1s);
  EXPECT_EQ(r.count("host.context_switches"), 1);
  EXPECT_GT(r.stints().size(), 400u);
}

TEST(Costs, AMigrationIsChargedOneCacheRefillByDistance) {
  for (const std::int64_t cores_per_socket : {2, 1}) {
    // When b leaves pCPU 1 at 15 ms, c is waiting for pCPU 0, where it has run from 0 to 10 ms.
    SimulationConfig config =
        host("round_robin", 2,
             {pinned(guest("a", 1, {sleep(always(5ms)), user(always(1s))}), {0}),
              pinned(guest("b", 1, {user(always(15ms))}), {1}), guest("c", 1, {user(always(50ms))})});
    config.host.machine.sockets = 2;
    config.host.machine.cores_per_socket = cores_per_socket;
    config.host.machine.costs.transitions.refill_same_socket = 20us;
    config.host.machine.costs.transitions.refill_other_socket = 50us;
    config.host.scheduler.params["quantum"] = Duration(10ms);
    const Results r = simulate(config, 1s);
    EXPECT_EQ(r.count("host.migrations"), 1);
    EXPECT_EQ(r.time("vms.c.time_s.overhead"), cores_per_socket == 2 ? Duration(20us) : Duration(50us));
    EXPECT_EQ(r.time("vms.a.time_s.overhead") + r.time("vms.b.time_s.overhead"), Duration::zero());
  }
}

TEST(Costs, AWakeUpOfAnIdlePcpuAndOneThatPreemptsDelayAsStated) {
  if (find_scheduler_kind("cfs") == nullptr) GTEST_SKIP();
  // Its wake-ups do not fall on the scheduler's ticks.
  const VmConfig sleeper = guest("sleeper", 1, forever({sleep(always(50'300us)), user(always(1ms))}));
  SimulationConfig config = host("cfs", 1, {sleeper});
  config.host.machine.costs.transitions.idle_wake = 5us;
  config.host.machine.costs.transitions.resched_ipi = 2us;
  for (const Duration delay : simulate(config, 1s).wakeup_delays(0)) EXPECT_EQ(delay, Duration(5us));
  config.vms.push_back(guest("hog", 1, busy()));
  const std::vector<Duration> delays = simulate(config, 1s).wakeup_delays(0);
  ASSERT_GT(delays.size(), 10u);
  for (const Duration delay : delays) EXPECT_EQ(delay, Duration(2us));
}

TEST(Costs, AVcpuThatHaltsPaysOneExit) {
  SimulationConfig config = host("round_robin", 1, {guest("a", 1, forever({user(always(1ms)), sleep(always(1ms))}))});
  config.host.machine.costs.transitions.vm_exit = 1us;
  const Results r = simulate(config, 1s);
  EXPECT_GT(r.count("host.exits.halt"), 400);
  EXPECT_EQ(r.time("vms.a.time_s.overhead"), r.count("host.exits.halt") * Duration(1us));
}

// ---- SMT -------------------------------------------------------------------------------------------------------

SimulationConfig two_threads_of_a_core(std::vector<VmConfig> vms) {
  SimulationConfig config = host("round_robin", 2, std::move(vms));
  config.host.machine.threads_per_core = 2;
  config.host.machine.costs.smt_speed = 0.625;
  return config;
}

TEST(Smt, BusySiblingsShareTheSpeedOfTheirCoreExactly) {
  const Results both = simulate_to_the_end(two_threads_of_a_core({guest("g", 2, {user(always(1s))})}));
  EXPECT_EQ(both.time("vms.g.elapsed_s"), Duration(1600ms));
  EXPECT_EQ(both.time("vms.g.time_s.user"), Duration(3200ms));
  const Results alone = simulate_to_the_end(two_threads_of_a_core({guest("g", 1, {user(always(1s))})}));
  EXPECT_EQ(alone.time("vms.g.elapsed_s"), Duration(1s));
}

TEST(Smt, AThreadSpeedsUpInTheMiddleOfItsWorkWhenItsSiblingFallsIdle) {
  const Results r = simulate_to_the_end(
      two_threads_of_a_core({guest("short", 1, {user(always(500ms))}), guest("long", 1, {user(always(1s))})}));
  EXPECT_EQ(r.time("vms.short.elapsed_s"), Duration(800ms));
  EXPECT_EQ(r.time("vms.long.elapsed_s"), Duration(1300ms));  // 800 ms for its first half
}

TEST(Smt, CoresDoNotShare) {
  SimulationConfig config = two_threads_of_a_core({guest("g", 2, {user(always(1s))})});
  config.host.machine.threads_per_core = 1;
  EXPECT_EQ(simulate_to_the_end(config).time("vms.g.elapsed_s"), Duration(1s));
}

TEST(Smt, NativeThreadsShareToo) {
  SimulationConfig config = native(guest("g", 2, {user(always(1s))}));
  config.host.machine.threads_per_core = 2;
  config.host.machine.costs.smt_speed = 0.5;
  EXPECT_EQ(simulate_to_the_end(config).time("vms.g.elapsed_s"), Duration(2s));
}

// ---- the operators' view ---------------------------------------------------------------------------------------

TEST_P(UnderEachScheduler, TheViewAndTheAccountsAddUp) {
  VmConfig a =
      guest("a", 3, forever({user(exponential(300us)), hold(0, exponential(50us)), sleep(exponential(200us))}));
  VmConfig b = guest("b", 4, forever({kernel(exponential(1ms)), barrier(0), io(exponential(1ms))}));
  a.quota.cpus = 0.7;
  b.guest.tick = 1ms;
  SimulationConfig config = host(GetParam(), 3, {a, b});
  config.host.machine = find_machine_kind("generic")->make();
  config.warmup = 100ms;
  const Results r = simulate(config, 2s);
  double busy = 0;
  for (const auto& [vm, vcpus] : {std::pair{std::string("vms.a."), 3}, std::pair{std::string("vms.b."), 4}}) {
    Duration all{};
    for (const std::string activity : {"user", "system", "hold", "spin", "overhead", "steal", "halted", "idle"}) {
      all += r.time(vm + "time_s." + activity);
    }
    EXPECT_EQ(all, vcpus * Duration(1900ms));
    double percent = 0;
    for (const std::string part : {"run", "ready", "costop", "wait"}) percent += r.number(vm + "percent." + part);
    EXPECT_NEAR(percent, 100, 1e-9);
    EXPECT_LE(r.number(vm + "percent.limited"), r.number(vm + "percent.ready"));
    busy += r.number(vm + "cpu_s");
  }
  EXPECT_NEAR(r.number("host.busy_fraction"), busy / (3 * 1.9), 1e-12);
  EXPECT_GT(r.number("vms.a.percent.limited"), 0);
  EXPECT_GT(r.number("vms.b.percent.wait"), 0);
}

}  // namespace
}  // namespace vcpusim::testing
