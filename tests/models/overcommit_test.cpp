// Fair and unfair spinlocks on overcommitted pCPUs: the collapse, and what it is made of.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/simulate.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

// `vms` guests of 16 vCPUs on 16 pCPUs; each task computes for 80 us and holds the lock for 2 us, `passes` times. They
// begin in the course of 50 ms: guests that begin at the same instant and never block would change places on all pCPUs
// at once for ever, as under a gang scheduler.
Results guests(const std::string& scheduler, const std::string& lock, std::int64_t vms, std::int64_t passes) {
  VmConfig vm = guest(
      "g", 16,
      {sleep(Distribution::uniform(0us, 50ms)), repeat(passes, {user(exponential(80us)), hold(0, exponential(2us))})});
  vm.copies = vms;
  vm.guest.locks[0].kind.name = lock;
  vm.guest.tick = 1ms;
  SimulationConfig config = host(scheduler, 16, {vm});
  config.host.machine = find_machine_kind("generic")->make();
  if (scheduler == "round_robin") config.host.scheduler.params["quantum"] = Duration(6ms);
  config.stop.at_most = std::chrono::hours(1);
  Simulation simulation(config, nullptr);
  return {simulation.run(), {}};
}

class FairLocksUnder : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, FairLocksUnder, ::testing::Values("round_robin", "cfs", "eevdf"),
                         [](const auto& scheduler) { return scheduler.param; });

TEST_P(FairLocksUnder, AreAsGoodAsUnfairOnesWithoutOvercommit) {
  const Results ticket = guests(GetParam(), "ticket", 1, 2'000);
  const Results ttas = guests(GetParam(), "ttas", 1, 2'000);
  EXPECT_NEAR(ticket.number("vms.g.elapsed_s") / ttas.number("vms.g.elapsed_s"), 1, 0.05);
  EXPECT_GT(ticket.count("vms.g.locks.l.contended"), 1'000);
  EXPECT_EQ(ticket.number("vms.g.locks.l.idle_reserved_s"), 0);
}

TEST_P(FairLocksUnder, CollapseWithTwoGuestsForTheTimeThatTheLockIsKeptForWhoeverDoesNotRun) {
  const Results ticket = guests(GetParam(), "ticket", 2, 2'000);
  const Results ttas = guests(GetParam(), "ttas", 2, 2'000);
  ASSERT_EQ(ticket.run().ended, RunResult::Ended::kWorkloadsDone);
  ASSERT_EQ(ticket.count("vms.g.locks.l.acquisitions"), ttas.count("vms.g.locks.l.acquisitions"));
  for (const std::string vm : {"vms.g-0.", "vms.g-1."}) {
    const double slow = ticket.number(vm + "elapsed_s");
    const double fast = ttas.number(vm + "elapsed_s");
    EXPECT_GE(slow, 5 * fast) << slow << " s, " << fast << " s";
    // It adds up: a guest is late by the time for which its lock was free and reserved, and for no other reason.
    EXPECT_EQ(ttas.number(vm + "locks.l.idle_reserved_s"), 0);
    const double reserved = ticket.number(vm + "locks.l.idle_reserved_s");
    EXPECT_NEAR(slow - fast, reserved, 0.02 * (slow - fast)) << vm;
  }
}

}  // namespace
}  // namespace vcpusim::testing
