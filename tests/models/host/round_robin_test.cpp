#include <gtest/gtest.h>

#include "tests/support/fake_host.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

TEST(RoundRobin, SharesFollowWeightsWithinOneQuantumOverAnyTwenty) {
  for (std::size_t k = 2; k <= 8; ++k) {
    std::vector<FakeVcpu> vcpus = busy(k);
    for (std::size_t i = 0; i < k; ++i) vcpus[i].weight = static_cast<std::int64_t>(512 * (1 + i % 3));
    FakeHost host("round_robin", pcpus(1), vcpus);
    host.start_all();
    host.run_until(at(20s));
    ASSERT_GT(host.stints().size(), 50u);
    // The largest quantum is that of weight 1536.
    EXPECT_LE(worst_deviation_from_share(host, vcpus, 20 * 100ms), Duration(150ms)) << k;
  }
}

TEST(RoundRobin, ChangesAtTheEndOfTheQuantumAndNotBefore) {
  FakeHost host("round_robin", pcpus(1), busy(2));
  host.start_all();
  host.run_until(at(100ms) - Duration{1});
  EXPECT_EQ(host.running_on(PcpuId{0}), 0u);
  host.run_until(at(100ms));
  EXPECT_EQ(host.running_on(PcpuId{0}), 1u);
}

TEST(RoundRobin, AnIdlePcpuTakesAWaitingVcpuAtOnce) {
  FakeHost host("round_robin", pcpus(2), busy(3));
  host.start_all();
  host.at(at(10ms), [&] { host.block(1); });
  host.run_until(at(10ms));
  EXPECT_TRUE(host.is_running(2));
  EXPECT_EQ(host.migrations(), 0u);  // it had not run before
  EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero());
}

TEST(RoundRobin, ALoneVcpuCostsNoChecks) {
  FakeHost host("round_robin", pcpus(1), busy(1));
  host.start_all();
  host.run_until(at(10s));
  EXPECT_EQ(host.ran(0), Duration(10s));
  EXPECT_EQ(host.checks(), 0u);
}

TEST(RoundRobin, YieldToRunsTheTargetNext) {
  FakeHost host("round_robin", pcpus(1), busy(3));
  host.start_all();
  host.run_until(at(10ms));
  ASSERT_TRUE(host.is_running(0));
  EXPECT_TRUE(host.yield_to(0, 2));
  EXPECT_TRUE(host.is_running(2));
}

}  // namespace
}  // namespace vcpusim
