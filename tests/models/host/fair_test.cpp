// What cfs and eevdf share.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "sim/random.h"
#include "tests/support/fake_host.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

MachineConfig machine(std::int64_t sockets, std::int64_t cores, std::int64_t threads) {
  MachineConfig config;
  config.sockets = sockets;
  config.cores_per_socket = cores;
  config.threads_per_core = threads;
  return config;
}

class Fair : public testing::TestWithParam<std::string> {
 protected:
  static Kind kind(std::map<std::string, ParamValue> params = {}) { return {GetParam(), std::move(params)}; }
};
INSTANTIATE_TEST_SUITE_P(, Fair, testing::Values("cfs", "eevdf"), [](const auto& value) { return value.param; });

TEST_P(Fair, RotatesFortyEightHogsOverThirtyTwoPcpusWhereverTheyStart) {
  for (const auto& config : {machine(1, 32, 1), machine(2, 16, 1), machine(4, 8, 1), machine(2, 8, 2)}) {
    for (const std::int64_t hz : {250, 1000}) {
      for (const bool in_order : {true, false}) {
        FakeHost host(kind({{"hz", hz}}), config, busy(48));
        RandomStream random(1, GetParam(), "start");
        std::vector<VcpuIndex> order(48);
        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t i = 47; i > 0 && !in_order; --i) std::swap(order[i], order[random.below(i + 1)]);
        for (const VcpuIndex v : order) {
          host.start(v);
          if (!in_order) host.run_for(1us * random.below(2000));
        }
        const SimTime start = host.now();
        std::vector<Duration> before(48);
        for (VcpuIndex v = 0; v < 48; ++v) before[v] = host.ran(v);
        host.run_until(start + 10s);
        for (VcpuIndex v = 0; v < 48; ++v) {
          EXPECT_NEAR(to_seconds(host.ran(v) - before[v]), 20.0 / 3, 0.03 * 20 / 3)
              << config.sockets << " sockets, hz " << hz << (in_order ? ", in order" : "") << ", vCPU " << v;
        }
        EXPECT_GT(host.migrations(), 300u);
        EXPECT_LT(host.longest_idle_beside_ready(), Duration(4ms));
        // Each switch takes a check; balancing adds less than 120 a second and pCPU, far from one at every tick.
        EXPECT_LT(host.checks(), host.switches() + 32u * 10 * 120);
      }
    }
  }
}

TEST_P(Fair, DoesNotTickWhereNothingCanChange) {
  FakeHost host(kind(), machine(2, 8, 2), busy(32));
  host.start_all();
  host.run_until(at(10s));
  for (VcpuIndex v = 0; v < 32; ++v) EXPECT_EQ(host.ran(v), Duration(10s));
  EXPECT_EQ(host.checks(), 0u);
}

TEST_P(Fair, DoesNotTickForPinnedVcpus) {
  std::vector<FakeVcpu> vcpus = busy(4);
  for (std::uint32_t i = 0; i < 4; ++i) vcpus[i].affinity = only({i});
  FakeHost host(kind(), pcpus(8), vcpus);
  host.start_all();
  host.run_until(at(10s));
  EXPECT_EQ(host.checks(), 0u);
}

TEST_P(Fair, NewVcpusSpreadOverSocketsAndCores) {
  FakeHost host(kind(), machine(2, 4, 2), busy(8));
  host.start_all();
  std::vector<int> on_core(8);
  for (std::uint32_t p = 0; p < 16; ++p) {
    if (host.running_on(PcpuId{p}) != kNoVcpu) ++on_core[host.machine().core_of(PcpuId{p})];
  }
  EXPECT_EQ(on_core, std::vector<int>(8, 1));
}

