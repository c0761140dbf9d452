#include <gtest/gtest.h>

#include "tests/models/host/random_life.h"
#include "tests/support/fake_host.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

constexpr Duration kPicosecond{1};

// One VM for each number, with so many vCPUs.
std::vector<FakeVcpu> vms(const std::vector<std::size_t>& sizes) {
  std::vector<FakeVcpu> vcpus;
  for (std::uint32_t vm = 0; vm < sizes.size(); ++vm) {
    for (std::size_t i = 0; i < sizes[vm]; ++i) vcpus.push_back({.vm = vm});
  }
  return vcpus;
}

double share(const FakeHost& host, VcpuIndex vcpu) {
  return to_seconds(host.ran(vcpu)) / to_seconds(host.now() - kTimeZero);
}

int idle_pcpus(const FakeHost& host) {
  int idle = 0;
  for (std::uint32_t i = 0; i < host.machine().pcpus(); ++i) idle += host.running_on(PcpuId{i}) == kNoVcpu ? 1 : 0;
  return idle;
}

// Whether each VM runs with all of its vCPUs that are not halted or with none.
testing::AssertionResult all_or_none(const FakeHost& host) {
  std::map<std::uint32_t, std::pair<int, int>> running_and_waiting;
  for (VcpuIndex v = 0; v < host.vcpus().size(); ++v) {
    auto& [running, waiting] = running_and_waiting[host.vcpus()[v].vm];
    running += host.is_running(v) ? 1 : 0;
    waiting += host.is_ready(v) ? 1 : 0;
  }
  for (const auto& [vm, counts] : running_and_waiting) {
    if (counts.first > 0 && counts.second > 0) {
      return testing::AssertionFailure() << "VM " << vm << " runs " << counts.first << " vCPUs while " << counts.second
                                         << " wait, at " << to_microseconds(host.now() - kTimeZero) << " us";
    }
  }
  return testing::AssertionSuccess();
}

TEST(Gang, SharesFollowWeightsWithinOneSlotOverAnyTwenty) {
  for (std::size_t k = 2; k <= 8; ++k) {
    std::vector<FakeVcpu> vcpus = vms(std::vector<std::size_t>(k, 1));
    for (std::size_t i = 0; i < k; ++i) vcpus[i].weight = static_cast<std::int64_t>(512 * (1 + i % 3));
    FakeHost host("gang", pcpus(1), vcpus);
    host.start_all();
    host.run_until(at(10s));
    ASSERT_GT(host.stints().size(), 50u);
    // The longest slot is that of weight 1536.
    EXPECT_LE(worst_deviation_from_share(host, vcpus, 20 * 10ms), Duration(15ms)) << k;
  }
}

TEST(Gang, TwoVmsOfThreeOnFourPcpusLeaveExactlyOneIdle) {
  FakeHost host("gang", pcpus(4), vms({3, 3}));
  host.start_all();
  int changes = 0;
  bool first_vm_ran = true;
  for (SimTime t = at(0ms); t < at(2s); t += 777us) {
    host.run_until(t);
    ASSERT_EQ(idle_pcpus(host), 1);
    ASSERT_TRUE(all_or_none(host));
    // Of those that wait, one could run on the idle pCPU.
    int costopped = 0;
    for (VcpuIndex v = 0; v < 6; ++v) {
      ASSERT_FALSE(host.costopped(v) && host.is_running(v));
      costopped += host.costopped(v) ? 1 : 0;
    }
    ASSERT_EQ(costopped, 1);
    changes += host.is_running(0) != first_vm_ran ? 1 : 0;
    first_vm_ran = host.is_running(0);
  }
  EXPECT_EQ(changes, 199);
  host.run_until(at(2s));
  for (VcpuIndex v = 0; v < 6; ++v) EXPECT_EQ(host.ran(v), Duration(1s));
  EXPECT_EQ(host.migrations(), 0u);
  // Siblings come and go at the same instants.
  for (const FakeHost::Stint& s : host.stints()) EXPECT_EQ(s.length(), Duration(10ms));
}

