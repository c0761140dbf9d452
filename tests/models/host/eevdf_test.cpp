#include <gtest/gtest.h>

#include <algorithm>

#include "sim/random.h"
#include "tests/support/fake_host.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

constexpr PcpuId kPcpu{0};

Kind eevdf(std::map<std::string, ParamValue> params = {}) { return {"eevdf", std::move(params)}; }
Kind linux_(const std::string& generation, std::map<std::string, ParamValue> params = {}) {
  params["generation"] = generation;
  return eevdf(std::move(params));
}

// k busy vCPUs on pCPU 0 of 8, where slices are scaled by 4.
std::vector<FakeVcpu> pinned(std::size_t k) {
  std::vector<FakeVcpu> vcpus = busy(k);
  for (FakeVcpu& v : vcpus) v.affinity = only({0});
  return vcpus;
}

std::vector<FakeVcpu> mixed(std::size_t k) {
  std::vector<FakeVcpu> vcpus = busy(k);
  for (std::size_t i = 0; i < k; ++i) vcpus[i].weight = static_cast<std::int64_t>(512 * (1 + i % 3));
  return vcpus;
}

// Lag stays within a slice, so that the difference of two lags stays within two.
TEST(Eevdf, SharesFollowWeightsWithinASlice) {
  for (const auto& [hz, slice] :
       {std::pair{250, Duration(4ms)}, std::pair{1000, Duration(1ms)}, std::pair{10'000, Duration(700us)}}) {
    for (std::size_t k = 2; k <= 8; ++k) {
      const std::vector<FakeVcpu> vcpus = mixed(k);
      std::int64_t total_weight = 0;
      for (const FakeVcpu& v : vcpus) total_weight += v.weight;
      FakeHost host(eevdf({{"hz", std::int64_t{hz}}}), pcpus(1), vcpus);
      host.start_all();
      for (int i = 1; i <= 2000; ++i) {
        host.run_for(slice / 3);
        const Duration since_start = host.now() - kTimeZero;
        for (VcpuIndex v = 0; v < k; ++v) {
          const Duration lag = since_start * vcpus[v].weight / total_weight - host.ran(v);
          ASSERT_LE(lag, slice) << "hz " << hz << ", " << k << " vCPUs, vCPU " << v;
          ASSERT_GE(lag, -slice) << "hz " << hz << ", " << k << " vCPUs, vCPU " << v;
        }
      }
      ASSERT_GT(host.stints().size(), 300u);
      EXPECT_LE(worst_deviation_from_share(host, vcpus, 20 * slice), 2 * slice) << "hz " << hz << ", " << k;
    }
  }
}

TEST(Eevdf, EqualSharesAreWithinASliceOverAnyTwenty) {
  for (std::size_t k = 2; k <= 8; ++k) {
    FakeHost host(eevdf(), pcpus(1), busy(k));
    host.start_all();
    host.run_until(at(2s));
    EXPECT_LE(worst_deviation_from_share(host, busy(k), 20 * 4ms), Duration(4ms)) << k;
  }
}

// The rules at every tick, by looking at everybody, with the average as a fraction.
std::vector<FakeHost::Stint> reference(const std::vector<FakeVcpu>& vcpus, Duration slice, Duration tick,
                                       SimTime until) {
  struct Task {
    std::int64_t vruntime = 0;
    std::int64_t deadline = 0;
    std::uint64_t arrival = 0;
  };
  std::vector<Task> tasks(vcpus.size());
  std::uint64_t arrivals = 0;
  const auto in_virtual = [&](Duration time, std::size_t i) { return time.count() * 1024 / vcpus[i].weight; };
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i] = {0, in_virtual(slice, i) / 2, arrivals++};
  std::vector<FakeHost::Stint> stints;
  std::size_t running = 0;  // of the earliest deadline
  for (std::size_t i = 1; i < tasks.size(); ++i) running = tasks[i].deadline < tasks[running].deadline ? i : running;
  SimTime begin = kTimeZero;
  SimTime charged = kTimeZero;
  for (SimTime now = kTimeZero + tick; now <= until; now += tick) {
    Task& mine = tasks[running];
    if (mine.vruntime + in_virtual(now - charged, running) < mine.deadline) continue;
    mine.vruntime += in_virtual(now - charged, running);
    charged = now;
    mine.deadline = mine.vruntime + in_virtual(slice, running);
    mine.arrival = arrivals++;
    detail::Int128 weighted = 0;
    std::int64_t weight = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      weighted += static_cast<detail::Int128>(tasks[i].vruntime) * vcpus[i].weight;
      weight += vcpus[i].weight;
    }
    std::size_t best = tasks.size();
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (static_cast<detail::Int128>(tasks[i].vruntime) * weight > weighted) continue;
      if (best == tasks.size() || tasks[i].deadline < tasks[best].deadline ||
          (tasks[i].deadline == tasks[best].deadline && tasks[i].arrival < tasks[best].arrival)) {
        best = i;
      }
    }
    if (best == running) continue;
    stints.push_back({static_cast<VcpuIndex>(running), kPcpu, begin, now});
    running = best;
    begin = now;
  }
  return stints;
}