TEST_P(Fair, AWokenVcpuReturnsToItsPcpuOrToAnIdleOneOfTheSocket) {
  // Four on pCPUs 0 (socket 0), 4 (socket 1), 1 and 5.
  FakeHost host(kind(), machine(2, 4, 1), busy(6));
  for (VcpuIndex v = 0; v < 4; ++v) host.start(v);
  host.run_until(at(100ms));
  const PcpuId home = host.last_pcpu(0);
  host.block(0);
  host.run_until(at(200ms));
  host.wake(0);
  EXPECT_EQ(host.running_on(home), 0u);
  // With its pCPU taken, it finds another in the socket.
  host.block(0);
  host.start(4);
  host.start(5);
  host.run_until(at(300ms));
  ASSERT_NE(host.running_on(home), kNoVcpu);
  host.wake(0);
  ASSERT_TRUE(host.is_running(0));
  EXPECT_NE(host.last_pcpu(0), home);
  EXPECT_EQ(host.machine().socket_of(host.last_pcpu(0)), host.machine().socket_of(home));
}

TEST_P(Fair, AWokenVcpuFollowsItsWakerToAnEmptierSocket) {
  // Socket 0 has four hogs on its two pCPUs, socket 1 one.
  std::vector<FakeVcpu> vcpus = busy(6);
  for (VcpuIndex v = 0; v < 5; ++v) vcpus[v].affinity = v < 4 ? only({0, 1}) : only({2});
  for (const bool wake_affine : {false, true}) {
    FakeHost host(kind({{"wake_affine", wake_affine}}), machine(2, 2, 1), vcpus);
    host.start(5);  // on pCPU 0
    host.run_until(at(1ms));
    host.block(5);
    for (VcpuIndex v = 0; v < 5; ++v) host.start(v);
    host.run_until(at(50ms));
    ASSERT_EQ(host.scheduler().runnable_on(PcpuId{0}), 2u);
    host.wake(5, PcpuId{2});
    EXPECT_EQ(host.scheduler().queue_of(5), wake_affine ? PcpuId{3} : PcpuId{0});
  }
}

TEST_P(Fair, APcpuThatGoesIdlePullsAtOnce) {
  FakeHost host(kind(), pcpus(2), busy(3));
  host.start_all();
  ASSERT_EQ(host.scheduler().runnable_on(PcpuId{0}), 2u);
  host.run_until(at(102ms));
  const VcpuIndex alone = host.running_on(PcpuId{1});
  host.block(alone);
  EXPECT_NE(host.running_on(PcpuId{1}), kNoVcpu);
  EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero());
}

// At the tick, the one that waits has only just been preempted: it is cache-hot, and nobody pulls it at first.
TEST_P(Fair, AnIdlePcpuGetsWorkThroughTheTickOfABusyOne) {
  FakeHost host(kind(), pcpus(2), busy(3));
  host.start_all();
  host.run_until(at(100ms));
  VcpuIndex alone = kNoVcpu;
  // Right after a switch on pCPU 0.
  while (host.stints_on(PcpuId{0}).empty() || host.stints_on(PcpuId{0}).back().end != host.now()) host.run_for(1ms);
  alone = host.running_on(PcpuId{1});
  host.block(alone);
  EXPECT_EQ(host.running_on(PcpuId{1}), kNoVcpu);
  const auto before = host.reschedules();
  host.run_for(40ms);
  EXPECT_NE(host.running_on(PcpuId{1}), kNoVcpu);
  EXPECT_GT(host.reschedules(), before);
  EXPECT_GT(host.longest_idle_beside_ready(), Duration::zero());
  EXPECT_LE(host.longest_idle_beside_ready(), Duration(4ms));  // by then it is no longer hot
}

TEST_P(Fair, HaltingVcpusLeaveNoPcpuIdleForLong) {
  FakeHost host(kind(), machine(2, 4, 1), busy(14));
  for (VcpuIndex v = 0; v < 14; ++v) host.burst(v, Duration(3ms + 700us * v), Duration(2ms + 900us * v));
  host.start_all();
  host.run_until(at(5s));
  EXPECT_GT(host.longest_idle_beside_ready(), Duration::zero());
  // The longest balance interval of an idle pCPU is twice the span of the machine in ms; two may fail for heat.
  EXPECT_LE(host.longest_idle_beside_ready(), Duration(2 * 8ms + 3 * 4ms));
}

