// Random small guests over the locks that halt or sleep, on overcommitted hosts: every run comes to its end.
#include <gtest/gtest.h>

#include <array>

#include "sim/random.h"
#include "tests/models/locks/lock_runs.h"

namespace vcpusim::testing {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed, "locks_property_test", "dice") {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool coin() { return between(0, 1) == 1; }
  template <std::size_t N>
  std::string any_of(const std::array<const char*, N>& names) {
    return names[static_cast<std::size_t>(between(0, N - 1))];
  }

 private:
  RandomStream random_;
};

Params random_params(const std::string& kind, Dice& dice) {
  Params params;
  if (kind == "pv_ticket" || kind == "pv_qspinlock") {
    constexpr std::array<std::int64_t, 4> kThresholds{1, 30, 1000, 32768};
    params["spin_threshold"] = kThresholds[static_cast<std::size_t>(dice.between(0, 3))];
    params["kick_yield"] = dice.coin();
  }
  if (kind == "pv_ticket") params["flag"] = dice.any_of(std::array{"tail", "head"});
  if (kind == "pv_qspinlock") {
    params["steal"] = dice.any_of(std::array{"none", "once", "hybrid"});
    params["wait_early"] = dice.any_of(std::array{"off", "node", "node_or_preempted"});
    params["kick"] = dice.any_of(std::array{"lock_time", "unlock_time", "adaptive"});
    params["kick_ahead"] = dice.between(-1, 3);
    params["check_period"] = dice.between(1, 300);
  }
  if (kind == "mutex") {
    params["spin"] = dice.coin();
    params["handoff"] = dice.coin();
  }
  if (kind == "rcu") params["synchronous"] = dice.coin();
  return params;
}

constexpr std::int64_t kPasses = 40;

struct Scenario {
  SimulationConfig config;
  std::int64_t acquisitions;  // of each VM's lock
};

Scenario random_scenario(const std::string& kind, std::uint64_t seed) {
  Dice dice(seed);
  const std::int64_t vcpus = dice.between(1, 6);
  const std::int64_t tasks = dice.between(vcpus, 2 * vcpus);
  VmConfig vm;
  vm.name = "g";
  vm.vcpus = vcpus;
  vm.copies = dice.between(1, 2);
  vm.guest.locks.push_back({"l", {kind, random_params(kind, dice)}});
  vm.guest.locks.push_back({"inner", {"ticket", {}}});
  if (dice.coin()) vm.guest.tick = Duration(dice.between(100, 1000) * 1us);
  vm.guest.timeslice = Duration(dice.between(1, 2000) * 1us);
  const auto short_span = [&] { return exponential(Duration(dice.between(100, 5000) * 1ns)); };
  Program body{user(short_span()), dice.coin() ? hold(0, short_span()) : hold_irqs_off(0, short_span())};
  std::int64_t sections = 1;
  if (kind == "mutex") {
    body.push_back(hold(0, Program{kernel(short_span()), sleep(short_span()), hold(1, short_span())}));
    ++sections;
  } else if (dice.coin()) {
    body.push_back(hold(0, Program{hold(1, short_span())}));
    ++sections;
  }
  if (kind == "rcu") {
    Fill fill;
    fill.indices["rcu_read"] = 0;
    fill.distributions["hold"] = short_span();
    body.push_back(operation("rcu_read", std::move(fill)));
  }
  if (dice.coin()) body.push_back(sleep(short_span()));
  vm.tasks.push_back({"t", tasks, {repeat(kPasses, std::move(body))}});

  SimulationConfig config = host(dice.any_of(std::array{"round_robin", "cfs", "eevdf"}), dice.between(1, vcpus), {vm});
  config.seed = seed;
  config.host.machine = dice.coin() ? find_machine_kind("generic")->make() : round_machine();
  if (dice.coin()) config.host.assists["steal_clock"] = {"steal_clock", {{"halted_reads_preempted", dice.coin()}}};
  // Under round robin two spinners can yield their pCPU to each other for ever, and nobody else gets it.
  if (dice.coin() && config.host.scheduler.name != "round_robin") config.host.assists["ple"] = {"ple", {}};
  if (dice.coin()) config.host.assists["halt_poll"] = {"halt_poll", {}};
  if (dice.coin()) {
    config.host.assists["hint"] = {"hint",
                                   {{"mark", dice.any_of(std::array{"kernel", "request", "owner"})},
                                    {"fallback", dice.any_of(std::array{"resume", "stock"})}}};
  }
  return {std::move(config), kPasses * sections * tasks * vm.copies};
}

class LocksProperty : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kind, LocksProperty, ::testing::Values("pv_ticket", "pv_qspinlock", "mutex", "rcu"),
                         [](const auto& test) { return test.param; });

TEST_P(LocksProperty, EveryRunEndsAndEveryWaiterGetsTheLock) {
  std::int64_t halts = 0;
  std::int64_t kicks = 0;
  std::int64_t spurious = 0;
  std::int64_t steals = 0;
  std::int64_t holder_preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const auto [config, acquisitions] = random_scenario(GetParam(), seed);
    const Results r = simulate_to_the_end(config, 60s);
    ASSERT_EQ(r.run().ended, RunResult::Ended::kWorkloadsDone) << "seed " << seed << ": " << r.run().why;
    ASSERT_EQ(lock_count(r, "acquisitions"), acquisitions) << seed;
    ASSERT_EQ(lock_count(r, "kicks") + r.count("vms.g.hints"), r.count("host.exits.hypercall")) << seed;
    double total = 0;
    for (const char* part : {"user", "system", "hold", "spin", "overhead", "steal", "halted", "idle"}) {
      total += r.number("vms.g.time_s." + std::string(part));
    }
    const double lifetime =
        r.number("vms.g.elapsed_s") * static_cast<double>(config.vms[0].vcpus * config.vms[0].copies);
    ASSERT_NEAR(total, lifetime, 1e-9 * lifetime) << seed;
    halts += lock_count(r, "halts");
    kicks += lock_count(r, "kicks");
    spurious += lock_count(r, "spurious_wakeups");
    steals += lock_count(r, "steals");
    holder_preemptions += lock_count(r, "holder_preemptions");
  }
  const std::string kind = GetParam();
  const bool paravirtual = kind == "pv_ticket" || kind == "pv_qspinlock";
  EXPECT_GT(holder_preemptions, 10);
  EXPECT_TRUE(kind == "rcu" ? halts == 0 : halts > 1000) << halts;
  EXPECT_TRUE(paravirtual ? kicks > 1000 : kicks == 0) << kicks;
  EXPECT_TRUE(kind == "rcu" ? spurious == 0 : spurious > 10) << spurious;
  EXPECT_TRUE(kind == "pv_qspinlock" || kind == "mutex" ? steals > 100 : steals == 0) << steals;
}

}  // namespace
}  // namespace vcpusim::testing
