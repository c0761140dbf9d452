#include "sim/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/check.h"

namespace vcpusim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t kDraws = 400'000;

std::vector<double> draws_ps(const Distribution& distribution, std::uint64_t seed) {
  RandomStream random(seed, "distribution", "test");
  std::vector<double> values(kDraws);
  for (double& value : values) value = static_cast<double>(distribution.draw(random).count());
  return values;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double stddev(const std::vector<double>& values) {
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + kDraws / 2);
  return values[kDraws / 2];
}

double share_above(const std::vector<double>& values, double limit) {
  return static_cast<double>(std::ranges::count_if(values, [&](double v) { return v > limit; })) /
         static_cast<double>(values.size());
}

TEST(Distribution, IsZeroByDefault) {
  RandomStream random(1, "a", "b");
  EXPECT_TRUE(Distribution().is_constant());
  EXPECT_EQ(Distribution().draw(random), Duration::zero());
}

TEST(Distribution, AConstantUsesNoRandomNumbers) {
  RandomStream used(1, "a", "b");
  RandomStream fresh(1, "a", "b");
  EXPECT_EQ(Distribution::constant(nanoseconds(3)).draw(used), nanoseconds(3));
  EXPECT_EQ(used.bits(), fresh.bits());
}

TEST(Distribution, ExponentialHasItsMoments) {
  const std::vector<double> values = draws_ps(Distribution::exponential(microseconds(20)), 1);
  EXPECT_NEAR(mean(values), 20e6, 0.01 * 20e6);
  EXPECT_NEAR(stddev(values), 20e6, 0.01 * 20e6);
}

TEST(Distribution, RoundsToTheNearestPicosecond) {
  // P(0) = P(x < 0.5) and P(1) = P(0.5 <= x < 1.5) for mean 1 ps; cutting off would give 0.63 and 0.23.
  const std::vector<double> values = draws_ps(Distribution::exponential(Duration(1)), 2);
  EXPECT_NEAR(1 - share_above(values, 0), 1 - std::exp(-0.5), 0.004);
  EXPECT_NEAR(share_above(values, 0) - share_above(values, 1), std::exp(-0.5) - std::exp(-1.5), 0.004);
}

TEST(Distribution, UniformReachesBothEndsEquallyOften) {
  RandomStream random(3, "a", "b");
  const Distribution distribution = Distribution::uniform(Duration(5), Duration(8));
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 40'000; ++i) ++counts[distribution.draw(random).count()];
  ASSERT_EQ(counts.size(), 4U);
  EXPECT_EQ(counts.begin()->first, 5);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10'000, 400) << value;
}

TEST(Distribution, UniformOverOnePointIsThatPoint) {
  RandomStream random(3, "a", "b");
  EXPECT_EQ(Distribution::uniform(Duration(5), Duration(5)).draw(random), Duration(5));
  EXPECT_LE(Distribution::uniform(Duration(0), kLongestDraw).draw(random), kLongestDraw);
}

TEST(Distribution, NormalHasItsMoments) {
  const std::vector<double> values = draws_ps(Distribution::normal(microseconds(100), microseconds(10)), 4);
  EXPECT_NEAR(mean(values), 100e6, 0.01 * 10e6);
  EXPECT_NEAR(stddev(values), 10e6, 0.01 * 10e6);
}

TEST(Distribution, NegativeNormalDrawsBecomeZero) {
  const std::vector<double> values = draws_ps(Distribution::normal(Duration::zero(), microseconds(1)), 5);
  EXPECT_EQ(std::ranges::min(values), 0);
  EXPECT_NEAR(share_above(values, 0), 0.5, 0.01);
}

TEST(Distribution, LognormalHasItsMedianAndMean) {
  const std::vector<double> values = draws_ps(Distribution::lognormal(microseconds(10), 0.5), 6);
  EXPECT_NEAR(median(values), 10e6, 0.01 * 10e6);
  EXPECT_NEAR(mean(values), 10e6 * std::exp(0.125), 0.01 * 10e6);
}

TEST(Distribution, ParetoHasItsTail) {
  const std::vector<double> values = draws_ps(Distribution::pareto(microseconds(1), 2), 7);
  EXPECT_GE(std::ranges::min(values), 1e6);
  EXPECT_NEAR(share_above(values, 2e6), 0.25, 0.005);
  EXPECT_NEAR(share_above(values, 10e6), 0.01, 0.001);
}

TEST(Distribution, AHeavyTailIsCutToTheLongestDraw) {
  RandomStream random(8, "a", "b");
  const Distribution distribution = Distribution::pareto(milliseconds(1), 0.1);
  Duration longest{};
  for (int i = 0; i < 10'000; ++i) longest = std::max(longest, distribution.draw(random));
  EXPECT_EQ(longest, kLongestDraw);
}

TEST(Distribution, EmpiricalDrawsEachValueEquallyOften) {
  RandomStream random(9, "a", "b");
  const Distribution distribution = Distribution::empirical({Duration(1), Duration(10), Duration(10), Duration(7)});
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 40'000; ++i) ++counts[distribution.draw(random).count()];
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_NEAR(counts[1], 10'000, 400);
  EXPECT_NEAR(counts[7], 10'000, 400);
  EXPECT_NEAR(counts[10], 20'000, 400);
}

TEST(Distribution, RemembersWhatItWasMadeFrom) {
  const Distribution normal = Distribution::normal(microseconds(3), microseconds(1));
  EXPECT_EQ(normal.shape(), Distribution::Shape::kNormal);
  EXPECT_EQ(normal.location(), microseconds(3));
  EXPECT_EQ(normal.spread(), microseconds(1));
  EXPECT_EQ(Distribution::pareto(microseconds(3), 1.5).parameter(), 1.5);
  EXPECT_TRUE(normal.values().empty());
  EXPECT_EQ(Distribution::empirical({Duration(1), Duration(2)}).values().size(), 2U);
}

TEST(Distribution, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(Distribution::constant(Duration(-1)), InvariantError);
  EXPECT_THROW(Distribution::exponential(kLongestDraw + Duration(1)), InvariantError);
  EXPECT_THROW(Distribution::uniform(Duration(2), Duration(1)), InvariantError);
  EXPECT_THROW(Distribution::normal(Duration(2), Duration(-1)), InvariantError);
  EXPECT_THROW(Distribution::lognormal(Duration(2), 0), InvariantError);
  EXPECT_THROW(Distribution::lognormal(Duration(2), 4.1), InvariantError);
  EXPECT_THROW(Distribution::pareto(Duration(2), 0.05), InvariantError);
  EXPECT_THROW(Distribution::pareto(Duration(2), std::nan("")), InvariantError);
  EXPECT_THROW(Distribution::empirical({}), InvariantError);
  EXPECT_THROW(Distribution::empirical({Duration(-1)}), InvariantError);
}

TEST(Distribution, DrawsAreThoseOfEveryOtherBuild) {
  RandomStream random(10, "golden", "distributions");
  EXPECT_EQ(Distribution::exponential(microseconds(20)).draw(random).count(), 20'873'334);
  EXPECT_EQ(Distribution::uniform(microseconds(1), microseconds(3)).draw(random).count(), 1'839'873);
  EXPECT_EQ(Distribution::normal(microseconds(20), microseconds(2)).draw(random).count(), 16'260'650);
  EXPECT_EQ(Distribution::lognormal(microseconds(20), 1.5).draw(random).count(), 10'882'185);
  EXPECT_EQ(Distribution::pareto(microseconds(20), 1.5).draw(random).count(), 43'863'884);
}

}  // namespace
}  // namespace vcpusim
