#include <gtest/gtest.h>

#include <algorithm>

#include "sim/random.h"
#include "tests/support/fake_host.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

constexpr PcpuId kPcpu{0};

Kind cfs(std::map<std::string, ParamValue> params = {}) { return {"cfs", std::move(params)}; }

// On one pCPU, latencies are not scaled: 6 ms, 0.75 ms, 1 ms.
Kind plain_cfs(std::map<std::string, ParamValue> params = {}) {
  params["hz"] = std::int64_t{1000};
  params["start_debit"] = false;
  return cfs(std::move(params));
}

TEST(Cfs, SharesFollowWeightsWithinALatencyOverAnyTwenty) {
  for (const std::int64_t hz : {250, 1000}) {
    for (std::size_t k = 2; k <= 8; ++k) {
      std::vector<FakeVcpu> vcpus = busy(k);
      for (std::size_t i = 0; i < k; ++i) vcpus[i].weight = static_cast<std::int64_t>(512 * (1 + i % 3));
      FakeHost host(cfs({{"hz", hz}}), pcpus(1), vcpus);
      host.start_all();
      host.run_until(at(5s));
      ASSERT_GT(host.stints().size(), 500u);
      // 6 ms: the time in which each is to run once; what it runs then is its slice.
      EXPECT_LE(worst_deviation_from_share(host, vcpus, 20 * 6ms), Duration(6ms)) << "hz " << hz << ", " << k;
    }
  }
}

// The rules at every tick, by looking at everybody.
std::vector<FakeHost::Stint> reference(const std::vector<FakeVcpu>& vcpus, Duration tick, SimTime until) {
  struct Task {
    std::int64_t vruntime = 0;
    std::uint64_t arrival = 0;
  };
  std::vector<Task> tasks(vcpus.size());
  std::uint64_t arrivals = 0;
  std::int64_t total_weight = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i].arrival = arrivals++;
  for (const FakeVcpu& v : vcpus) total_weight += v.weight;
  const auto n = static_cast<std::int64_t>(vcpus.size());
  const Duration period = n > 8 ? Duration(750us) * n : Duration(6ms);
  const auto least = [&](std::size_t except) {
    std::size_t best = tasks.size();
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (i == except) continue;
      if (best == tasks.size() || tasks[i].vruntime < tasks[best].vruntime ||
          (tasks[i].vruntime == tasks[best].vruntime && tasks[i].arrival < tasks[best].arrival)) {
        best = i;
      }
    }
    return best;
  };
  std::vector<FakeHost::Stint> stints;
  std::size_t running = 0;
  SimTime begin = kTimeZero;    // of the stint
  SimTime charged = kTimeZero;  // until when vruntime is up to date
  for (SimTime now = kTimeZero + tick; now <= until; now += tick) {
    const std::int64_t weight = vcpus[running].weight;
    const std::int64_t vruntime = tasks[running].vruntime + (now - charged).count() * 1024 / weight;
    const Duration slice{
        static_cast<std::int64_t>(static_cast<detail::Int128>(period.count()) * weight / total_weight)};
    const Duration ran = now - begin;
    const bool ahead = ran >= Duration(750us) && vruntime - tasks[least(running)].vruntime > slice.count();
    if (ran <= slice && !ahead) continue;
    tasks[running].vruntime = vruntime;
    tasks[running].arrival = arrivals++;
    charged = now;
    const std::size_t next = least(tasks.size());
    if (next == running) continue;
    stints.push_back({static_cast<VcpuIndex>(running), kPcpu, begin, now});
    running = next;
    begin = now;
  }
  return stints;
}