TEST(Gang, ASlotEndsAtTheQuantumAndNotBefore) {
  FakeHost host("gang", pcpus(2), vms({2, 2}));
  host.start_all();
  host.run_until(at(10ms) - kPicosecond);
  EXPECT_TRUE(host.is_running(0) && host.is_running(1));
  host.run_until(at(10ms));
  EXPECT_TRUE(host.is_running(2) && host.is_running(3));
}

TEST(Gang, ABigVmDoesNotStarveBesideSmallOnes) {
  FakeHost host("gang", pcpus(4), vms({1, 1, 4, 1, 1, 1}));
  host.start_all();
  host.run_until(at(10s));
  // One slot in three at least: five small ones need two slots, and whoever fits joins in.
  for (VcpuIndex v = 2; v < 6; ++v) EXPECT_EQ(host.ran(v), host.ran(2));
  EXPECT_GE(share(host, 2), 0.33);
  for (const VcpuIndex v : {0u, 1u, 6u, 7u, 8u}) EXPECT_GE(share(host, v), 0.33);
}

TEST(Gang, OneThatRarelyRunsDoesNotKeepABigVmFromBeingFirst) {
  // VM 2 wants both pCPUs in each slot, but only for a microsecond: then the small VM 1 would fit, and the big VM 0
  // not.
  FakeHost host("gang", pcpus(2), vms({2, 1, 2}));
  for (const VcpuIndex v : {3u, 4u}) host.burst(v, 1us, 249us);
  host.start_all();
  host.run_until(at(10s));
  EXPECT_GE(share(host, 0), 0.3);
  EXPECT_EQ(host.ran(0), host.ran(1));
}

TEST(Gang, WhatRemainsIsFilledByGangsThatFitWhole) {
  FakeHost host("gang", pcpus(8), vms({3, 3, 3, 2}));
  host.start_all();
  host.run_until(at(5ms));
  // 3 + 3 leave two pCPUs, in which the third does not fit and the fourth does.
  EXPECT_TRUE(host.is_running(0));
  EXPECT_TRUE(host.is_running(3));
  EXPECT_FALSE(host.is_running(6));
  EXPECT_TRUE(host.is_running(9));
  host.run_until(at(15ms));
  EXPECT_TRUE(host.is_running(6));
  host.run_until(at(3s));
  for (const VcpuIndex v : {0u, 3u, 6u}) EXPECT_NEAR(share(host, v), 2.0 / 3, 0.01);
}

TEST(Gang, HaltedVcpusTakeNoSlot) {
  FakeHost host("gang", pcpus(4), vms({3, 2}));
  host.start_all();
  host.run_until(at(1ms));
  EXPECT_FALSE(host.is_running(3));
  host.block(2);
  EXPECT_TRUE(host.is_running(3) && host.is_running(4));
  host.run_until(at(1s));
  EXPECT_EQ(host.ran(0), Duration(1s));
  EXPECT_EQ(host.ran(4), Duration(999ms));
}

TEST(Gang, AWokenVcpuJoinsItsGangAtOnceOnAFreePcpu) {
  FakeHost host("gang", pcpus(4), vms({3, 3}));
  for (const VcpuIndex v : {0u, 1u, 3u, 4u, 5u}) host.start(v);
  host.run_until(at(3ms));
  ASSERT_TRUE(host.is_running(0) && host.is_running(1));
  ASSERT_FALSE(host.is_running(3));
  host.wake(2);
  EXPECT_TRUE(host.is_running(2));
  host.run_until(at(10ms));
  EXPECT_TRUE(host.is_running(3) && !host.is_running(2));
}

