#include <gtest/gtest.h>

#include <numeric>

#include "tests/models/host/random_life.h"
#include "tests/support/fake_host.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

constexpr Duration kPicosecond{1};

Kind credit(std::map<std::string, ParamValue> params = {}) { return {"credit", std::move(params)}; }

// Of VMs of one vCPU each.
std::vector<FakeVcpu> strangers(std::size_t count) {
  std::vector<FakeVcpu> vcpus = busy(count);
  for (std::size_t i = 0; i < count; ++i) vcpus[i].vm = static_cast<std::uint32_t>(i);
  return vcpus;
}

double share(const FakeHost& host, VcpuIndex vcpu) {
  return to_seconds(host.ran(vcpu)) / to_seconds(host.now() - kTimeZero);
}

std::vector<FakeVcpu> with_weights(const std::vector<std::int64_t>& weights) {
  std::vector<FakeVcpu> vcpus = strangers(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) vcpus[i].weight = weights[i];
  return vcpus;
}

// One after another, so that their slices and the accounting are out of step.
void start_in_turn(FakeHost& host) {
  for (VcpuIndex v = 0; v < host.vcpus().size(); ++v) {
    host.at(at(v * 37ms), [&host, v] { host.start(v); });
  }
  host.run_until(at(1s));
  host.cut_stints();
}

TEST(Credit, SharesFollowWeightsWithinOneSliceOverAnyTwenty) {
  for (std::size_t k = 2; k <= 8; ++k) {
    std::vector<std::int64_t> weights(k);
    for (std::size_t i = 0; i < k; ++i) weights[i] = static_cast<std::int64_t>(512 * (1 + i % 3));
    for (const bool in_turn : {true, false}) {
      FakeHost host(credit(), pcpus(1), with_weights(weights));
      in_turn ? start_in_turn(host) : host.start_all();
      host.run_until(at(20s));
      ASSERT_GT(host.stints().size(), 50u);
      // In step, several come into UNDER at the same accounting again and again, and their order is not that of need.
      const Duration bound = in_turn || k <= 3 ? 30ms : 45ms;
      EXPECT_LE(worst_deviation_from_share(host, with_weights(weights), 20 * 30ms), bound) << k;
      if (in_turn) continue;
      const double all = static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
      for (VcpuIndex v = 0; v < k; ++v) {
        EXPECT_NEAR(share(host, v), static_cast<double>(weights[v]) / all, 0.003) << k << ", " << v;
      }
    }
  }
}

TEST(Credit, TakingWaitingVcpusForIdleTakesFromTheHeavyOnes) {
  for (const bool waiting_earns : {true, false}) {
    FakeHost host(credit({{"waiting_earns", waiting_earns}}), pcpus(1), with_weights({512, 1024, 1536, 512}));
    start_in_turn(host);
    host.run_until(at(100s));
    if (waiting_earns) {
      EXPECT_NEAR(share(host, 2), 3.0 / 7, 0.005);
    } else {
      EXPECT_LT(share(host, 2), 0.35);
    }
  }
}

TEST(Credit, ASliceEndsAfterThirtyMillisecondsAndNotBefore) {
  FakeHost host(credit(), pcpus(1), strangers(2));
  host.start_all();
  host.run_until(at(30ms) - kPicosecond);
  EXPECT_TRUE(host.is_running(0));
  host.run_until(at(30ms));
  EXPECT_TRUE(host.is_running(1));
}

TEST(Credit, AWokenVcpuIsBoostedOverOneInUnder) {
  for (const bool boost : {true, false}) {
    FakeHost host(credit({{"boost", boost}}), pcpus(1), strangers(2));
    host.start(0);
    host.at(at(5ms), [&] { host.wake(1); });
    host.run_until(at(5ms));
    EXPECT_EQ(host.is_running(1), boost);
    host.run_until(at(30ms));
    EXPECT_TRUE(host.is_running(1));  // in its slice until 35 ms if it came at 5, until 60 ms if not
    host.run_until(at(35ms));
    EXPECT_EQ(host.is_running(0), boost);
  }
}