TEST(Eevdf, IsAsTheRulesAppliedAtEveryTick) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomStream random(seed, "eevdf", "reference");
    std::vector<FakeVcpu> vcpus = busy(2 + random.below(10));
    for (FakeVcpu& v : vcpus) v.weight = static_cast<std::int64_t>(100 + random.below(4000));
    const std::int64_t hz = std::array<std::int64_t, 4>{250, 300, 1000, 10'000}[random.below(4)];
    FakeHost host(eevdf({{"hz", hz}}), pcpus(1), vcpus);
    host.start_all();
    host.run_until(at(2s));
    const Duration tick = std::chrono::nanoseconds((1'000'000'000 + hz / 2) / hz);
    const auto expected = reference(vcpus, 700us, tick, at(2s));
    ASSERT_GT(expected.size(), 100u);
    ASSERT_EQ(host.stints().size(), expected.size()) << "seed " << seed;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(host.stints()[i].vcpu, expected[i].vcpu) << "seed " << seed << " stint " << i;
      ASSERT_EQ(host.stints()[i].end, expected[i].end) << "seed " << seed << " stint " << i;
    }
  }
}

TEST(Eevdf, HogsRotateStrictlyInStintsOfTheSliceRoundedUpToATick) {
  struct Case {
    std::string generation;
    std::int64_t hz;
    Duration stint;
  };
  // 2.8 ms from 6.17, 3 ms before.
  const std::vector<Case> cases{{"6.17", 250, 4ms},       {"6.17", 1000, 3ms},      {"6.6", 1000, 3ms},
                                {"6.6", 250, 4ms},        {"6.17", 10'000, 2800us}, {"6.6", 10'000, 3ms},
                                {"6.19", 10'000, 2800us}, {"6.14", 10'000, 3ms},    {"6.12", 250, 4ms}};
  for (const Case& c : cases) {
    for (const std::size_t k : {2u, 3u, 5u}) {
      FakeHost host(linux_(c.generation, {{"hz", c.hz}}), pcpus(8), pinned(k));
      host.start_all();
      host.run_until(at(1s));
      ASSERT_GT(host.stints().size(), 200u);
      // The first request of a new vCPU is half a slice.
      for (std::size_t i = 2 * k; i < host.stints().size(); ++i) {
        EXPECT_EQ(host.stints()[i].length(), c.stint) << c.generation << " hz " << c.hz << " stint " << i;
        EXPECT_EQ(host.stints()[i].vcpu, host.stints()[i - k].vcpu) << c.generation << " hz " << c.hz << " stint " << i;
      }
    }
  }
}

TEST(Eevdf, TwoHogsAtHz250HaveStintsOfExactlyFourMilliseconds) {
  FakeHost host(eevdf(), pcpus(1), busy(2));
  host.start_all();
  host.run_until(at(10s));
  ASSERT_EQ(host.stints().size(), 2500u);
  for (const FakeHost::Stint& s : host.stints()) EXPECT_EQ(s.length(), Duration(4ms));
}

// With ticks of 1 ms, the first slice of the lone hog, half of one, ends 2 ms after 300; the next begin every 3 ms.
TEST(Eevdf, AWokenVcpuWithoutLagWaitsForTheEndOfTheHogsSlice) {
  for (const std::string generation : {"6.6", "6.12", "6.14", "6.17", "6.19"}) {
    FakeHost host(linux_(generation, {{"hz", std::int64_t{1000}}}), pcpus(8), pinned(2));
    host.start(1);
    host.run_until(at(300ms));
    host.block(1);  // it was alone: no lag
    host.start(0);
    host.run_until(at(900ms + 6500us));
    host.wake(1);
    host.run_until(at(908ms) - Duration{1});
    EXPECT_TRUE(host.is_running(0)) << generation;
    host.run_until(at(908ms));
    EXPECT_TRUE(host.is_running(1)) << generation;
  }
}

