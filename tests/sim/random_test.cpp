#include "sim/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/fingerprint.h"

namespace vcpusim {
namespace {

std::vector<double> draws(RandomStream random, double (RandomStream::*draw)(), std::size_t count) {
  std::vector<double> values(count);
  for (double& value : values) value = (random.*draw)();
  return values;
}

double moment(const std::vector<double>& values, int power) {
  double sum = 0;
  for (const double value : values) sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

// Kolmogorov and Smirnov's distance times the root of n: above 1.95 with odds of one in a thousand.
template <class Cumulative>
double ks_statistic(std::vector<double> values, Cumulative cumulative) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double truth = cumulative(values[i]);
    distance = std::max({distance, truth - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - truth});
  }
  return distance * std::sqrt(n);
}

double chi_square(const std::vector<std::uint64_t>& counts) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const std::uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  return sum;
}

// Chi square of k classes: mean k - 1, variance 2 (k - 1); four standard deviations either way.
void expect_uniform(const std::vector<std::uint64_t>& counts) {
  const auto degrees = static_cast<double>(counts.size() - 1);
  EXPECT_NEAR(chi_square(counts), degrees, 4 * std::sqrt(2 * degrees));
}

double exponential_cumulative(double x) { return 1 - std::exp(-x); }
double normal_cumulative(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

constexpr std::size_t kDraws = 1'000'000;

// The first draws, as every build on every machine must give them. Computed by a second implementation of Philox and
// FNV-1a, which gives the known answers of Random123 for key 0 and counter 0.
TEST(RandomStream, KnownBits) {
  RandomStream random(1, "vms.web.tasks.make.3", "user");
  const std::array<std::uint64_t, 9> expected{0x42990d63d129e8b2, 0x8efcb5f79d0030a9, 0x643663a634e65af3,
                                              0x91535c0c30c14a9c, 0x9815e3d613e89734, 0xc4b5dc558c90530a,
                                              0x2a8447118484a255, 0x791585ffc0743eef, 0xc1e6dbaf02d52ebf};
  for (const std::uint64_t bits : expected) EXPECT_EQ(random.bits(), bits);
}

TEST(RandomStream, KnownVariates) {
  RandomStream random(1, "vms.web.tasks.make.3", "user");
  EXPECT_EQ(random.below(1'000'000), 260'147U);
  EXPECT_EQ(random.unit(), 0x1.1df96bef3a007p-1);
  EXPECT_EQ(random.exponential(), 0x1.da87c45d7756cp+0);
  EXPECT_EQ(random.normal(), 0x1.f758fbfa6428p-1);
}

// Long enough to pass through the wedges and tails of the ziggurats.
TEST(RandomStream, BitsOfVariatesAreThoseOfEveryOtherBuild) {
  RandomStream random(2, "golden", "variates");
  Fingerprint fingerprint;
  for (int i = 0; i < 100'000; ++i) {
    fingerprint.mix(std::bit_cast<std::uint64_t>(random.exponential()));
    fingerprint.mix(std::bit_cast<std::uint64_t>(random.normal()));
    fingerprint.mix(random.below(1000));
  }
  EXPECT_EQ(fingerprint.value(), 18432912296801149240U);
}

TEST(RandomStream, SameNamesGiveTheSameStream) {
  RandomStream a(7, "entity", "purpose");
  RandomStream b(7, "entity", "purpose");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.bits(), b.bits());
}

TEST(RandomStream, EverySeedEntityAndPurposeIsAStreamOfItsOwn) {
  std::map<std::uint64_t, std::string> first;
  const auto add = [&](std::uint64_t seed, const std::string& entity, const std::string& purpose) {
    const std::string name = std::to_string(seed) + "/" + entity + "/" + purpose;
    const auto [at, added] = first.emplace(RandomStream(seed, entity, purpose).bits(), name);
    EXPECT_TRUE(added) << name << " is " << at->second;
  };
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (int i = 0; i < 100; ++i) {
      for (const char* purpose : {"user", "hold", "sleep"}) add(seed, "vms.web.tasks." + std::to_string(i), purpose);
    }
  }
  add(1, "ab", "c");
  add(1, "a", "bc");
  add(1, "abc", "");
  add(1, "", "abc");
  add(1, "c", "ab");
}

TEST(RandomStream, NeighbouringStreamsAreUncorrelated) {
  const auto correlation = [](RandomStream a, RandomStream b) {
    double sum = 0;
    for (std::size_t i = 0; i < kDraws; ++i) sum += (a.unit() - 0.5) * (b.unit() - 0.5);
    return 12 * sum / std::sqrt(static_cast<double>(kDraws));  // standard normal if independent
  };
  EXPECT_LT(std::abs(correlation({1, "vcpu.0", "user"}, {1, "vcpu.1", "user"})), 3.3);
  EXPECT_LT(std::abs(correlation({1, "vcpu.0", "user"}, {2, "vcpu.0", "user"})), 3.3);
  EXPECT_LT(std::abs(correlation({1, "vcpu.0", "user"}, {1, "vcpu.0", "hold"})), 3.3);
}

TEST(RandomStream, EveryBitIsFair) {
  RandomStream random(3, "bits", "test");
  std::array<std::int64_t, 64> ones{};
  for (std::size_t i = 0; i < kDraws; ++i) {
    const std::uint64_t bits = random.bits();
    for (unsigned bit = 0; bit < 64; ++bit) ones[bit] += static_cast<std::int64_t>(bits >> bit & 1);
  }
  const double sigma = std::sqrt(static_cast<double>(kDraws)) / 2;
  for (const std::int64_t count : ones) {
    EXPECT_LT(std::abs(static_cast<double>(count) - static_cast<double>(kDraws) / 2), 4 * sigma);
  }
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream random(4, "below", "test");
  for (const std::uint64_t bound : {2U, 3U, 10U, 1000U}) {
    std::vector<std::uint64_t> counts(bound);
    for (std::size_t i = 0; i < kDraws; ++i) ++counts.at(random.below(bound));
    expect_uniform(counts);
  }
}