TEST(Cfs, IsAsTheRulesAppliedAtEveryTick) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomStream random(seed, "cfs", "reference");
    std::vector<FakeVcpu> vcpus = busy(2 + random.below(10));
    for (FakeVcpu& v : vcpus) v.weight = static_cast<std::int64_t>(100 + random.below(4000));
    const std::int64_t hz = std::array<std::int64_t, 3>{250, 300, 1000}[random.below(3)];
    FakeHost host(cfs({{"hz", hz}, {"start_debit", false}}), pcpus(1), vcpus);
    host.start_all();
    host.run_until(at(3s));
    const auto expected = reference(vcpus, Duration(std::chrono::nanoseconds((1'000'000'000 + hz / 2) / hz)), at(3s));
    ASSERT_GT(expected.size(), 100u);
    ASSERT_EQ(host.stints().size(), expected.size()) << "seed " << seed;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(host.stints()[i].vcpu, expected[i].vcpu) << "seed " << seed << " stint " << i;
      ASSERT_EQ(host.stints()[i].end, expected[i].end) << "seed " << seed << " stint " << i;
    }
  }
}

// On 8 pCPUs, latency is 24 ms and two have 12 ms each. A tick preempts who has had more than that.
TEST(Cfs, TwoHogsAlternateInStintsOfMoreThanASliceInTicks) {
  std::vector<FakeVcpu> vcpus = busy(2);
  for (FakeVcpu& v : vcpus) v.affinity = only({0});
  for (const auto& [hz, stint] : {std::pair{250, Duration(16ms)}, std::pair{1000, Duration(13ms)}}) {
    FakeHost host(cfs({{"hz", std::int64_t{hz}}, {"start_debit", false}}), pcpus(8), vcpus);
    host.start_all();
    host.run_until(at(1s));
    ASSERT_GT(host.stints().size(), 50u);
    for (const FakeHost::Stint& s : host.stints()) EXPECT_EQ(s.length(), stint);
  }
}

TEST(Cfs, AVcpuThatSleptPreemptsAHogAtOnce) {
  FakeHost host(cfs(), pcpus(1), busy(2));
  host.burst(1, 1ms, 50ms + 123us);
  host.start_all();
  host.run_until(at(10s));
  std::vector<FakeHost::Stint> its;
  std::ranges::copy_if(host.stints(), std::back_inserter(its), [](const auto& s) { return s.vcpu == 1; });
  ASSERT_GT(its.size(), 150u);
  for (std::size_t i = 1; i < its.size(); ++i) {
    EXPECT_EQ(its[i].begin - its[i - 1].end, Duration(50ms + 123us)) << i;
    EXPECT_EQ(its[i].length(), Duration(1ms)) << i;
  }
}

// vCPU 1 waits with vruntime 0 until it is taken away and woken again when vCPU 0 has run for `lead`.
bool preempts_after(Duration lead, Kind kind = plain_cfs()) {
  FakeHost host(kind, pcpus(1), busy(2));
  host.start_all();
  host.run_until(at(lead));
  EXPECT_TRUE(host.is_running(0));
  host.block(1);
  host.wake(1);
  return host.is_running(1);
}

TEST(Cfs, AWokenVcpuNeedsMoreThanTheWakeupGranularity) {
  EXPECT_FALSE(preempts_after(1ms));
  EXPECT_TRUE(preempts_after(1ms + Duration{1}));
  EXPECT_FALSE(preempts_after(1ms + Duration{1}, plain_cfs({{"wakeup_preemption", false}})));
}

// Of a vCPU that slept for long, the lead is the credit, exactly.
TEST(Cfs, SleepersAreCreditedHalfALatency) {
  for (const bool gentle : {true, false}) {
    const Duration credit = gentle ? 3ms : 6ms;
    for (const Duration granularity : {credit, credit - Duration{1}}) {
      FakeHost host(plain_cfs({{"gentle_sleepers", gentle}, {"wakeup_granularity", granularity}}), pcpus(1), busy(2));
      host.start(1);
      host.run_until(at(1ms));
      host.block(1);
      host.start(0);
      host.run_until(at(1s));
      host.wake(1);
      EXPECT_EQ(host.is_running(1), granularity < credit);
    }
  }
}

TEST(Cfs, ANewVcpuStartsASliceBehind) {
  for (const bool debit : {false, true}) {
    FakeHost host(cfs({{"start_debit", debit}, {"hz", std::int64_t{1000}}}), pcpus(1), busy(2));
    host.start(0);
    host.run_until(at(10ms));
    host.start(1);
    EXPECT_TRUE(host.is_running(0));
    SimTime began = kNever;
    while (began == kNever) {
      host.run_for(1ms);
      if (host.is_running(1)) began = host.now();
    }
    // Its slice is 3 ms; vCPU 0 has had its own long ago, so that the first tick ends it. With the debit, it is the
    // least in vruntime then, and runs on until it is not.
    EXPECT_EQ(began, debit ? at(13ms) : at(11ms));
  }
}

// Vruntimes when vCPU 0 asks: target 2 is `ahead` of both others.
struct Boost {
  bool honoured = false;
  VcpuIndex runs = kNoVcpu;
};
Boost yield_to_one_ahead_by(Duration ahead) {
  FakeHost host(plain_cfs(), pcpus(1), busy(3));
  host.start(2);
  host.start(0);
  host.start(1);
  host.run_until(at(ahead));
  EXPECT_TRUE(host.is_running(2));
  host.yield(2);
  EXPECT_TRUE(host.is_running(0));
  Boost result;
  result.honoured = host.yield_to(0, 2);
  for (VcpuIndex v = 0; v < 3; ++v) {
    if (host.is_running(v)) result.runs = v;
  }
  return result;
}

TEST(Cfs, ABoostIsIgnoredWhenTheTargetIsMoreThanTheGranularityAhead) {
  const Boost near = yield_to_one_ahead_by(1ms);
  EXPECT_TRUE(near.honoured);
  EXPECT_EQ(near.runs, 2u);
  const Boost far = yield_to_one_ahead_by(1ms + Duration{1});
  EXPECT_TRUE(far.honoured);  // the caller has given way all the same
  EXPECT_EQ(far.runs, 1u);
}

TEST(Cfs, ABoostLastsForOnePick) {
  FakeHost host(plain_cfs(), pcpus(1), busy(3));
  host.start_all();
  host.run_until(at(500us));
  ASSERT_TRUE(host.yield_to(0, 2));
  ASSERT_TRUE(host.is_running(2));
  host.run_until(at(900us));
  host.yield(2);
  EXPECT_TRUE(host.is_running(1));  // the least
}

TEST(Cfs, ABoostReachesTheQueueOfAnotherPcpu) {
  std::vector<FakeVcpu> vcpus = busy(5);
  for (VcpuIndex v = 0; v < 5; ++v) vcpus[v].affinity = only({v < 2 ? 0u : 1u});
  FakeHost host(cfs({{"start_debit", false}}), pcpus(2), vcpus);
  host.start_all();
  host.run_until(at(1ms));
  ASSERT_TRUE(host.is_running(2));
  const auto before = host.reschedules();
  EXPECT_TRUE(host.yield_to(0, 4));
  EXPECT_GT(host.reschedules(), before);
  EXPECT_TRUE(host.is_running(4));  // before 3, which was first in the queue
  EXPECT_TRUE(host.is_running(1));  // the caller is its queue's skip buddy
}

TEST(Cfs, YieldSkipsTheCallerIfTheNextIsWithinTheGranularity) {
  for (const Duration ahead : {Duration(1ms), Duration(1ms) + Duration{1}}) {
    FakeHost host(plain_cfs(), pcpus(1), busy(2));
    host.start(1);
    host.start(0);
    host.run_until(at(ahead));
    host.yield(1);
    ASSERT_TRUE(host.is_running(0));
    host.yield(0);
    EXPECT_EQ(host.running_on(kPcpu), ahead == Duration(1ms) ? 1u : 0u);
  }
}

TEST(Cfs, AloneAYieldDoesNothing) {
  FakeHost host(cfs(), pcpus(1), busy(1));
  host.start_all();
  host.run_until(at(1ms));
  host.yield(0);
  EXPECT_TRUE(host.is_running(0));
  EXPECT_FALSE(host.stints().size() > 0);
}

// vCPU 0 is preempted by 2, which halts again: 0 goes on although 1 is behind it, if it is remembered.
TEST(Cfs, TheLastBuddyGoesOnAfterAnInterruption) {
  for (const std::int64_t nr_latency : {std::int64_t{3}, std::int64_t{4}}) {
    FakeHost host(plain_cfs({{"nr_latency", nr_latency}}), pcpus(1), busy(3));
    host.start(2);
    host.run_until(at(10ms));
    host.block(2);
    host.start(0);
    host.start(1);
    host.run_until(at(50ms));
    while (!host.is_running(0) || host.ran(0) <= host.ran(1) || host.ran(0) > host.ran(1) + 1ms) host.run_for(100us);
    host.wake(2);
    ASSERT_TRUE(host.is_running(2));
    host.block(2);
    EXPECT_EQ(host.running_on(kPcpu), nr_latency == 3 ? 0u : 1u);
  }
}

}  // namespace
}  // namespace vcpusim