TEST(Eevdf, AWokenVcpuWithPositiveLagPreemptsAtOnce) {
  for (const std::string generation : {"6.6", "6.12", "6.14", "6.17", "6.19"}) {
    FakeHost host(linux_(generation, {{"hz", std::int64_t{1000}}}), pcpus(8), pinned(2));
    host.start_all();
    host.run_until(at(1ms));
    ASSERT_TRUE(host.is_running(0));
    host.block(1);  // half a millisecond behind the average
    host.at(at(900ms + 6500us), [&] { host.wake(1); });
    host.run_until(at(900ms + 6500us) - Duration{1});
    EXPECT_TRUE(host.is_running(0)) << generation;
    host.run_until(at(900ms + 6500us));
    EXPECT_TRUE(host.is_running(1)) << generation;
  }
}

// vCPU 1 runs for 2 ms, is 1 ms ahead of the average, and halts. How long does it wait when it comes back? The slices
// of the other end at 4, 7, 10 ... ms.
Duration wait_after_overrun(bool delay_dequeue, Duration sleep) {
  const std::string delay = delay_dequeue ? "on" : "off";
  FakeHost host(linux_("6.6", {{"hz", std::int64_t{1000}}, {"delay_dequeue", delay}}), pcpus(8), pinned(2));
  host.start(1);
  host.start(0);
  host.run_until(at(2ms) - Duration{1});
  EXPECT_TRUE(host.is_running(1));
  host.block(1);
  host.run_for(sleep);
  const SimTime woken = host.now();
  host.wake(1);
  EXPECT_TRUE(host.is_running(0));
  while (host.is_running(0)) host.run_until(kTimeZero + (host.now().time_since_epoch() / 1ms + 1) * Duration(1ms));
  return host.now() - woken - Duration{1};
}

TEST(Eevdf, NegativeLagSurvivesAHaltUnlessTheQueueKeepsTheVcpuUntilItIsRepaid) {
  EXPECT_EQ(wait_after_overrun(false, 100ms), Duration(4ms));  // not at 103 ms, for the lag: at 106
  EXPECT_EQ(wait_after_overrun(true, 100ms), Duration(1ms));
  EXPECT_EQ(wait_after_overrun(false, 1ms), Duration(4ms));
  EXPECT_EQ(wait_after_overrun(true, 1ms), Duration(1ms));  // at 4 ms the other has caught up
}

TEST(Eevdf, AVcpuThatLingersInItsQueueIsNotRunnable) {
  FakeHost host(eevdf(), pcpus(1), busy(2));
  host.start_all();
  host.run_until(at(4ms) - Duration{1});
  ASSERT_TRUE(host.is_running(0));
  host.block(0);  // far ahead of vCPU 1
  EXPECT_TRUE(host.is_running(1));
  EXPECT_EQ(host.scheduler().runnable_on(kPcpu), 1u);
  const auto before = host.checks();
  host.run_until(at(1s));
  EXPECT_TRUE(host.is_running(1));
  // One look to take it out, and then no more: its pCPU has one vCPU to run.
  EXPECT_GT(host.checks(), before);
  EXPECT_LE(host.checks(), before + 3);
}

// Three hogs; at 1 ms vCPU 0 runs, 1 is next, and 0 asks for 2. Who runs?
VcpuIndex hint_to_a_waiter(const Kind& kind) {
  FakeHost host(kind, pcpus(1), busy(3));
  host.start_all();
  host.run_until(at(1ms));
  EXPECT_TRUE(host.is_running(0));
  EXPECT_TRUE(host.yield_to(0, 2));
  return host.running_on(kPcpu);
}

// At 5 ms vCPU 1 runs, 0 has run 4 ms and has negative lag, 2 is next, and 1 asks for 0.
VcpuIndex hint_to_one_ahead(const Kind& kind) {
  FakeHost host(kind, pcpus(1), busy(3));
  host.start_all();
  host.run_until(at(5ms));
  EXPECT_TRUE(host.is_running(1));
  EXPECT_TRUE(host.yield_to(1, 0));
  return host.running_on(kPcpu);
}

