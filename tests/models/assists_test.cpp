// What a hypervisor does for its guests, by hand: pause-loop exits, directed yield, hints, halt polling, kicks,
// flushes.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/simulate.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;
using Params = std::map<std::string, ParamValue>;

// A machine whose exits and PAUSEs have round costs: at 1 GHz, a window of 4096 cycles is 4.096 us.
MachineConfig machine() {
  MachineConfig m = find_machine_kind("ideal")->make();
  m.clock.kilohertz = 1'000'000;
  m.costs.pause = 10ns;
  m.costs.transitions.vm_exit = 200ns;
  return m;
}

// vCPU i of one guest runs program i and may run on the pCPUs of list i.
SimulationConfig guests(std::vector<Program> programs, std::vector<std::vector<std::int64_t>> lists,
                        std::int64_t pcpus) {
  VmConfig vm = guest("g", static_cast<std::int64_t>(programs.size()), {});
  vm.guest.locks[0].kind.name = "ttas";
  vm.tasks.clear();
  for (std::size_t i = 0; i < programs.size(); ++i) vm.tasks.push_back({"t" + std::to_string(i), 1, programs[i]});
  vm.affinity = {AffinityConfig::Rule::kLists, std::move(lists)};
  SimulationConfig config = host("round_robin", pcpus, {vm});
  config.host.machine = machine();
  return config;
}

void turn_on(SimulationConfig& config, const std::string& assist, Params params = {}) {
  config.host.assists[assist] = {assist, std::move(params)};
}

// Slices of 10 ms for two on a pCPU; unlike round robin it heeds yields to vCPUs on other pCPUs.
void under_cfs(SimulationConfig& config) {
  config.host.scheduler = {"cfs",
                           {{"scale", std::int64_t{1}},
                            {"hz", std::int64_t{1000}},
                            {"sched_latency", Duration(20ms)},
                            {"wakeup_granularity", Duration(20ms)},
                            {"wakeup_preemption", false}}};
}

std::int64_t yields(const Results& r, const std::string& what) { return r.count("host.directed_yields." + what); }

// ---- pause-loop exits ------------------------------------------------------------------------------------------

// The waiter spins for `wait` beside an owner that runs; nobody is ready, so that it keeps its pCPU. Its exits come
// after each window, and after each it pays the exit and the handler (here 1 us) and begins to spin anew.
std::int64_t exits_in(Duration wait, Params params) {
  SimulationConfig config = guests({{hold(0, always(wait))}, {user(always(1ns)), hold(0, always(1ns))}}, {{0}, {1}}, 2);
  if (!params.contains("max_window")) params["max_window"] = Cycles{1 << 30};
  turn_on(config, "ple", std::move(params));
  turn_on(config, "directed_yield", {{"per_candidate", Duration::zero()}});
  return simulate_to_the_end(config).count("host.exits.ple");
}

TEST(PauseLoopExits, TheWindowDoublesWithEachExitUpToTheMaximum) {
  // Windows of 4.096, 8.192, 16.384 us, each followed by 1.2 us.
  EXPECT_EQ(exits_in(4us, {}), 0);
  EXPECT_EQ(exits_in(5us, {}), 1);
  EXPECT_EQ(exits_in(13us, {}), 1);
  EXPECT_EQ(exits_in(14us, {}), 2);
  EXPECT_EQ(exits_in(30us, {}), 2);
  EXPECT_EQ(exits_in(32us, {}), 3);
  EXPECT_EQ(exits_in(100us, {{"max_window", Cycles{8192}}}), 11);  // 5.296 + 10 x 9.392 = 99.216
}

TEST(PauseLoopExits, GrowthIsAFactorBelowTheBaseWindowAndAnAddendAboveIt) {
  EXPECT_EQ(exits_in(100us, {{"grow", std::int64_t{1}}}), 19);    // fixed: 18 x 5.296 + 4.096 = 99.4
  EXPECT_EQ(exits_in(100us, {{"grow", std::int64_t{0}}}), 19);    // back to the base
  EXPECT_EQ(exits_in(100us, {{"grow", std::int64_t{4096}}}), 6);  // 4.096 k: 7.2 + 86.016 with k up to 6
  EXPECT_EQ(exits_in(1000us, {{"grow", std::int64_t{3}}}), 5);    // 4.096 (1 + 3 + ... + 81) = 495.6, + 6
}

