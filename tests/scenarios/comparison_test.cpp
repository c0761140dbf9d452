#include "scenarios/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "scenarios/points.h"
#include "tests/support/made_results.h"
#include "tests/support/process.h"

namespace vcpusim {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::made_results;
using testing::MadeRun;

RunSet set_of(const std::vector<MadeRun>& runs, const std::vector<std::string>& wanted = {}) {
  const testing::TemporaryFolder folder;
  testing::write_whole(folder.path() / "r.json", made_results(runs));
  InputErrors errors;
  auto set = RunSet::read(folder.path() / "r.json", {}, wanted, errors);
  EXPECT_TRUE(set) << errors.lines().front();
  return std::move(*set);
}

// Runs 0, 1, ... with these values of metric "m".
std::vector<MadeRun> runs_of(const nlohmann::ordered_json& point, std::uint64_t seed,
                             const std::vector<double>& values) {
  std::vector<MadeRun> runs;
  for (const double value : values) runs.push_back({point, seed++, {{"m", value}}});
  return runs;
}

std::vector<MadeRun> operator+(std::vector<MadeRun> a, const std::vector<MadeRun>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Comparison, PairsRunsOfTheSameSeedInAnyOrder) {
  auto runs = runs_of({}, 1, {10, 20, 30});
  std::swap(runs[0], runs[2]);
  const RunSet a = set_of(runs);
  const auto compared = [&](std::uint64_t seed, const ComparisonOptions& options) {
    const Comparison c = compare(a, set_of(runs_of({}, seed, {11, 21, 31.1})), options);
    return *c.points.at(0).metrics.at(0).difference;
  };
  EXPECT_EQ(compared(1, {}).test, DifferenceTest::kPaired);
  EXPECT_TRUE(compared(1, {}).proven);
  EXPECT_NEAR(compared(1, {}).difference, 1.0333, 1e-4);
  EXPECT_EQ(compared(2, {}).test, DifferenceTest::kWelch) << "two of three seeds are the same";
  EXPECT_FALSE(compared(2, {}).proven);
  EXPECT_EQ(compared(1, {.unpaired = true}).test, DifferenceTest::kWelch);
  EXPECT_EQ(compared(1, {.pooled = true}).test, DifferenceTest::kPooled);
}

TEST(Comparison, SeedsThatStandTwiceMakeNoPairs) {
  const RunSet a = set_of(runs_of({}, 1, {1, 2}) + runs_of({}, 1, {3, 4}));
  EXPECT_EQ(compare(a, a, {}).points.at(0).metrics.at(0).difference->test, DifferenceTest::kWelch);
}

TEST(Comparison, ARunWithoutTheMetricTakesNoPartInIt) {
  auto runs = runs_of({}, 1, {1, 2, 3});
  runs[1].metrics = {{"m", nullptr}, {"n", 4}, {"text", "x"}};
  const RunSet a = set_of(runs);
  EXPECT_THAT(a.metrics, ElementsAre("m", "n"));
  const Comparison c = compare(a, a, {});
  ASSERT_EQ(c.points.at(0).metrics.size(), 2u);
  EXPECT_EQ(c.points[0].metrics[0].a.count, 2u);
  EXPECT_EQ(c.points[0].metrics[0].difference->test, DifferenceTest::kWelch);
  EXPECT_EQ(c.points[0].metrics[1].a.mean, 4);
  EXPECT_FALSE(c.points[0].metrics[1].difference) << "one run";
}

TEST(Comparison, MatchesPointsByTheCoordinatesThatVary) {
  const RunSet a =
      set_of(runs_of({{"lock", "ticket"}, {"n", 1}}, 1, {1, 2}) + runs_of({{"lock", "ticket"}, {"n", 2}}, 1, {3, 4}) +
             runs_of({{"lock", "ticket"}, {"n", 3}}, 1, {3, 4}));
  const RunSet b =
      set_of(runs_of({{"n", 2.0}, {"lock", "mcs"}}, 1, {5, 6}) + runs_of({{"n", 1.0}, {"lock", "mcs"}}, 1, {7, 8}));
  const Comparison c = compare(a, b, {});
  EXPECT_EQ(describe_point(c.a), "lock=ticket");
  EXPECT_EQ(describe_point(c.b), "lock=mcs");
  ASSERT_EQ(c.points.size(), 2u);
  EXPECT_EQ(describe_point(c.points[0].point), "n=1");
  EXPECT_EQ(c.points[0].metrics[0].b.mean, 7.5);
  EXPECT_EQ(c.points[1].metrics[0].b.mean, 5.5);
  EXPECT_EQ(c.only_a, 1u);
  EXPECT_EQ(c.only_b, 0u);

  const RunSet one = set_of(runs_of({{"n", 2}, {"lock", "mcs"}}, 1, {5, 6}));
  const Comparison d = compare(a, one, {});
  ASSERT_EQ(d.points.size(), 1u) << "only where n is 2";
  EXPECT_EQ(d.points[0].metrics[0].a.mean, 3.5);
  EXPECT_EQ(d.only_a, 2u);
}

TEST(Comparison, OneFileHasBothSides) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "r.json";
  testing::write_whole(file, made_results(runs_of({{"lock", "ticket"}, {"n", 1}}, 1, {1, 2}) +
                                          runs_of({{"lock", "mcs"}, {"n", 1}}, 1, {3, 4})));
  InputErrors errors;
  const auto values = axis_values(file, "lock", errors);
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 2u);
  const auto mcs = RunSet::read(file, {{"lock", (*values)[1]}}, {}, errors);
  ASSERT_EQ(mcs->points.size(), 1u);
  EXPECT_EQ(describe_point(mcs->points[0].point), "n=1");
  EXPECT_THAT(mcs->points[0].values.at(0), ElementsAre(3, 4));
  EXPECT_THAT(*axis_values(file, "none", errors), IsEmpty());
}