TEST(Eevdf, TheHintIsIgnoredBefore614AndHonouredForEligibleTargetsSince) {
  EXPECT_EQ(hint_to_a_waiter(linux_("6.6")), 1u);
  EXPECT_EQ(hint_to_a_waiter(linux_("6.12")), 1u);
  EXPECT_EQ(hint_to_a_waiter(linux_("6.14")), 2u);
  EXPECT_EQ(hint_to_a_waiter(linux_("6.17")), 2u);
  EXPECT_EQ(hint_to_a_waiter(linux_("6.19")), 2u);
  EXPECT_EQ(hint_to_a_waiter(linux_("6.12", {{"pick_buddy", std::string("on")}})), 2u);
  EXPECT_EQ(hint_to_a_waiter(linux_("6.17", {{"pick_buddy", std::string("off")}})), 1u);
}

TEST(Eevdf, ATargetWithNegativeLagIsNeverPreferred) {
  for (const std::string generation : {"6.6", "6.12", "6.14", "6.17", "6.19"}) {
    EXPECT_NE(hint_to_one_ahead(linux_(generation)), 0u) << generation;
  }
}

// Of two vCPUs, the one yields whenever it has run for 0.1 ms.
double share_of_a_yielder(const Kind& kind) {
  FakeHost host(kind, pcpus(1), busy(2));
  host.start_all();
  std::uint64_t yields = 0;
  Duration before{};
  while (host.now() < at(1s)) {
    host.run_for(100us);
    if (host.is_running(1) && host.ran(1) >= before + 100us) {
      before = host.ran(1);
      host.yield(1);
      ++yields;
    }
  }
  EXPECT_GT(yields, 100u);
  return to_seconds(host.ran(1));
}

TEST(Eevdf, YieldForfeitsTheRestOfTheSliceFrom619) {
  const std::map<std::string, ParamValue> fine{{"hz", std::int64_t{10'000}}};
  for (const std::string generation : {"6.6", "6.12", "6.14", "6.17"}) {
    EXPECT_NEAR(share_of_a_yielder(linux_(generation, fine)), 0.5, 0.02) << generation;
  }
  // 0.1 ms, and then up to the deadline: 0.7 ms of virtual time for some of that in time.
  EXPECT_LT(share_of_a_yielder(linux_("6.19", fine)), 0.4);
  auto off = fine;
  off["forfeit_on_yield"] = std::string("off");
  EXPECT_NEAR(share_of_a_yielder(linux_("6.19", off)), 0.5, 0.02);
}

// At 0, vCPU 0 has just begun and is eligible; it yields.
TEST(Eevdf, TheProtectionOfAYielderStandsIn617Only) {
  for (const auto& [generation, next] : {std::pair{"6.6", 1u}, {"6.14", 1u}, {"6.17", 0u}, {"6.19", 1u}}) {
    FakeHost host(linux_(generation), pcpus(1), busy(2));
    host.start_all();
    host.yield(0);
    EXPECT_EQ(host.running_on(kPcpu), next) << generation;
  }
}

// vCPU 0 has just begun a whole slice when vCPU 1 comes, which is new: its first request is half a slice, so that it
// has the earlier deadline.
TEST(Eevdf, RunToParityProtectsTheRunningVcpuWhileItIsEligible) {
  for (const auto& [generation, parity] : {std::pair{"6.6", true}, {"6.6", false}, {"6.17", true}, {"6.17", false}}) {
    FakeHost host(linux_(generation, {{"hz", std::int64_t{1000}}, {"run_to_parity", parity}}), pcpus(8), pinned(2));
    host.start(0);
    host.run_until(at(1s));
    host.block(0);
    host.wake(0);   // a whole slice before it
    host.start(1);  // new, half a slice
    // 6.17 has a shorter protection besides: 0.7 ms.
    EXPECT_EQ(host.is_running(0), parity || std::string(generation) == "6.17") << generation << parity;
  }
}

TEST(Eevdf, LagIsLimited) {
  // vCPU 1 falls behind a heavy hog by far less than it waits; on its return it preempts, but only for so long.
  FakeHost host(eevdf({{"hz", std::int64_t{1000}}}), pcpus(1), busy(2));
  host.start_all();
  host.run_until(at(1s));
  const VcpuIndex waits = host.is_running(0) ? 1 : 0;
  host.block(waits);
  host.run_until(at(2s));
  host.wake(waits);
  const Duration before = host.ran(waits);
  host.run_until(at(2s) + 20ms);
  EXPECT_GT(host.ran(waits) - before, Duration(8ms));
  EXPECT_LE(host.ran(waits) - before, Duration(10ms + 2 * 1400us));
}

}  // namespace
}  // namespace vcpusim