TEST(PauseLoopExits, AmdCountsPauses) {
  EXPECT_EQ(exits_in(29us, {{"mode", std::string("amd")}}), 0);
  EXPECT_EQ(exits_in(31us, {{"mode", std::string("amd")}}), 1);  // 3000 x 10 ns
  EXPECT_EQ(
      exits_in(100us, {{"mode", std::string("amd")}, {"count", std::int64_t{100}}, {"max_count", std::int64_t{200}}}),
      31);  // 2.2 + 30 x 3.2 = 98.2
}

TEST(PauseLoopExits, EachTimeTheVcpuIsScheduledInTheWindowShrinks) {
  // A spinner with a rival on its pCPU: a turn of 100 us each, plain yields are not to be.
  const auto exits = [](std::int64_t shrink) {
    SimulationConfig config =
        guests({{hold(0, always(1ms))}, {user(always(1ns)), hold(0, always(1ns))}}, {{0}, {1}}, 2);
    config.vms.push_back(pinned(guest("rival", 1, busy()), {1}));
    config.host.scheduler.params["quantum"] = Duration(100us);
    turn_on(config, "ple", {{"shrink", shrink}});
    turn_on(config, "directed_yield", {{"per_candidate", Duration::zero()}});
    config.stop.at = 1ms;
    return simulate(config).count("host.exits.ple");
  };
  // In 100 us: 4.1 + 8.2 + 16.4 + 32.8 us, and 1.2 us each, are four exits; the fifth takes 65.5 us more.
  EXPECT_EQ(exits(0), 5 * 4);
  // Halved it is 65.5 / 2, then 32.8 to 65.5 again: fewer.
  EXPECT_LT(exits(2), 5 * 4);
  // From the base on it is what is taken away: the 131 us of the first turn stay longer than a turn.
  EXPECT_EQ(exits(8192), 4 + 2);
}

// ---- directed yield --------------------------------------------------------------------------------------------

// In turns of 10 ms with another guest on pCPU 0, the owner is preempted in its section of 60 ms, while siblings spin
// on pCPU 1.
SimulationConfig preempted_owner(std::size_t spinners) {
  std::vector<Program> programs{{hold(0, always(60ms)), user(always(1s))}};
  std::vector<std::vector<std::int64_t>> lists{{0}};
  for (std::size_t i = 0; i < spinners; ++i) {
    programs.push_back({user(always(12ms)), hold(0, always(1us)), user(always(1s))});
    lists.push_back({1});
  }
  SimulationConfig config = guests(std::move(programs), std::move(lists), 2);
  config.vms.push_back(pinned(guest("rival", 1, busy()), {0}));
  under_cfs(config);
  return config;
}

