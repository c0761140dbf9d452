#include "sim/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/check.h"
#include "sim/distribution.h"
#include "sim/random.h"

namespace vcpusim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

SimTime at(std::int64_t ps) { return SimTime(Duration(ps)); }

LatencyHistogram histogram_of(const std::vector<Duration>& values) {
  LatencyHistogram histogram;
  for (const Duration value : values) histogram.record(value);
  return histogram;
}

std::vector<Duration> draws(const Distribution& distribution, std::size_t count, std::uint64_t seed = 1) {
  RandomStream random(seed, "stats", "test");
  std::vector<Duration> values(count);
  for (Duration& value : values) value = distribution.draw(random);
  return values;
}

void expect_same(const LatencyHistogram& a, const LatencyHistogram& b) {
  EXPECT_EQ(a.count(), b.count());
  EXPECT_TRUE(a.sum_ps() == b.sum_ps());
  EXPECT_EQ(a.min(), b.min());
  EXPECT_EQ(a.max(), b.max());
  for (int thousandth = 0; thousandth <= 1000; ++thousandth) {
    EXPECT_EQ(a.quantile(thousandth / 1000.0), b.quantile(thousandth / 1000.0)) << thousandth;
  }
}

TEST(Summary, OfNothingIsZero) {
  const Summary summary = summarise({});
  EXPECT_EQ(summary.count, 0U);
  EXPECT_EQ(summary.mean, 0);
  EXPECT_EQ(summary.variance, 0);
  EXPECT_EQ(summary.standard_error(), 0);
}

TEST(Summary, OfOneValueHasNoSpread) {
  const std::vector<double> values{3.5};
  const Summary summary = summarise(values);
  EXPECT_EQ(summary.count, 1U);
  EXPECT_EQ(summary.mean, 3.5);
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.variance, 0);
}

TEST(Summary, OfAKnownSample) {
  const std::vector<double> values{2, 4, 4, 4, 5, 5, 7, 9};  // mean 5, squared deviations 32
  const Summary summary = summarise(values);
  EXPECT_EQ(summary.count, 8U);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_DOUBLE_EQ(summary.variance, 32.0 / 7);
  EXPECT_DOUBLE_EQ(summary.stddev(), std::sqrt(32.0 / 7));
  EXPECT_DOUBLE_EQ(summary.standard_error(), std::sqrt(32.0 / 7 / 8));
  EXPECT_EQ(summary.min, 2);
  EXPECT_EQ(summary.max, 9);
  EXPECT_EQ(summary.median, 4.5);
}

TEST(Summary, MedianOfAnOddSampleIsItsMiddle) {
  const std::vector<double> values{9, 1, 5};
  EXPECT_EQ(summarise(values).median, 5);
}