TEST(Credit, BoostLastsUntilATickFindsTheVcpuRunning) {
  for (const Duration wakes_at : {Duration(9ms), Duration(11ms)}) {
    FakeHost host(credit(), pcpus(1), strangers(3));
    host.start(0);
    host.at(at(5ms), [&] { host.wake(1); });
    host.at(at(wakes_at), [&] { host.wake(2); });
    host.run_until(at(wakes_at));
    // Two that are boosted are equals; after the tick at 10 ms the first is not boosted any more.
    EXPECT_TRUE(host.is_running(wakes_at < 10ms ? 1 : 2));
  }
}

// Two vCPUs with weights 3:1 on one pCPU. At 60 ms the second has run a slice of its quarter and is in OVER.
struct HeavyAndLight {
  HeavyAndLight() : host(credit(), pcpus(1), with_weights({3072, 1024})) {
    host.start_all();
    host.run_until(at(60ms));
    EXPECT_TRUE(host.is_running(0));
  }
  FakeHost host;
};

TEST(Credit, AVcpuInOverIsNotBoosted) {
  HeavyAndLight test;
  FakeHost& host = test.host;
  host.at(at(70ms), [&] { host.block(0); });
  host.at(at(72ms), [&] { host.block(1); });
  host.at(at(73ms), [&] { host.wake(0); });
  host.at(at(76ms), [&] { host.wake(1); });
  host.run_until(at(80ms));
  EXPECT_EQ(host.ran(1), Duration(30ms + 2ms));
  EXPECT_TRUE(host.is_running(0));
}

TEST(Credit, AVcpuInUnderIsBoostedOverOneInOver) {
  HeavyAndLight test;
  FakeHost& host = test.host;
  host.at(at(70ms), [&] { host.block(0); });
  host.at(at(76ms), [&] { host.wake(0); });
  host.run_until(at(76ms) - kPicosecond);
  EXPECT_TRUE(host.is_running(1));
  host.run_until(at(76ms));
  EXPECT_TRUE(host.is_running(0));
}

TEST(Credit, TheRateLimitPutsPreemptionOff) {
  for (const Duration wakes_at : {Duration(300us), Duration(1000us) - kPicosecond, Duration(1000us)}) {
    FakeHost host(credit(), pcpus(1), strangers(2));
    host.start(0);
    host.at(at(wakes_at), [&] { host.wake(1); });
    host.run_until(at(1000us) - kPicosecond);
    EXPECT_TRUE(host.is_running(0));
    host.run_until(at(1000us));
    EXPECT_TRUE(host.is_running(1));
  }
}

TEST(Credit, TheRateLimitDoesNotHoldAYielder) {
  FakeHost host(credit(), pcpus(1), strangers(2));
  host.start_all();
  host.run_until(at(100us));
  host.yield(0);
  EXPECT_TRUE(host.is_running(1));
}

TEST(Credit, AYielderGoesBehindOneOfTheNextClassOnce) {
  HeavyAndLight test;
  FakeHost& host = test.host;
  // The light one waits in OVER: an ordinary end of the slice, at 90 ms, does not let it run, a yield does.
  host.run_until(at(95ms));
  EXPECT_TRUE(host.is_running(0));
  host.yield(0);
  EXPECT_TRUE(host.is_running(1));
  EXPECT_EQ(host.ran(1), Duration(30ms));
  host.run_until(at(125ms) - kPicosecond);
  EXPECT_TRUE(host.is_running(1));
  host.run_until(at(125ms));
  EXPECT_TRUE(host.is_running(0));
}

// Off the pCPU from 100 us before each tick to 100 us after it.
double share_of_thief(bool precise_accounting) {
  FakeHost host(credit({{"precise_accounting", precise_accounting}}), pcpus(1), strangers(2));
  host.start_all();
  for (Duration tick = 10ms; tick < 10s; tick += Duration(10ms)) {
    host.at(at(tick - 100us), [&host] { host.block(0); });
    host.at(at(tick + 100us), [&host] { host.wake(0); });
  }
  host.run_until(at(10s));
  EXPECT_NEAR(share(host, 0) + share(host, 1), 1, 1e-9);
  return share(host, 0);
}

TEST(Credit, WhoSleepsAcrossEveryTickStealsUnlessCreditIsBurntByTime) {
  // The neighbour gets the time from 100 us before the tick until its rate limit is over.
  EXPECT_NEAR(share_of_thief(false), 0.9, 0.001);
  EXPECT_NEAR(share_of_thief(true), 0.5, 0.03);
}

