// Whether the mean of one sample is another than that of a second, and by how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace vcpusim {

enum class DifferenceTest : std::uint8_t {
  kWelch,   // the samples are independent; their variances may differ (Welch, Biometrika 34, 1947)
  kPooled,  // they are independent and have one variance: what ministat(1) does, with the three decimals of its table
  kPaired,  // value i of one belongs to value i of the other
};

// Of `b` against the base line `a`.
struct MeanDifference {
  DifferenceTest test = DifferenceTest::kWelch;
  double difference = 0;           // of the means, b - a
  double half_width = 0;           // of its confidence interval
  std::optional<double> relative;  // to the mean of `a`; none if that is 0
  // Its interval, which contains 0 if and only if that of `difference` does (Fieller, J. R. Stat. Soc. B 16, 1954);
  // none if the mean of `a` may be 0. That of kPooled, like ministat's, takes the mean of `a` as exact.
  std::optional<std::pair<double, double>> relative_interval;
  double degrees = 0;        // of freedom, for Student's t
  double pooled_stddev = 0;  // for kPooled
  bool proven = false;       // 0 is outside of the interval, and not just by the rounding of sums
  std::size_t pairs = 0;     // for kPaired
};

// Of the confidence interval, from 0.5 on and below 1.
inline constexpr double kConfidence = 0.95;

// By how many standard errors a mean can be off, at this confidence. REQUIRES degrees > 0.
double student_t(double degrees, double confidence);

// None if a sample has fewer than two values. REQUIRES finite values, and as many in each for kPaired.
std::optional<MeanDifference> compare_means(std::span<const double> a, std::span<const double> b, DifferenceTest test,
                                            double confidence = kConfidence);

}  // namespace vcpusim
