#include "sim/portable_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/fingerprint.h"
#include "sim/random.h"

namespace vcpusim {
namespace {

// The distance of `got` from the truth, in units of the last place of the double nearest to it.
double error_ulp(double got, long double truth) {
  const double nearest = std::abs(static_cast<double>(truth));
  const double ulp = std::nextafter(nearest, std::numeric_limits<double>::infinity()) - nearest;
  return static_cast<double>(std::abs(static_cast<long double>(got) - truth) / static_cast<long double>(ulp));
}

constexpr int kPoints = 200'000;

TEST(PortableMath, LogIsWithinTwoUlpOverAllExponents) {
  RandomStream random(1, "log", "argument");
  double worst = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = std::ldexp(1 + random.unit(), static_cast<int>(random.below(2045)) - 1022);
    worst = std::max(worst, error_ulp(portable::log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2);
  EXPECT_GT(worst, 0);
}

TEST(PortableMath, LogIsWithinTwoUlpNearOne) {
  RandomStream random(2, "log", "argument");
  double worst = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double distance = std::ldexp(random.unit() - 0.5, -static_cast<int>(random.below(50)));
    const double x = 1 + distance;
    if (x == 1) continue;
    worst = std::max(worst, error_ulp(portable::log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2);
}

TEST(PortableMath, ExpIsWithinTwoUlp) {
  RandomStream random(3, "exp", "argument");
  double worst = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double range = i % 2 == 0 ? 1400 : 2;  // all normal results, and those near one
    const double x = (random.unit() - 0.5) * range;
    worst = std::max(worst, error_ulp(portable::exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2);
}

TEST(PortableMath, ExactPoints) {
  EXPECT_EQ(portable::log(1.0), 0.0);
  EXPECT_EQ(portable::exp(0.0), 1.0);
  EXPECT_EQ(portable::log(2.0), 0x1.62e42fefa39efp-1);
  EXPECT_EQ(portable::log(0.5), -0x1.62e42fefa39efp-1);
}

TEST(PortableMath, ExpAtTheEndsOfItsRange) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(portable::exp(710), kInfinity);
  EXPECT_EQ(portable::exp(kInfinity), kInfinity);
  EXPECT_EQ(portable::exp(1e300), kInfinity);
  EXPECT_LT(portable::exp(709.78), kInfinity);
  EXPECT_EQ(portable::exp(-746), 0.0);
  EXPECT_EQ(portable::exp(-kInfinity), 0.0);
  EXPECT_EQ(portable::exp(-745), std::numeric_limits<double>::denorm_min());
}

TEST(PortableMath, ExpUndoesLog) {
  RandomStream random(4, "log", "argument");
  for (int i = 0; i < 1000; ++i) {
    const double x = 0.5 + random.unit();
    EXPECT_NEAR(portable::exp(portable::log(x)), x, 4e-16);
  }
}

// Taken with gcc 12 on x86-64. Any other value means that results would differ between builds or machines.
TEST(PortableMath, BitsAreThoseOfEveryOtherBuild) {
  RandomStream random(5, "both", "argument");
  Fingerprint fingerprint;
  for (int i = 0; i < 10'000; ++i) {
    const double x = random.unit();
    fingerprint.mix(std::bit_cast<std::uint64_t>(portable::log(1000 * x)));
    fingerprint.mix(std::bit_cast<std::uint64_t>(portable::exp(100 * (x - 0.5))));
  }
  EXPECT_EQ(fingerprint.value(), 6133708707619824868U);
}

}  // namespace
}  // namespace vcpusim
