#include <gtest/gtest.h>

#include "tests/models/host/random_life.h"
#include "tests/support/fake_host.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

constexpr Duration kSkew = 3ms;
constexpr Duration kCheck = 1ms;

double share(const FakeHost& host, VcpuIndex vcpu) {
  return to_seconds(host.ran(vcpu)) / to_seconds(host.now() - kTimeZero);
}

// Runs until `limit` in small steps. All vCPUs are always busy, so that what they have run is their progress.
struct Observed {
  Duration largest_skew{};
  int costopped_steps = 0;
};
Observed observe(FakeHost& host, SimTime limit) {
  Observed observed;
  while (host.now() < limit) {
    host.run_for(97us);
    std::map<std::uint32_t, std::pair<Duration, Duration>> least_and_most;
    for (VcpuIndex v = 0; v < host.vcpus().size(); ++v) {
      const auto [entry, first] = least_and_most.try_emplace(host.vcpus()[v].vm, std::pair{host.ran(v), host.ran(v)});
      entry->second.first = std::min(entry->second.first, host.ran(v));
      entry->second.second = std::max(entry->second.second, host.ran(v));
      if (host.costopped(v)) ++observed.costopped_steps;
    }
    for (const auto& [vm, range] : least_and_most) {
      observed.largest_skew = std::max(observed.largest_skew, range.second - range.first);
    }
  }
  return observed;
}

// VM 0 has a vCPU on pCPU 0 beside two strangers and one on pCPU 1, alone.
std::vector<FakeVcpu> lopsided() {
  return {{.vm = 0, .affinity = only({0})},
          {.vm = 0, .affinity = only({1})},
          {.vm = 1, .affinity = only({0})},
          {.vm = 2, .affinity = only({0})}};
}

TEST(RelaxedGang, SharesFollowWeightsWithinOneQuantumOverAnyTwenty) {
  for (std::size_t k = 2; k <= 8; ++k) {
    std::vector<FakeVcpu> vcpus = busy(k);
    for (std::size_t i = 0; i < k; ++i) {
      vcpus[i] = {.weight = static_cast<std::int64_t>(512 * (1 + i % 3)), .vm = static_cast<std::uint32_t>(i)};
    }
    FakeHost host("relaxed_gang", pcpus(1), vcpus);
    host.start_all();
    host.run_until(at(10s));
    ASSERT_GT(host.stints().size(), 50u);
    // The longest quantum is that of weight 1536.
    EXPECT_LE(worst_deviation_from_share(host, vcpus, 20 * 10ms), Duration(15ms)) << k;
  }
}

TEST(RelaxedGang, TheLeaderIsStoppedAtTheSkewAndNotBefore) {
  FakeHost host("relaxed_gang", pcpus(2), lopsided());
  host.start_all();
  // Both run until the quantum of the first ends at 10 ms; then it falls behind.
  host.run_until(at(13ms) - Duration{1});
  EXPECT_TRUE(host.is_running(1));
  EXPECT_FALSE(host.is_running(0));
  EXPECT_FALSE(host.costopped(1));
  host.run_until(at(13ms));
  EXPECT_FALSE(host.is_running(1));
  EXPECT_TRUE(host.costopped(1));
  // The strangers have a quantum each; then the first is back, and the leader with it.
  host.run_until(at(30ms) - Duration{1});
  EXPECT_EQ(host.running_on(PcpuId{1}), kNoVcpu);
  host.run_until(at(30ms));
  EXPECT_TRUE(host.is_running(0));
  EXPECT_TRUE(host.is_running(1));
  EXPECT_FALSE(host.costopped(1));
}

TEST(RelaxedGang, SkewIsBoundedWhereItWouldGrow) {
  FakeHost host("relaxed_gang", pcpus(2), lopsided());
  host.start_all();
  const Observed observed = observe(host, at(5s));
  EXPECT_GE(observed.largest_skew, kSkew);
  EXPECT_LE(observed.largest_skew, kSkew + kCheck);
  EXPECT_GT(observed.costopped_steps, 1000);
  EXPECT_NEAR(share(host, 0), 1.0 / 3, 0.01);
  EXPECT_NEAR(share(host, 1), 1.0 / 3, 0.01);

  // With a skew that is never reached, the same vCPUs drift apart.
  FakeHost free({"relaxed_gang", {{"skew", Duration(1000s)}}}, pcpus(2), lopsided());
  free.start_all();
  const Observed drifting = observe(free, at(5s));
  EXPECT_GT(drifting.largest_skew, Duration(3s));
  EXPECT_EQ(drifting.costopped_steps, 0);
}

TEST(RelaxedGang, NobodyIsStoppedWhereThereIsNoSkew) {
  for (const std::uint32_t vms : {1u, 2u, 3u}) {
    std::vector<FakeVcpu> vcpus;
    for (std::uint32_t vm = 0; vm < vms; ++vm) vcpus.insert(vcpus.end(), {{.vm = vm}, {.vm = vm}});
    FakeHost host("relaxed_gang", pcpus(2), vcpus);
    host.start_all();
    const Observed observed = observe(host, at(2s));
    EXPECT_EQ(observed.costopped_steps, 0);
    EXPECT_EQ(observed.largest_skew, Duration::zero());
    EXPECT_NEAR(share(host, 0), 1.0 / vms, 0.01);
  }
}

TEST(RelaxedGang, AHaltedVcpuGathersNoSkew) {
  // The second sleeps nearly all the time, while the first gets a third of its pCPU.
  FakeHost host("relaxed_gang", pcpus(2), lopsided());
  host.burst(1, 100us, 20ms);
  host.start_all();
  const Observed observed = observe(host, at(5s));
  EXPECT_EQ(observed.costopped_steps, 0);
  EXPECT_GT(host.ran(1), Duration(20ms));
  EXPECT_NEAR(share(host, 0), 1.0 / 3, 0.01);
}