TEST_P(Fair, StrandedVcpusFindTheIdlePcpuOfAnotherSocket) {
  // Both sockets have idle pCPUs, but those of socket 0 are closed to the three.
  std::vector<FakeVcpu> vcpus = busy(3);
  for (FakeVcpu& v : vcpus) v.affinity = only({0, 4, 5});
  FakeHost host(kind(), machine(2, 4, 1), vcpus);
  host.start_all();
  host.run_until(at(100ms));
  for (VcpuIndex v = 0; v < 3; ++v) EXPECT_TRUE(host.is_running(v));
}

TEST_P(Fair, BalancingRespectsAffinity) {
  // FakeHost checks that no pick is outside; here both kinds are busy on every pCPU that they may use.
  std::vector<FakeVcpu> vcpus = busy(9);
  for (VcpuIndex v = 0; v < 9; ++v) vcpus[v].affinity = v < 6 ? only({0, 1, 2, 3}) : only({2, 3});
  FakeHost host(kind(), pcpus(4), vcpus);
  host.start_all();
  host.run_until(at(10s));
  Duration total{};
  for (VcpuIndex v = 0; v < 9; ++v) total += host.ran(v);
  EXPECT_EQ(total, Duration(40s));
  EXPECT_GT(host.migrations(), 20u);
}

TEST_P(Fair, BalancingCanBeSwitchedOff) {
  FakeHost host(kind({{"balance", false}}), pcpus(2), busy(3));
  host.start_all();
  host.run_until(at(10s));
  EXPECT_EQ(host.migrations(), 0u);
  EXPECT_NEAR(to_seconds(host.ran(0)), 5.0, 0.05);
  EXPECT_NEAR(to_seconds(host.ran(1)), 10.0, 0.05);
}

// pCPU 0 is seconds of vruntime ahead of pCPU 1 when the third vCPU comes to the latter.
TEST_P(Fair, AMigrantIsNeitherAheadNorBehindInItsNewQueue) {
  FakeHost host(kind(), pcpus(2), busy(4));
  host.start(0);
  host.run_until(at(5s));
  for (VcpuIndex v = 1; v < 4; ++v) host.start(v);
  host.run_until(at(5s + 400ms));
  host.block(3);  // leaves three on two pCPUs, which they rotate over
  host.run_until(at(7s));
  std::array<Duration, 3> before{host.ran(0), host.ran(1), host.ran(2)};
  host.run_until(at(17s));
  for (VcpuIndex v = 0; v < 3; ++v) {
    EXPECT_NEAR(to_seconds(host.ran(v) - before[v]), 20.0 / 3, 0.2) << v;
    EXPECT_GT(host.migrations_of(v), 5u);
  }
  Duration longest{};
  for (const FakeHost::Stint& s : host.stints()) {
    if (s.begin > at(7s) && host.migrations() > 0) longest = std::max(longest, s.length());
  }
  EXPECT_LT(longest, Duration(500ms));
}

TEST_P(Fair, TicksAreAlignedUnlessSkewed) {
  for (const bool skew : {false, true}) {
    std::vector<FakeVcpu> vcpus = busy(4);
    for (VcpuIndex v = 0; v < 4; ++v) vcpus[v].affinity = only({v / 2});
    FakeHost host(kind({{"tick_skew", skew}}), pcpus(2), vcpus);
    host.start_all();
    host.run_until(at(1s));
    ASSERT_GT(host.stints_on(PcpuId{1}).size(), 20u);
    for (const FakeHost::Stint& s : host.stints_on(PcpuId{1})) {
      EXPECT_EQ(s.end.time_since_epoch() % Duration(4ms), skew ? Duration(1ms) : Duration::zero());
    }
    for (const FakeHost::Stint& s : host.stints_on(PcpuId{0})) {
      EXPECT_EQ(s.end.time_since_epoch() % Duration(4ms), Duration::zero());
    }
  }
}