TEST(Credit, ACapHoldsAVmBackOnAnOtherwiseIdleHost) {
  for (const double cap : {0.25, 0.5, 1.5, 0.0}) {
    FakeHost host(credit(), pcpus(4), {{.cap = cap}, {.cap = cap}});
    host.start_all();
    host.run_until(at(30s));
    const double expected = cap == 0 ? 2 : cap;
    EXPECT_NEAR(share(host, 0) + share(host, 1), expected, 0.01 * expected) << cap;
  }
}

TEST(Credit, ACapHoldsAVmBackBesideAnother) {
  FakeHost host(credit(), pcpus(1), {{.vm = 0, .cap = 0.2}, {.vm = 1}});
  host.start_all();
  host.run_until(at(30s));
  EXPECT_NEAR(share(host, 0), 0.2, 0.005);
  EXPECT_NEAR(share(host, 1), 0.8, 0.005);
}

TEST(Credit, AnIdlePcpuStealsAtOnce) {
  FakeHost host(credit(), pcpus(2), strangers(3));
  host.start_all();
  host.at(at(10ms), [&] { host.block(1); });
  host.run_until(at(10ms));
  EXPECT_TRUE(host.is_running(2));
  EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero());
}

// Two heavy vCPUs begin on pCPU 0; what runs on pCPU 1 is pinned there. `weight` is of that.
FakeHost heavy_ones_beside(std::int64_t weight) {
  return {"credit",
          pcpus(2),
          {{.weight = 10'240, .vm = 0},
           {.weight = weight, .vm = 1, .affinity = only({1})},
           {.weight = 10'240, .vm = 2},
           {.weight = weight, .vm = 3, .affinity = only({1})}}};
}

TEST(Credit, APcpuStealsIfItWouldRunOver) {
  FakeHost host = heavy_ones_beside(1024);
  host.start_all();
  host.run_until(at(10s));
  EXPECT_GT(host.migrations(), 0u);
  EXPECT_GT(share(host, 0), 0.85);
  EXPECT_GT(share(host, 2), 0.85);
}

TEST(Credit, APcpuWithWorkInUnderDoesNotSteal) {
  FakeHost host = heavy_ones_beside(102'400);
  host.start_all();
  host.run_until(at(10s));
  EXPECT_EQ(host.migrations(), 0u);
  EXPECT_NEAR(share(host, 0), 0.5, 0.01);
  EXPECT_NEAR(share(host, 2), 0.5, 0.01);
}

TEST(Credit, FortyEightOnThirtyTwoShareAlike) {
  FakeHost host(credit(), pcpus(32), strangers(48));
  host.start_all();
  host.run_until(at(10s));
  for (VcpuIndex v = 0; v < 48; ++v) EXPECT_NEAR(share(host, v), 2.0 / 3, 0.03) << v;
  EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero());
}

TEST(Credit, NoPcpuIsIdleBesideAReadyVcpu) {
  std::vector<FakeVcpu> vcpus = strangers(12);
  for (std::size_t i = 0; i < vcpus.size(); i += 3) vcpus[i].affinity = only({0, static_cast<std::uint32_t>(i % 5)});
  FakeHost host(credit(), pcpus(5), vcpus);
  for (VcpuIndex v = 0; v < vcpus.size(); v += 2) host.burst(v, 700us + v * 130us, 900us + v * 70us);
  host.start_all();
  host.run_until(at(2s));
  EXPECT_GT(host.migrations(), 100u);
  EXPECT_GT(host.switches(), 1000u);
  EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero());
}

TEST(Credit, NoPcpuIsIdleBesideAReadyVcpuWhateverHappens) {
  RandomStream random(3, "credit", "test");
  std::uint64_t migrations = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random.below(6));
    FakeHost host("credit", pcpus(count), random_vcpus(random, count));
    live_at_random(host, random, 100);
    EXPECT_EQ(host.longest_idle_beside_ready(), Duration::zero()) << round;
    migrations += host.migrations();
  }
  EXPECT_GT(migrations, 1'000u);
}

}  // namespace
}  // namespace vcpusim