TEST(Summary, VarianceSurvivesALargeMean) {
  const std::vector<double> values{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  EXPECT_NEAR(summarise(values).variance, 30, 1e-6);
}

TEST(Summary, RefusesWhatIsNoNumber) {
  const std::vector<double> values{1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THROW(summarise(values), InvariantError);
}

TEST(LatencyHistogram, OfNothingIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min(), Duration::zero());
  EXPECT_EQ(histogram.max(), Duration::zero());
  EXPECT_EQ(histogram.mean(), Duration::zero());
  EXPECT_EQ(histogram.quantile(0.5), Duration::zero());
}

TEST(LatencyHistogram, QuantilesAreWithinOnePercent) {
  for (const Distribution& distribution :
       {Distribution::exponential(microseconds(20)), Distribution::uniform(Duration(0), milliseconds(1)),
        Distribution::pareto(Duration(200), 0.5), Distribution::exponential(Duration(100))}) {
    std::vector<Duration> values = draws(distribution, 20'001);
    const LatencyHistogram histogram = histogram_of(values);
    std::ranges::sort(values);
    for (int thousandth = 0; thousandth <= 1000; ++thousandth) {
      // The value of rank ceil(q n).
      const std::size_t rank = (static_cast<std::size_t>(thousandth) * values.size() + 999) / 1000;
      const double truth = static_cast<double>(values[std::max<std::size_t>(rank, 1) - 1].count());
      const double got = static_cast<double>(histogram.quantile(thousandth / 1000.0).count());
      EXPECT_LE(std::abs(got - truth), truth / 128) << thousandth;
    }
  }
}

TEST(LatencyHistogram, ErrorIsBoundedForEveryMagnitude) {
  RandomStream random(1, "stats", "magnitude");
  for (int i = 0; i < 20'000; ++i) {
    const Duration value(static_cast<std::int64_t>(random.bits() >> (1 + random.below(63))));
    // Two far neighbours, so that min and max do not help.
    LatencyHistogram histogram = histogram_of({Duration(0), value, Duration::max()});
    const double error =
        std::abs(static_cast<double>(histogram.quantile(0.5).count()) - static_cast<double>(value.count()));
    EXPECT_LE(error, static_cast<double>(value.count()) / 128) << value.count();
    EXPECT_TRUE(error == 0 || value.count() >= 128);
  }
}

TEST(LatencyHistogram, ClassesMeetWithoutGapOrOverlap) {
  // Each longer value has the same or a longer quantile, across all edges of powers of two.
  Duration previous{-1};
  for (unsigned exponent = 1; exponent < 63; ++exponent) {
    const std::int64_t power = std::int64_t{1} << exponent;
    for (const std::int64_t value : {power - 1, power, power + 1}) {
      LatencyHistogram histogram = histogram_of({Duration(0), Duration(value), Duration::max()});
      EXPECT_GE(histogram.quantile(0.5), previous);
      previous = std::max(previous, histogram.quantile(0.5));
    }
  }
}

TEST(LatencyHistogram, MinMaxCountAndMeanAreExact) {
  const std::vector<Duration> values = draws(Distribution::pareto(microseconds(1), 0.8), 10'000);
  const LatencyHistogram histogram = histogram_of(values);
  detail::Int128 sum = 0;
  for (const Duration value : values) sum += value.count();
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_TRUE(histogram.sum_ps() == sum);
  EXPECT_EQ(histogram.min(), std::ranges::min(values));
  EXPECT_EQ(histogram.max(), std::ranges::max(values));
  EXPECT_EQ(histogram.quantile(1), histogram.max());
  EXPECT_EQ(histogram.mean().count(), static_cast<std::int64_t>((sum + 5'000) / 10'000));
}

TEST(LatencyHistogram, SumDoesNotOverflow) {
  const LatencyHistogram histogram = histogram_of({Duration::max(), Duration::max(), Duration::max()});
  EXPECT_EQ(histogram.mean(), Duration::max());
}

TEST(LatencyHistogram, MeanRoundsToTheNearest) {
  EXPECT_EQ(histogram_of({Duration(1), Duration(2), Duration(2)}).mean(), Duration(2));
  EXPECT_EQ(histogram_of({Duration(1), Duration(1), Duration(2)}).mean(), Duration(1));
}

TEST(LatencyHistogram, QuantileCountsRecordsExactly) {
  LatencyHistogram histogram;
  for (int i = 0; i < 999; ++i) histogram.record(Duration(1));
  histogram.record(Duration(100));
  EXPECT_EQ(histogram.quantile(0.999), Duration(1));
  EXPECT_EQ(histogram.quantile(0.9991), Duration(100));
  EXPECT_EQ(histogram.quantile(0), Duration(1));
  EXPECT_EQ(histogram.quantile(1), Duration(100));
}

TEST(LatencyHistogram, MergingIsRecordingBoth) {
  const std::vector<Duration> shorter = draws(Distribution::exponential(microseconds(1)), 1'000, 1);
  const std::vector<Duration> longer = draws(Distribution::exponential(milliseconds(1)), 1'000, 2);
  std::vector<Duration> both = shorter;
  both.insert(both.end(), longer.begin(), longer.end());

  LatencyHistogram merged = histogram_of(shorter);
  merged.merge(histogram_of(longer));
  expect_same(merged, histogram_of(both));

  LatencyHistogram reverse = histogram_of(longer);
  reverse.merge(histogram_of(shorter));
  expect_same(reverse, merged);
}

TEST(LatencyHistogram, MergingNothingChangesNothing) {
  LatencyHistogram histogram = histogram_of({Duration(5), Duration(9)});
  histogram.merge({});
  expect_same(histogram, histogram_of({Duration(5), Duration(9)}));
  LatencyHistogram empty;
  empty.merge(histogram);
  expect_same(empty, histogram);
}

TEST(LatencyHistogram, IsAsNewWhenCleared) {
  LatencyHistogram histogram = histogram_of(draws(Distribution::exponential(milliseconds(1)), 1'000));
  histogram.clear();
  expect_same(histogram, {});
  histogram.record(Duration(7));
  expect_same(histogram, histogram_of({Duration(7)}));
}

TEST(LatencyHistogram, RefusesNegativeDurations) {
  LatencyHistogram histogram = histogram_of({Duration::max()});
  EXPECT_THROW(histogram.record(Duration(-1)), InvariantError);
  EXPECT_THROW(histogram.record(Duration::min()), InvariantError);
  EXPECT_EQ(histogram.count(), 1U);
}

TEST(LatencyHistogram, RefusesQuantilesOutOfRange) {
  const LatencyHistogram histogram = histogram_of({Duration(1)});
  EXPECT_THROW(histogram.quantile(-0.1), InvariantError);
  EXPECT_THROW(histogram.quantile(1.1), InvariantError);
  EXPECT_THROW(histogram.quantile(std::nan("")), InvariantError);
}

TEST(TimeWeighted, IntegratesSteps) {
  TimeWeighted state(2, at(100));
  state.set(at(110), 5);   // 2 x 10
  state.add(at(130), -1);  // 5 x 20
  EXPECT_EQ(state.state(), 4);
  EXPECT_TRUE(state.integral(at(140)) == 20 + 100 + 40);
  EXPECT_EQ(state.mean(at(140)), 4.0);
}

TEST(TimeWeighted, AsksWithoutChanging) {
  TimeWeighted state(1);
  EXPECT_TRUE(state.integral(at(1'000)) == 1'000);
  state.set(at(10), 0);
  EXPECT_TRUE(state.integral(at(1'000)) == 10);
}

TEST(TimeWeighted, MeanOfNoTimeIsTheState) {
  const TimeWeighted state(3, at(7));
  EXPECT_EQ(state.mean(at(7)), 3.0);
}

TEST(TimeWeighted, DoesNotOverflow) {
  TimeWeighted state(1'000'000);
  const std::int64_t end = Duration::max().count();
  EXPECT_TRUE(state.integral(at(end)) == detail::Int128{end} * 1'000'000);
  EXPECT_EQ(state.mean(at(end)), 1e6);
}

TEST(TimeWeighted, RestartForgetsThePastButNotTheState) {
  TimeWeighted state(10);
  state.set(at(50), 4);
  state.restart(at(100));
  EXPECT_EQ(state.state(), 4);
  EXPECT_TRUE(state.integral(at(100)) == 0);
  EXPECT_TRUE(state.integral(at(110)) == 40);
  EXPECT_EQ(state.mean(at(110)), 4.0);
}

TEST(TimeWeighted, LittlesLawHoldsExactly) {
  // The time integral of the number in a station is the sum of the times spent in it, to the picosecond.
  RandomStream random(1, "stats", "little");
  TimeWeighted present;
  detail::Int128 spent = 0;
  std::vector<SimTime> inside;
  SimTime now = kTimeZero;
  for (int i = 0; i < 10'000; ++i) {
    now += Duration(static_cast<std::int64_t>(random.below(1'000'000)));
    if (inside.empty() || random.below(2) == 0) {
      inside.push_back(now);
      present.add(now, 1);
    } else {
      const auto leaver = inside.begin() + static_cast<std::ptrdiff_t>(random.below(inside.size()));
      spent += (now - *leaver).count();
      inside.erase(leaver);
      present.add(now, -1);
    }
  }
  for (const SimTime entered : inside) spent += (now - entered).count();
  EXPECT_TRUE(present.integral(now) == spent);
}

}  // namespace
}  // namespace vcpusim
