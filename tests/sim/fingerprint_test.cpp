#include "sim/fingerprint.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <set>

namespace vcpusim {
namespace {

std::uint64_t of(std::initializer_list<std::uint64_t> values) {
  Fingerprint fingerprint;
  for (const std::uint64_t value : values) fingerprint.mix(value);
  return fingerprint.value();
}

TEST(Fingerprint, IsTheSameInEveryBuild) {
  EXPECT_EQ(of({}), 3831673242144371252U);
  EXPECT_EQ(of({1, 2, 3}), 8806496232785953722U);
}

TEST(Fingerprint, DependsOnOrder) { EXPECT_NE(of({1, 2}), of({2, 1})); }

TEST(Fingerprint, DependsOnLengthEvenOfZeros) {
  EXPECT_NE(of({}), of({0}));
  EXPECT_NE(of({0}), of({0, 0}));
  EXPECT_NE(of({1}), of({1, 0}));
}

TEST(Fingerprint, ASingleChangedBitChangesAboutHalfOfIt) {
  double changed = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const int bits = std::popcount(of({1, 2, 3}) ^ of({1, 2, 3 ^ (std::uint64_t{1} << bit)}));
    EXPECT_GT(bits, 10) << bit;
    changed += bits;
  }
  EXPECT_NEAR(changed / 64, 32, 2);
}

TEST(Fingerprint, SmallNumbersDoNotCollide) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 200; ++a) {
    for (std::uint64_t b = 0; b < 200; ++b) seen.insert(of({a, b}));
  }
  EXPECT_EQ(seen.size(), 200U * 200U);
}

TEST(Fingerprint, ReadingItDoesNotChangeIt) {
  Fingerprint fingerprint;
  fingerprint.mix(1);
  const std::uint64_t before = fingerprint.value();
  EXPECT_EQ(fingerprint.value(), before);
  fingerprint.mix(2);
  EXPECT_EQ(fingerprint.value(), of({1, 2}));
}

}  // namespace
}  // namespace vcpusim