TEST_P(Fair, AVmInOneGroupSharesTheWeightOfOneVcpu) {
  // VM 0 has three vCPUs, VM 1 one; all on one pCPU.
  std::vector<FakeVcpu> vcpus = busy(4);
  vcpus[3].vm = 1;
  for (const bool grouped : {false, true}) {
    FakeHost host(kind({{"group_by_vm", grouped}}), pcpus(1), vcpus);
    host.start_all();
    host.run_until(at(12s));
    EXPECT_NEAR(to_seconds(host.ran(3)), grouped ? 6 : 3, 0.05);
    EXPECT_NEAR(to_seconds(host.ran(0)), grouped ? 2 : 3, 0.05);
    // One of the three halts: the others have the whole weight.
    host.block(0);
    host.run_for(12s);
    EXPECT_NEAR(to_seconds(host.ran(3)), grouped ? 12 : 7, 0.1);
    EXPECT_NEAR(to_seconds(host.ran(1)), grouped ? 5 : 7, 0.1);
  }
}

// Random scenarios; the checks are those of FakeHost, and that no time is lost.
TEST_P(Fair, HoldsItsContractInRandomScenarios) {
  std::uint64_t migrations = 0;
  std::uint64_t yields = 0;
  std::uint64_t boosts = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomStream random(seed, GetParam(), "scenario");
    const auto below = [&](std::uint64_t bound) { return static_cast<std::uint32_t>(random.below(bound)); };
    const MachineConfig config = machine(1 + below(3), 1 + below(4), 1 + below(2));
    const auto n_pcpus = static_cast<std::uint32_t>(config.logical_cpus());
    std::vector<FakeVcpu> vcpus = busy(1 + below(3 * n_pcpus));
    for (FakeVcpu& v : vcpus) {
      v.weight = 128 << below(6);
      v.vm = below(3);
      if (below(4) == 0) {
        v.affinity.insert(PcpuId{below(n_pcpus)});
        v.affinity.insert(PcpuId{below(n_pcpus)});
      }
    }
    std::map<std::string, ParamValue> params{
        {"hz", std::int64_t{below(2) == 0 ? 250 : 1000}}, {"tick_skew", below(2) == 0}, {"group_by_vm", below(3) == 0}};
    if (GetParam() == "eevdf") {
      static constexpr std::array kGenerations{"6.6", "6.12", "6.14", "6.17", "6.19"};
      params["generation"] = std::string(kGenerations[below(5)]);
      params["run_to_parity"] = below(4) != 0;
    }
    FakeHost host({GetParam(), params}, config, vcpus);
    for (VcpuIndex v = 0; v < vcpus.size(); ++v) {
      if (below(2) == 0) host.burst(v, 1us * (1 + below(8000)), 1us * (1 + below(5000)));
    }
    host.start_all();
    for (int step = 0; step < 200; ++step) {
      host.run_for(1us * below(4000));
      const PcpuId pcpu{below(n_pcpus)};
      const VcpuIndex v = host.running_on(pcpu);
      if (v == kNoVcpu) continue;
      const VcpuIndex other = below(vcpus.size());
      switch (below(4)) {
        case 0:
          host.yield(v);
          ++yields;
          break;
        case 1:
          if (host.is_ready(other) && host.yield_to(v, other)) ++boosts;
          break;
        case 2:
          if (host.is_ready(other) || host.is_running(other)) {
            host.throttle(other);
            host.at(host.now() + 1us * (1 + below(3000)), [&host, other] { host.release(other); });
            host.run_for(4ms);
          }
          break;
        default:
          break;
      }
    }
    migrations += host.migrations();
  }
  EXPECT_GT(migrations, 1000u);
  EXPECT_GT(yields, 1000u);
  EXPECT_GT(boosts, 500u);
}

}  // namespace
}  // namespace vcpusim