TEST(Comparison, KeepsOnlyTheMetricsThatAreWanted) {
  const nlohmann::ordered_json metrics{{"vms", {{"web", {{"x", 1}, {"y", 2}}}, {"webs", {{"x", 3}}}}}, {"host", 4}};
  EXPECT_THAT(set_of({{{}, 1, metrics}}, {"vms.web"}).metrics, ElementsAre("vms.web.x", "vms.web.y"));
  EXPECT_THAT(set_of({{{}, 1, metrics}}, {"host", "vms.webs.x"}).metrics, ElementsAre("vms.webs.x", "host"));
}

TEST(Comparison, KnowsWhichMetricsShouldBeLess) {
  const auto better = [](std::string_view metric) { return better_of(metric); };
  EXPECT_EQ(better("vms.web.tasks.t.operations_per_s"), Better::kMore);
  EXPECT_EQ(better("vms.web.tasks.steal.operations"), Better::kMore) << "the task's name says nothing";
  EXPECT_EQ(better("vms.operations.clock.jitter_us.p99"), Better::kLess);
  EXPECT_EQ(better("vms.web.locks.l.wait_us.mean"), Better::kLess);
  EXPECT_EQ(better("vms.web.time_s.steal"), Better::kLess);
  EXPECT_EQ(better("vms.web.elapsed_s"), Better::kLess);
  EXPECT_EQ(better("host.events"), std::nullopt);
  EXPECT_EQ(better("vms.web.cpu_s"), std::nullopt);
}

// At x = 0, 1, 2, ... A has `a` and B has `b`, with noise of +-1.
Crossover crossover_of(const std::vector<double>& a, const std::vector<double>& b, Better better = Better::kLess) {
  const auto line = [](const std::vector<double>& values, std::uint64_t seed) {
    std::vector<MadeRun> runs;
    for (std::size_t x = 0; x < values.size(); ++x) {
      runs = runs + runs_of({{"x", x}}, seed, {values[x] - 1, values[x], values[x] + 1});
    }
    return set_of(runs);
  };
  const auto found = crossovers(compare(line(a, 1), line(b, 9), {}), "x", "m", better);
  EXPECT_EQ(found.size(), 1u);
  return found.at(0);
}

// Of Welch's test at each value: t of 4 degrees of freedom times sqrt(2 / 3).
constexpr double kHalfWidth = 2.776445 * 0.8164966;

TEST(Crossover, LiesWhereTheDifferenceAndTheEndsOfItsIntervalChangeSign) {
  const Crossover c = crossover_of({10, 10, 10, 10, 10}, {0, 4, 8, 12, 16});
  EXPECT_EQ(c.winner, Crossover::Winner::kA);
  EXPECT_FALSE(c.everywhere);
  EXPECT_FALSE(c.again);
  EXPECT_NEAR(c.from->number, 2.5, 1e-9);
  EXPECT_NEAR(c.low->number, 2.5 - kHalfWidth / 4, 1e-4);
  EXPECT_NEAR(c.high->number, 2.5 + kHalfWidth / 4, 1e-4);

  const Crossover more = crossover_of({10, 10, 10, 10, 10}, {0, 4, 8, 12, 16}, Better::kMore);
  EXPECT_EQ(more.winner, Crossover::Winner::kB);
  EXPECT_EQ(more.from->number, c.from->number);
}

TEST(Crossover, MayBeNowhereOrEverywhere) {
  const Crossover never = crossover_of({5, 5, 5}, {0, 9, 5.1});
  EXPECT_EQ(never.winner, Crossover::Winner::kNone);
  const Crossover always = crossover_of({5, 5, 5}, {15, 16, 17});
  EXPECT_TRUE(always.everywhere);
  EXPECT_FALSE(always.from);
  const Crossover probably = crossover_of({5, 5, 5}, {6, 7, 17});
  EXPECT_EQ(probably.winner, Crossover::Winner::kA);
  EXPECT_FALSE(probably.everywhere);
  EXPECT_FALSE(probably.from) << "the mean is better at every value";
  EXPECT_FALSE(probably.low);
  EXPECT_NEAR(probably.high->number, 1 + (kHalfWidth - 2) / 10, 1e-4);
}

TEST(Crossover, SaysIfThereAreSeveral) {
  const Crossover c = crossover_of({10, 10, 10, 10}, {20, 0, 0, 20});
  EXPECT_EQ(c.winner, Crossover::Winner::kA);
  EXPECT_TRUE(c.again);
  EXPECT_NEAR(c.from->number, 2.5, 1e-9);
}

TEST(Crossover, TakesSpansForNumbers) {
  const auto line = [](double first, double second) {
    return set_of(runs_of({{"slice", "10us"}}, 1, {first, first + 1}) +
                  runs_of({{"slice", "0.1ms"}}, 1, {second, second + 1}));
  };
  const auto found = crossovers(compare(line(5, 5), line(4, 6), {}), "slice", "m", Better::kLess);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].from->text(), "55us");
  EXPECT_EQ(found[0].low->text(), "55us") << "pairs without noise";
}

}  // namespace
}  // namespace vcpusim
