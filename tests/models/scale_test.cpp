// A host as large as they come.
#include <gtest/gtest.h>

#include "tests/support/simulate.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

class LargeHostSlow : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, LargeHostSlow, ::testing::Values("cfs", "eevdf", "credit"),
                         [](const auto& scheduler) { return scheduler.param; });

TEST_P(LargeHostSlow, RunsAThousandVcpusOn256PcpusForTenSeconds) {
  VmConfig vm = guest("g", 8, forever({user(exponential(1ms)), hold(0, exponential(2us))}));
  vm.copies = 125;
  vm.guest.tick = 1ms;
  vm.guest.locks[0].kind.name = "ttas";
  SimulationConfig config = host(GetParam(), 256, {vm});
  config.host.machine = find_machine_kind("generic")->make();
  config.host.machine.sockets = 8;
  config.host.machine.cores_per_socket = 32;
  config.stop.at = 10s;
  Simulation simulation(config, nullptr);
  const Results r(simulation.run(), {});
  EXPECT_EQ(r.run().sim_time, Duration(10s));
  EXPECT_GT(r.number("host.busy_fraction"), 0.99);
  // Each vCPU has about 256 / 1000 of a pCPU and loses ticks for the rest of the time.
  EXPECT_NEAR(r.number("vms.g.cpu_s"), 2560, 26);
  EXPECT_NEAR(static_cast<double>(r.count("vms.g.clock.expected")), 1e7, 3e5);
  EXPECT_GT(r.count("vms.g.clock.coalesced"), 6'000'000);
  EXPECT_GT(r.count("vms.g.clock.delivered"), 2'000'000);
  Duration all{};
  for (const std::string activity : {"user", "system", "hold", "spin", "overhead", "steal", "halted", "idle"}) {
    all += r.time("vms.g.time_s." + activity);
  }
  EXPECT_NEAR(to_seconds(all), 10'000, 1e-9 * 10'000);
}

}  // namespace
}  // namespace vcpusim::testing
