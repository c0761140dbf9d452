// Closed forms: the machine-repairman queue, whose throughput mean value analysis gives exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/random.h"
#include "tests/support/simulate.h"
#include "tests/support/statistics.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

// N tasks that think, then queue for one server: exact mean value analysis (Reiser and Lavenberg, J. ACM 27(2), 1980).
struct MachineRepairman {
  std::int64_t tasks;
  Duration think;
  Duration hold;

  struct Means {
    double throughput;  // per second
    double wait;        // seconds, for the server and not in it
  };
  Means means() const {
    const double z = to_seconds(think);
    const double s = to_seconds(hold);
    double queue = 0;
    double throughput = 0;
    double response = 0;
    for (std::int64_t n = 1; n <= tasks; ++n) {
      response = s * (1 + queue);
      throughput = static_cast<double>(n) / (z + response);
      queue = throughput * response;
    }
    return {throughput, response - s};
  }

  friend std::ostream& operator<<(std::ostream& out, const MachineRepairman& m) {
    return out << m.tasks << " tasks, think " << to_microseconds(m.think) << " us, hold " << to_microseconds(m.hold)
               << " us";
  }
};

std::vector<MachineRepairman> random_cases(std::size_t count) {
  RandomStream random(1, "machine repairman", "cases");
  std::vector<MachineRepairman> cases;
  while (cases.size() < count) {
    const auto tasks = static_cast<std::int64_t>(2 + random.below(15));
    const Duration hold(static_cast<std::int64_t>(100'000 + random.below(10'000'000)));
    // From a server that is hardly used to one that is hardly ever idle.
    const double offered = std::exp(std::log(0.2) + random.unit() * (std::log(3.0) - std::log(0.2)));
    const Duration think(std::llround(static_cast<double>(hold.count() * tasks) / offered));
    cases.push_back({tasks, think, hold});
  }
  return cases;
}

class MachineRepairmanSlow : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, MachineRepairmanSlow, ::testing::Values("ideal", "ticket", "ttas", "mcs", "qspinlock"),
                         [](const auto& lock) { return lock.param; });

TEST_P(MachineRepairmanSlow, ThroughputAndWaitAreInTheirConfidenceIntervals) {
  constexpr std::size_t kCases = 25;
  constexpr std::uint64_t kReplications = 20;
  std::size_t throughputs_inside = 0;
  std::size_t waits_inside = 0;
  std::string outside;
  std::uint64_t seed = 0;  // no two runs share random numbers: cases that resemble each other stay independent
  for (const MachineRepairman& m : random_cases(kCases)) {
    const MachineRepairman::Means exact = m.means();
    std::vector<double> throughputs;
    std::vector<double> waits;
    for (std::uint64_t i = 0; i < kReplications; ++i) {
      VmConfig vm = guest("g", m.tasks, forever({user(exponential(m.think)), hold(0, exponential(m.hold))}));
      vm.guest.locks[0].kind.name = GetParam();
      SimulationConfig config = native(vm);
      config.seed = ++seed;
      const Duration per_acquisition(std::llround(1e12 / exact.throughput));
      config.warmup = 1'000 * per_acquisition;
      config.stop.at = 34'000 * per_acquisition;
      Simulation simulation(config, nullptr);
      const Results r(simulation.run(), {});
      throughputs.push_back(r.number("vms.g.locks.l.acquisitions_per_s"));
      waits.push_back(r.number("vms.g.locks.l.wait_us.mean") * 1e-6);
    }
    const Interval throughput = confidence_interval(throughputs, 0.99);
    const Interval wait = confidence_interval(waits, 0.99);
    EXPECT_LT(throughput.width(), 0.01 * throughput.middle()) << m;
    throughputs_inside += throughput.contains(exact.throughput) ? 1 : 0;
    // Who waits least waits longest: the mean wait does not depend on the order of service.
    waits_inside += wait.contains(exact.wait) ? 1 : 0;
    if (!throughput.contains(exact.throughput)) {
      outside +=
          (::testing::Message() << m << ": " << exact.throughput << " not in " << throughput << "\n").GetString();
    }
  }
  EXPECT_GE(throughputs_inside, kCases - 1) << outside;
  EXPECT_GE(waits_inside, kCases - 1);
  RecordProperty("throughputs_inside", static_cast<int>(throughputs_inside));
  RecordProperty("waits_inside", static_cast<int>(waits_inside));
}

// Little's law, exactly, for waits that are over: the mean number of tasks that spin is throughput times mean wait.
TEST(Law, TimeSpentSpinningIsAcquisitionsTimesMeanWait) {
  VmConfig vm = guest("g", 8, {repeat(2'000, {user(exponential(20us)), hold(0, exponential(5us))})});
  const Results r = simulate_to_the_end(native(vm));
  const auto acquisitions = r.count("vms.g.locks.l.acquisitions");
  ASSERT_EQ(acquisitions, 16'000);
  EXPECT_GT(r.count("vms.g.locks.l.contended"), 1'000);
  EXPECT_NEAR(r.number("vms.g.locks.l.wait_us.mean") * 1e-6 * static_cast<double>(acquisitions),
              r.number("vms.g.time_s.spin"), 1e-12 * static_cast<double>(acquisitions));
  EXPECT_EQ(r.time("vms.g.locks.l.spin_s"), r.time("vms.g.time_s.spin"));
  EXPECT_NEAR(r.number("vms.g.locks.l.hold_us.mean") * 1e-6 * static_cast<double>(acquisitions),
              r.number("vms.g.time_s.hold"), 1e-12 * static_cast<double>(acquisitions));
}

// k busy vCPUs on a pCPU: every one waits exactly k - 1 quanta for its next.
TEST(Law, RoundRobinDelaysAreBounded) {
  for (std::int64_t k = 2; k <= 6; ++k) {
    VmConfig vm = guest("g", 1, busy());
    vm.copies = k;
    SimulationConfig config = host("round_robin", 1, {vm});
    config.host.scheduler.params["quantum"] = Duration(7ms);
    const Results r = simulate(config, 10s);
    for (std::uint32_t vcpu = 0; vcpu < static_cast<std::uint32_t>(k); ++vcpu) {
      const std::vector<Stint> stints = r.stints_of(vcpu);
      ASSERT_GT(stints.size(), 100u);
      for (std::size_t i = 1; i < stints.size(); ++i) {
        EXPECT_EQ(stints[i].begin - stints[i - 1].end, (k - 1) * Duration(7ms));
      }
    }
  }
}

// All costs times k gives all times times k.
TEST(Law, TimeHasNoUnitOfItsOwn) {
  const auto run = [](std::int64_t k) {
    VmConfig vm = guest("g", 4, {});
    vm.tasks.clear();
    for (const std::int64_t work : {11, 13, 17, 19}) {
      vm.tasks.push_back(
          {"t" + std::to_string(work),
           1,
           {repeat(500, {user(always(k * work * 1us)), hold(0, always(k * 31us)), sleep(always(k * 5us))})}});
    }
    SimulationConfig config = host("round_robin", 3, {vm});
    config.host.scheduler.params["quantum"] = k * Duration(100us);
    config.host.machine.costs.same_socket = {.load = k * 50ns, .load_shared = k * 20ns, .store = k * 60ns};
    config.host.machine.costs.local_access = k * Duration(1ns);
    config.host.machine.costs.local_atomic = k * Duration(8ns);
    config.host.machine.costs.transitions = {.vm_exit = k * 1us,
                                             .context_switch = k * 2us,
                                             .resched_ipi = k * 1us,
                                             .idle_wake = k * 5us,
                                             .refill_same_socket = k * 20us,
                                             .guest_switch = k * 1500ns};
    return simulate_to_the_end(config);
  };
  const Results once = run(1);
  const Results thrice = run(3);
  EXPECT_GT(once.count("vms.g.locks.l.contended"), 100);
  EXPECT_GT(once.number("vms.g.time_s.steal"), 0);
  for (const auto& [path, value] : once.metrics()) {
    if (const auto* count = std::get_if<std::int64_t>(&value)) {
      EXPECT_EQ(*count, thrice.count(path)) << path;
    } else if (path.ends_with("_s") || path.find("time_s.") != std::string::npos) {
      const double s = std::get<double>(value);
      if (path.ends_with("per_s")) {
        EXPECT_NEAR(s / 3, thrice.number(path), 1e-9 * s) << path;
      } else {
        EXPECT_NEAR(3 * s, thrice.number(path), 1e-12) << path;
      }
    }
  }
}

}  // namespace
}  // namespace vcpusim::testing