TEST(Gang, AGangThatGrowsSendsTheOnesBehindItAwayOrGoesItself) {
  FakeHost host("gang", pcpus(4), vms({3, 3}));
  for (const VcpuIndex v : {0u, 1u, 3u, 4u}) host.start(v);
  host.run_until(at(3ms));
  ASSERT_EQ(idle_pcpus(host), 0);
  host.wake(5);  // of the second VM, which has to go
  EXPECT_FALSE(host.is_running(3) || host.is_running(4) || host.is_running(5));
  EXPECT_TRUE(host.is_running(0) && host.is_running(1));
  host.run_until(at(10ms));  // it comes first now, and the other one does not fit beside it
  EXPECT_TRUE(host.is_running(3) && host.is_running(4) && host.is_running(5));
  EXPECT_FALSE(host.is_running(0) || host.is_running(1));
  host.block(5);
  EXPECT_TRUE(host.is_running(0) && host.is_running(1));
  host.run_until(at(12ms));
  host.wake(5);  // of the first in the order now
  EXPECT_TRUE(host.is_running(3) && host.is_running(4) && host.is_running(5));
  EXPECT_FALSE(host.is_running(0) || host.is_running(1));
}

TEST(Gang, AffinityIsMetByMovingSiblings) {
  // The first could run anywhere and would take pCPU 0, which the second needs, and so on.
  FakeHost host("gang", pcpus(3),
                {{.affinity = only({0, 1, 2})}, {.affinity = only({0, 1})}, {.affinity = only({0})}, {.vm = 1}});
  host.start_all();
  host.run_until(at(1s));
  for (VcpuIndex v = 0; v < 3; ++v) EXPECT_NEAR(share(host, v), 0.5, 0.01);
  EXPECT_NEAR(share(host, 3), 0.5, 0.01);
}

TEST(Gang, AVmThatCannotFitIsCutIntoGangsThatDo) {
  FakeHost host("gang", pcpus(4), vms({6}));
  host.start_all();
  host.run_until(at(2s));
  for (VcpuIndex v = 0; v < 6; ++v) EXPECT_EQ(host.ran(v), Duration(1s));
}

TEST(Gang, ASleeperHasNoClaimToTheTimeThatItDidNotUse) {
  FakeHost host("gang", pcpus(1), vms({1, 1}));
  host.start(0);
  host.at(at(1s), [&] { host.wake(1); });
  host.run_until(at(2s));
  EXPECT_NEAR(to_seconds(host.ran(1)), 0.5, 0.011);
}

TEST(Gang, RunsAllOrNoneWhateverHappens) {
  RandomStream random(1, "gang", "test");
  int runs_with_idle = 0;
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t count = 2 + static_cast<std::uint32_t>(random.below(6));
    std::vector<std::size_t> sizes(2 + random.below(5));
    for (std::size_t& size : sizes) size = 1 + random.below(count);
    std::vector<FakeVcpu> vcpus = vms(sizes);
    for (FakeVcpu& v : vcpus) v.weight = static_cast<std::int64_t>(256 * (1 + v.vm % 4));
    FakeHost host("gang", pcpus(count), vcpus);
    for (VcpuIndex v = 0; v < vcpus.size(); ++v) {
      if (random.below(3) == 0) continue;
      host.burst(v, Duration(1us) * (50 + random.below(20'000)), Duration(1us) * (10 + random.below(10'000)));
    }
    host.start_all();
    for (SimTime t = at(0ms); t < at(400ms); t += 113us) {
      host.run_until(t);
      ASSERT_TRUE(all_or_none(host)) << round;
      if (idle_pcpus(host) > 0) ++runs_with_idle;
    }
    for (VcpuIndex v = 0; v < vcpus.size(); ++v) EXPECT_GT(host.ran(v), Duration::zero()) << round;
  }
  EXPECT_GT(runs_with_idle, 1000);
}

TEST(Gang, KeepsItsContractWhateverHappens) {
  RandomStream random(3, "gang", "test");
  std::uint64_t switches = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random.below(6));
    FakeHost host("gang", pcpus(count), random_vcpus(random, count));
    live_at_random(host, random, 100);
    switches += host.switches();
  }
  EXPECT_GT(switches, 5'000u);
}

}  // namespace
}  // namespace vcpusim