TEST(DirectedYield, BoostsThePreemptedOwner) {
  SimulationConfig config = preempted_owner(1);
  const Results plain = simulate(config, 100ms);
  EXPECT_GE(plain.number("vms.g.locks.l.holder_preempted_us.max"), 9'900);
  turn_on(config, "ple", {{"grow", std::int64_t{1}}});
  const Results r = simulate(config, 100ms);
  EXPECT_GT(yields(r, "to_holder"), 0);
  EXPECT_LT(r.number("vms.g.locks.l.holder_preempted_us.max"), 2000);
  EXPECT_EQ(yields(r, "to_spinner"), 0);
}

// In turns of 10 ms, vCPU 0 computes for 15 ms of its turns on pCPU 0, then owns the lock; vCPU 1 spins for it on pCPU
// 1 from `spin_from` on; vCPU 2 shares pCPU 0.
std::int64_t boosts(const std::string& generation, Program other, Duration spin_from, Duration tick, Duration until) {
  SimulationConfig config =
      guests({{user(always(15ms)), hold(0, always(50ms))}, {user(always(spin_from)), hold(0, always(1us))}, other},
             {{0}, {1}, {0}}, 2);
  config.vms[0].guest.tick = tick;
  config.host.scheduler.params["quantum"] = Duration(10ms);
  turn_on(config, "ple");
  turn_on(config, "directed_yield", {{"generation", generation}});
  return yields(simulate(config, until), "attempted");
}

TEST(DirectedYield, ToVcpusPreemptedInUserModeDependsOnTheGeneration) {
  // From 25 to 30 ms the owner runs, and vCPU 2 waits, preempted in user mode.
  EXPECT_GT(boosts("3.7", busy(), 26ms, 0ms, 29ms), 0);
  EXPECT_EQ(boosts("4.14", busy(), 26ms, 0ms, 29ms), 0);
  EXPECT_EQ(boosts("5.3", busy(), 26ms, 1ms, 29ms), 0);
  EXPECT_GT(boosts("5.13", busy(), 26ms, 1ms, 29ms), 0);  // its clock interrupt is pending
  EXPECT_EQ(boosts("5.13", busy(), 26ms, 0ms, 29ms), 0);
}

TEST(DirectedYield, ToWokenVcpusDependsOnTheGeneration) {
  // vCPU 2 wakes up between two ticks on the pCPU of the owner, where it waits for the next tick.
  for (const auto& [generation, woken] : std::map<std::string, bool>{{"3.7", false}, {"4.14", false}, {"5.3", true}}) {
    SimulationConfig config = guests({{hold(0, always(50ms))},
                                      {user(always(10ms)), hold(0, always(1us))},
                                      {sleep(always(28300us)), user(always(1s))}},
                                     {{0}, {1}, {0}}, 2);
    under_cfs(config);
    turn_on(config, "ple", {{"grow", std::int64_t{1}}});
    turn_on(config, "directed_yield", {{"generation", generation}});
    const Results r = simulate(config, 60ms);
    EXPECT_EQ(yields(r, "to_woken") > 0, woken) << generation;
  }
}

TEST(DirectedYield, WithTheBugKeepsToTheFirstCandidates) {
  // vCPU 0 spins on pCPU 1; vCPUs 1 to 5 share pCPU 0, in kernel mode; vCPU 6 owns the lock.
  for (const std::string generation : {"5.13", "6.12", "6.19"}) {
    std::vector<Program> programs{{user(always(10us)), hold(0, always(1us))}};
    std::vector<std::vector<std::int64_t>> lists{{1}};
    for (int i = 1; i <= 5; ++i) {
      programs.push_back({kernel(always(1s))});
      lists.push_back({0});
    }
    programs.push_back({hold(0, always(1s))});
    lists.push_back({2});
    SimulationConfig config = guests(std::move(programs), std::move(lists), 3);
    under_cfs(config);
    turn_on(config, "ple", {{"grow", std::int64_t{1}}});
    turn_on(config, "directed_yield", {{"generation", generation}});
    const Results r = simulate(config, 1ms);
    EXPECT_GT(yields(r, "succeeded"), 100) << generation;
    EXPECT_GT(r.stints_of(1).size(), 10u) << generation;
    EXPECT_EQ(r.stints_of(5).size() > 10, generation != "6.12") << generation << r.stints_of(5).size();
  }
}

TEST(DirectedYield, HasNoCandidateWhereEverybodyRuns) {
  SimulationConfig config = guests({{hold(0, always(10us))}, {user(always(1ns)), hold(0, always(1ns))}}, {{0}, {1}}, 2);
  turn_on(config, "ple");
  const Results r = simulate_to_the_end(config);
  EXPECT_EQ(yields(r, "attempted"), 0);  // nobody is ready
  EXPECT_EQ(r.count("host.exits.ple"), 1);
}

// ---- hints -----------------------------------------------------------------------------------------------------

SimulationConfig marked(const std::string& mark) {
  SimulationConfig config = guests(
      {{repeat(10, {user(always(10us)), hold(0, always(10us)), kernel(always(10us))}), user(always(1us))}}, {{0}}, 1);
  turn_on(config, "hint", {{"mark", mark}});
  return config;
}

TEST(Hints, CostTwoHypercallsASection) {
  // 1 us and the exit each, whatever is marked; kernel mode is entered by both operations.
  for (const auto& [mark, hints] : std::map<std::string, int>{{"owner", 20}, {"request", 20}, {"kernel", 40}}) {
    const Results r = simulate_to_the_end(marked(mark));
    EXPECT_EQ(r.count("vms.g.hints"), hints) << mark;
    EXPECT_EQ(r.count("host.exits.hypercall"), hints) << mark;
    EXPECT_EQ(r.time("vms.g.time_s.overhead"), hints * Duration(1200ns)) << mark;
    EXPECT_EQ(r.time("vms.g.elapsed_s"), 10 * Duration(30us) + 1us + hints * Duration(1200ns)) << mark;
  }
}

TEST(Hints, NestedKernelModeIsEnteredOnce) {
  SimulationConfig config = guests({{hold(0, Program{kernel(always(1us)), kernel(always(1us))})}}, {{0}}, 1);
  turn_on(config, "hint", {{"mark", std::string("kernel")}});
  EXPECT_EQ(simulate_to_the_end(config).count("vms.g.hints"), 2);
}

TEST(Hints, OnlyMarkedVcpusAreBoosted) {
  // With two spinners stacked on pCPU 1.
  for (const bool hint : {false, true}) {
    SimulationConfig config = preempted_owner(2);
    turn_on(config, "ple", {{"grow", std::int64_t{1}}});
    if (hint) turn_on(config, "hint");
    const Results r = simulate(config, 60ms);
    EXPECT_EQ(yields(r, "to_spinner") > 0, !hint);
    EXPECT_GT(yields(r, "to_holder"), 0);
    EXPECT_EQ(yields(r, "to_marked"), hint ? yields(r, "succeeded") : 0);
    EXPECT_EQ(yields(r, "none_marked") > 0, hint);  // until the owner is preempted
  }
}

TEST(Hints, WithoutAMarkedVcpuTheSpinnerGoesOnOrYieldsOrActsAsWithoutHints) {
  // Two spinners share pCPU 1; the owner runs.
  const auto run = [](const std::string& fallback) {
    SimulationConfig config = guests({{hold(0, always(5ms))},
                                      {user(always(100us)), hold(0, always(1us))},
                                      {user(always(100us)), hold(0, always(1us))}},
                                     {{0}, {1}, {1}}, 2);
    turn_on(config, "ple");
    turn_on(config, "hint", {{"fallback", fallback}});
    return simulate_to_the_end(config);
  };
  const Results resume = run("resume");
  EXPECT_EQ(yields(resume, "attempted"), 0);
  EXPECT_EQ(yields(resume, "none_marked"), resume.count("host.exits.ple"));
  const Results yield = run("yield");
  EXPECT_EQ(yields(yield, "attempted"), 0);
  EXPECT_GT(yield.count("host.context_switches"), resume.count("host.context_switches") + 100);
  EXPECT_GT(yields(run("stock"), "to_spinner"), 0);
}

// ---- stacked owners --------------------------------------------------------------------------------------------

// Owner and waiter share pCPU 0 in turns of 10 ms. The owner takes the lock after 5 ms and is preempted 5 ms later.
TEST(StackedOwner, ThatComesBackWhereTheWaiterSpunIsOfTypeB) {
  SimulationConfig config = guests({{user(always(5ms)), hold(0, always(6ms)), user(always(1s))},
                                    {hold(0, always(0us)), hold(0, always(1us)), user(always(1s))}},
                                   {{0}, {0}}, 1);
  config.host.scheduler.params["quantum"] = Duration(10ms);
  const Results r = simulate(config, 35ms);
  EXPECT_EQ(r.count("vms.g.locks.l.stacked.type_b"), 1);
  EXPECT_EQ(r.number("vms.g.locks.l.stacked.type_b_us.max"), 10'000);
  EXPECT_EQ(r.count("vms.g.locks.l.stacked.type_a"), 0);
}

TEST(StackedOwner, ThatGoesOnElsewhereIsOfTypeA) {
  // pCPU 1 becomes idle after 14 ms and takes the owner over, 4 ms after it was preempted.
  SimulationConfig config = guests({{user(always(5ms)), hold(0, always(6ms)), user(always(1s))},
                                    {hold(0, always(0us)), hold(0, always(1us)), user(always(1s))}},
                                   {{0, 1}, {0}}, 2);
  config.vms.insert(config.vms.begin(), pinned(guest("other", 1, {user(always(14ms))}), {1}));
  config.host.scheduler.params["quantum"] = Duration(10ms);
  const Results r = simulate(config, 35ms);
  EXPECT_EQ(r.count("vms.g.locks.l.stacked.type_a"), 1);
  EXPECT_EQ(r.number("vms.g.locks.l.stacked.type_a_us.max"), 4'000.2);  // the other guest's exit
  EXPECT_EQ(r.count("vms.g.locks.l.stacked.type_b"), 0);
}

TEST(StackedOwner, IsNoneIfSomebodyElseTookItsPcpu) {
  SimulationConfig config = guests({{user(always(5ms)), hold(0, always(6ms)), user(always(1s))},
                                    {user(always(6ms)), hold(0, always(0us)), user(always(1s))}},
                                   {{0}, {1}}, 2);
  config.vms.push_back(pinned(guest("other", 1, busy()), {0}));
  config.host.scheduler.params["quantum"] = Duration(10ms);
  const Results r = simulate(config, 35ms);
  EXPECT_EQ(r.count("vms.g.locks.l.holder_preemptions"), 1);
  EXPECT_EQ(r.count("vms.g.locks.l.stacked.type_a") + r.count("vms.g.locks.l.stacked.type_b"), 0);
}

// ---- halt polling ----------------------------------------------------------------------------------------------

TEST(HaltPoll, SavesTheWakeUpOfASleepItHasLearntToBridgeAndOnlyIfAlone) {
  for (const bool alone : {true, false}) {
    SimulationConfig config = guests({forever({sleep(always(30us)), user(always(10us))})}, {{0}}, 1);
    if (!alone) config.vms.push_back(pinned(guest("rival", 1, busy()), {0}));
    config.host.machine.costs.transitions.idle_wake = 5us;
    config.host.scheduler.params["quantum"] = Duration(50us);
    turn_on(config, "halt_poll");
    const Results r = simulate(config, 10ms);
    // It has slept for 30.2 us once at 0, 10 and 20 us of polling; at 40 us it no longer blocks.
    if (alone) {
      EXPECT_LE(r.stints_of(0).size(), 5u);
      EXPECT_GT(r.number("host.busy_fraction"), 0.99);
    } else {
      EXPECT_GT(r.stints_of(0).size(), 1u);
      EXPECT_LT(r.time("vms.g.time_s.overhead"), Duration(10us) * static_cast<std::int64_t>(r.stints_of(0).size()));
    }
  }
}

TEST(HaltPoll, GivesUpAfterASleepLongerThanTheMaximum) {
  for (const std::int64_t shrink : {0, 2}) {
    SimulationConfig config = guests({{repeat(5, {sleep(always(30us)), user(always(10us))}),
                                       repeat(100, {sleep(always(300us)), user(always(10us))})}},
                                     {{0}}, 1);
    turn_on(config, "halt_poll", {{"shrink", shrink}});
    const Results r = simulate_to_the_end(config);
    // After the first long sleep: never again, or 40, 20, 10, 5, ... us once more each time.
    const Duration polled = r.time("vms.g.time_s.overhead") - r.count("host.exits.halt") * Duration(200ns);
    EXPECT_GT(polled, shrink == 0 ? Duration(100us) : Duration(165us));
    EXPECT_LT(polled, shrink == 0 ? Duration(165us) : Duration(260us));
  }
}

// ---- shootdowns ------------------------------------------------------------------------------------------------

// vCPU 0 calls the others `calls` times after 15 ms. vCPU 1 is off its pCPU from 10 to 20 ms, vCPU 2 runs, vCPU 3 is
// idle.
SimulationConfig shootdown(bool flush, std::int64_t calls = 1) {
  Fill fill;
  fill.integers["ipi"] = 3;
  fill.distributions["work"] = always(10us);
  fill.flags["flush"] = flush;
  SimulationConfig config = guests({{user(always(15ms)), repeat(calls, {operation("ipi", fill)}), user(always(1us))},
                                    busy(),
                                    {user(always(50ms))},
                                    {user(always(10us))}},
                                   {{0}, {1}, {2}, {3}}, 4);
  config.vms.push_back(pinned(guest("rival", 1, busy()), {1}));
  config.host.scheduler.params["quantum"] = Duration(10ms);
  return config;
}

void flushes(SimulationConfig& config, bool halted_reads_preempted) {
  turn_on(config, "steal_clock", {{"halted_reads_preempted", halted_reads_preempted}});
  turn_on(config, "pv_tlb_flush", {{"flush", Duration(700ns)}});
}

TEST(PvTlbFlush, DoesNotWaitForTargetsThatArePreempted) {
  EXPECT_GT(simulate(shootdown(true), 60ms).time("vms.g.tasks.t0.elapsed_s"), Duration(20ms));
  for (const bool halted_too : {false, true}) {
    SimulationConfig config = shootdown(true);
    flushes(config, halted_too);
    const Results r = simulate(config, 60ms);
    EXPECT_LT(r.time("vms.g.tasks.t0.elapsed_s"), Duration(15ms + 20us));
    EXPECT_EQ(r.count("vms.g.deferred_flushes"), halted_too ? 2 : 1);
    EXPECT_EQ(r.count("host.exits.ipi"), halted_too ? 2 : 3);  // sent; vCPU 2 was interrupted while it ran
  }
}

TEST(PvTlbFlush, IsPaidOnceAtTheNextEntry) {
  const auto overhead = [](bool deferred, std::int64_t calls) {
    SimulationConfig config = shootdown(true, calls);
    config.vms[0].tasks[0].program[1] = repeat(calls, {ipi(1, always(1us))});
    if (deferred) flushes(config, false);
    return simulate(config, 60ms).time("vms.g.time_s.overhead");
  };
  EXPECT_EQ(overhead(true, 3), overhead(true, 1));
  // Without it there is the exit to send.
  EXPECT_EQ(overhead(true, 1) - Duration(700ns), overhead(false, 1) - Duration(200ns));
}

TEST(PvTlbFlush, IsNotForCallsThatNeedAnAnswer) {
  SimulationConfig config = shootdown(false);
  flushes(config, true);
  const Results r = simulate(config, 60ms);
  EXPECT_GT(r.time("vms.g.tasks.t0.elapsed_s"), Duration(20ms));
  EXPECT_EQ(r.count("vms.g.deferred_flushes"), 0);
}

TEST(PvIpi, OneHypercallIsForManyTargets) {
  for (const std::int64_t targets : {1, 2, 128}) {
    SimulationConfig config = guests({{ipi(3, always(1us))}, busy(), busy(), busy()}, {{0}, {1}, {2}, {3}}, 4);
    turn_on(config, "pv_ipi", {{"targets", targets}});
    const Results r = simulate(config, 1ms);
    EXPECT_EQ(r.count("host.exits.hypercall"), (3 + targets - 1) / targets);
    EXPECT_EQ(r.count("host.exits.ipi"), 3);  // taken
  }
}

TEST(PvIpi, MayYieldToTheFirstTargetThatIsPreempted) {
  for (const bool yield : {false, true}) {
    // Caller and target take turns of 10 ms; the call is made at 25 ms.
    SimulationConfig config =
        guests({{user(always(15ms)), ipi(1, always(1us)), user(always(1s))}, busy()}, {{0}, {0}}, 1);
    config.host.scheduler.params["quantum"] = Duration(10ms);
    turn_on(config, "steal_clock");
    turn_on(config, "pv_ipi", {{"yield", yield}});
    const Duration spin = simulate(config, 60ms).time("vms.g.time_s.spin");
    if (yield) {
      EXPECT_LT(spin, 1us);
    } else {
      EXPECT_GT(spin, 4990us);
    }
  }
}

// ---- locks of each task ----------------------------------------------------------------------------------------

TEST(LockInstances, PerTaskAreNeverContended) {
  for (const bool per_task : {false, true}) {
    VmConfig vm = guest("g", 4, {repeat(100, {user(always(1us)), hold(0, always(1us))})});
    if (per_task) vm.guest.locks[0].kind.params["instances"] = std::string("per_task");
    const Results r = simulate_to_the_end(host("round_robin", 4, {vm}));
    EXPECT_EQ(r.count("vms.g.locks.l.acquisitions"), 400);
    EXPECT_EQ(r.count("vms.g.locks.l.contended") == 0, per_task);
  }
}

}  // namespace
}  // namespace vcpusim::testing