TEST(RelaxedGang, ACostartComesBeforeAStrangerThatHasRunForACheck) {
  // A stranger on pCPU 1 takes over when the leader is stopped at 13 ms, and has to go when the laggard runs at 30 ms.
  std::vector<FakeVcpu> vcpus = lopsided();
  vcpus.push_back({.vm = 3, .affinity = only({1})});
  FakeHost host("relaxed_gang", pcpus(2), vcpus);
  host.start_all();
  host.run_until(at(30ms) - Duration{1});
  EXPECT_TRUE(host.is_running(4));
  EXPECT_TRUE(host.is_ready(0) && host.is_ready(1));
  host.run_until(at(30ms));
  EXPECT_TRUE(host.is_running(0));
  EXPECT_TRUE(host.is_running(1));
}

TEST(RelaxedGang, IdlePcpusHelpOut) {
  FakeHost host("relaxed_gang", pcpus(4), std::vector<FakeVcpu>{{}, {}, {}, {.vm = 1}, {.vm = 1}, {.vm = 1}});
  host.start_all();
  const Observed observed = observe(host, at(5s));
  EXPECT_LE(observed.largest_skew, kSkew + kCheck);
  EXPECT_GT(observed.costopped_steps, 0);
  EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero());
  Duration total{};
  for (VcpuIndex v = 0; v < 6; ++v) total += host.ran(v);
  EXPECT_GT(total, Duration(3 * 5s));  // strict gangs leave a pCPU idle all the time
}

TEST(RelaxedGang, ThreeVmsThatCostartAgainstEachOtherGoOn) {
  // The laggard of each shares a pCPU with the leader of another.
  FakeHost host("relaxed_gang", pcpus(3),
                {{.vm = 0, .affinity = only({0})},
                 {.vm = 0, .affinity = only({1})},
                 {.vm = 1, .affinity = only({1})},
                 {.vm = 1, .affinity = only({2})},
                 {.vm = 2, .affinity = only({2})},
                 {.vm = 2, .affinity = only({0})}});
  host.start_all();
  const Observed observed = observe(host, at(5s));
  EXPECT_LE(observed.largest_skew, kSkew + kCheck);
  EXPECT_LT(host.switches(), 3u * 5 * 1000);
  for (VcpuIndex v = 0; v < 6; ++v) EXPECT_GT(share(host, v), 0.25) << v;
}

TEST(RelaxedGang, SkewIsBoundedWhateverHappens) {
  RandomStream random(1, "relaxed_gang", "test");
  int costopped_steps = 0;
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t count = 2 + static_cast<std::uint32_t>(random.below(4));
    std::vector<FakeVcpu> vcpus;
    for (std::uint32_t vm = 0, vms = 1 + static_cast<std::uint32_t>(random.below(5)); vm < vms; ++vm) {
      const std::size_t size = 1 + random.below(count);
      for (std::size_t i = 0; i < size; ++i) {
        FakeVcpu v{.weight = static_cast<std::int64_t>(512 * (1 + vm % 3)), .vm = vm};
        if (random.below(2) == 0) v.affinity = only({static_cast<std::uint32_t>(random.below(count))});
        vcpus.push_back(v);
      }
    }
    FakeHost host("relaxed_gang", pcpus(count), vcpus);
    host.start_all();
    const Observed observed = observe(host, at(300ms));
    EXPECT_LE(observed.largest_skew, kSkew + kCheck) << round;
    EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero()) << round;
    costopped_steps += observed.costopped_steps;
  }
  EXPECT_GT(costopped_steps, 1000);
}

TEST(RelaxedGang, NoPcpuIsIdleBesideAReadyVcpuThatIsNotStopped) {
  RandomStream random(2, "relaxed_gang", "test");
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t count = 2 + static_cast<std::uint32_t>(random.below(4));
    std::vector<FakeVcpu> vcpus;
    for (std::uint32_t i = 0; i < 3 * count; ++i) vcpus.push_back({.vm = i / 3});
    FakeHost host("relaxed_gang", pcpus(count), vcpus);
    for (VcpuIndex v = 0; v < vcpus.size(); v += 2) {
      host.burst(v, Duration(1us) * (50 + random.below(20'000)), Duration(1us) * (10 + random.below(10'000)));
    }
    host.start_all();
    host.run_until(at(300ms));
    EXPECT_GT(host.migrations(), 0u) << round;
    EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero()) << round;
    for (VcpuIndex v = 0; v < vcpus.size(); ++v) EXPECT_GT(host.ran(v), Duration::zero()) << round;
  }
}

TEST(RelaxedGang, YieldToRunsAWaitingTargetNext) {
  FakeHost host("relaxed_gang", pcpus(1), {{.vm = 0}, {.vm = 1}, {.vm = 2}});
  host.start_all();
  host.run_until(at(1ms));
  ASSERT_TRUE(host.is_running(0));
  EXPECT_TRUE(host.yield_to(0, 2));
  EXPECT_TRUE(host.is_running(2));
}

TEST(RelaxedGang, NoPcpuIsIdleBesideAReadyVcpuThatIsNotStoppedWhateverHappens) {
  RandomStream random(3, "relaxed_gang", "test");
  std::uint64_t migrations = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random.below(6));
    FakeHost host("relaxed_gang", pcpus(count), random_vcpus(random, count));
    live_at_random(host, random, 100);
    EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero()) << round;
    migrations += host.migrations();
  }
  EXPECT_GT(migrations, 1'000u);
}

}  // namespace
}  // namespace vcpusim