TEST(RandomStream, BelowHasNoBiasForHugeBounds) {
  // Taking the remainder would give the lower half of this range twice as often as the upper.
  constexpr std::uint64_t kBound = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 62);
  RandomStream random(5, "below", "test");
  std::vector<std::uint64_t> thirds(3);
  for (std::size_t i = 0; i < kDraws; ++i) {
    const std::uint64_t value = random.below(kBound);
    ASSERT_LT(value, kBound);
    ++thirds[value / (kBound / 3)];
  }
  expect_uniform(thirds);
}

TEST(RandomStream, BelowOneIsZero) {
  RandomStream random(6, "below", "test");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
}

TEST(RandomStream, UnitIsUniformAndNeverAnEnd) {
  const std::vector<double> values = draws({7, "unit", "test"}, &RandomStream::unit, kDraws);
  EXPECT_GT(std::ranges::min(values), 0);
  EXPECT_LT(std::ranges::max(values), 1);
  EXPECT_LT(ks_statistic(values, [](double x) { return x; }), 1.95);
}

TEST(RandomStream, ExponentialHasItsMoments) {
  const std::vector<double> values = draws({8, "exponential", "test"}, &RandomStream::exponential, kDraws);
  EXPECT_GE(std::ranges::min(values), 0);
  // E x^k = k!; tolerances of four standard errors.
  const double root = std::sqrt(static_cast<double>(kDraws));
  EXPECT_NEAR(moment(values, 1), 1, 4 * 1 / root);
  EXPECT_NEAR(moment(values, 2), 2, 4 * std::sqrt(24.0 - 4) / root);
  EXPECT_NEAR(moment(values, 3), 6, 4 * std::sqrt(720.0 - 36) / root);
}

TEST(RandomStream, ExponentialHasItsShape) {
  const std::vector<double> values = draws({9, "exponential", "test"}, &RandomStream::exponential, kDraws);
  EXPECT_LT(ks_statistic(values, exponential_cumulative), 1.95);
  // Classes finer than the layers of the ziggurat.
  std::vector<std::uint64_t> counts(1000);
  for (const double x : values) ++counts.at(static_cast<std::size_t>(exponential_cumulative(x) * 1000));
  expect_uniform(counts);
}

TEST(RandomStream, TheTailOfTheExponentialIsExponential) {
  // Beyond the base of the ziggurat, at 7.697: 454 in a million.
  std::vector<double> tail;
  RandomStream random(10, "exponential", "tail");
  for (std::size_t i = 0; i < 5 * kDraws; ++i) {
    if (const double x = random.exponential(); x > 7.75) tail.push_back(x - 7.75);
  }
  const double expected = 5 * static_cast<double>(kDraws) * std::exp(-7.75);
  EXPECT_NEAR(static_cast<double>(tail.size()), expected, 4 * std::sqrt(expected));
  EXPECT_LT(ks_statistic(tail, exponential_cumulative), 1.95);
}

TEST(RandomStream, NormalHasItsMoments) {
  const std::vector<double> values = draws({11, "normal", "test"}, &RandomStream::normal, kDraws);
  const double root = std::sqrt(static_cast<double>(kDraws));
  EXPECT_NEAR(moment(values, 1), 0, 4 * 1 / root);
  EXPECT_NEAR(moment(values, 2), 1, 4 * std::sqrt(2.0) / root);
  EXPECT_NEAR(moment(values, 3), 0, 4 * std::sqrt(15.0) / root);
  EXPECT_NEAR(moment(values, 4), 3, 4 * std::sqrt(105.0 - 9) / root);
}

TEST(RandomStream, NormalHasItsShape) {
  const std::vector<double> values = draws({12, "normal", "test"}, &RandomStream::normal, kDraws);
  EXPECT_LT(ks_statistic(values, normal_cumulative), 1.95);
  std::vector<std::uint64_t> counts(1000);
  for (const double x : values) ++counts.at(static_cast<std::size_t>(normal_cumulative(x) * 1000));
  expect_uniform(counts);
}

TEST(RandomStream, BothTailsOfTheNormalAreNormal) {
  // Beyond the base of the ziggurat, at 3.654: 258 in a million, of both signs.
  constexpr double kStart = 3.7;
  std::vector<double> left;
  std::vector<double> right;
  RandomStream random(13, "normal", "tail");
  for (std::size_t i = 0; i < 10 * kDraws; ++i) {
    const double x = random.normal();
    if (x > kStart) right.push_back(x);
    if (x < -kStart) left.push_back(-x);
  }
  const double beyond = normal_cumulative(-kStart);
  const double expected = 10 * static_cast<double>(kDraws) * beyond;
  for (const std::vector<double>& tail : {left, right}) {
    EXPECT_NEAR(static_cast<double>(tail.size()), expected, 4 * std::sqrt(expected));
    EXPECT_LT(ks_statistic(tail, [&](double x) { return 1 - normal_cumulative(-x) / beyond; }), 1.95);
  }
}

TEST(RandomStream, SuccessiveExponentialsAreUncorrelated) {
  RandomStream random(14, "exponential", "serial");
  double previous = random.exponential() - 1;
  double sum = 0;
  for (std::size_t i = 0; i < kDraws; ++i) {
    const double next = random.exponential() - 1;
    sum += previous * next;
    previous = next;
  }
  EXPECT_LT(std::abs(sum) / std::sqrt(static_cast<double>(kDraws)), 3.3);
}

}  // namespace
}  // namespace vcpusim
