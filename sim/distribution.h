// Distributions of durations, as plain values. Draws are never negative and are whole picoseconds.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "sim/random.h"
#include "sim/time.h"

namespace vcpusim {

// The longest draw, 30 days: a heavy tail cannot overflow the clock.
inline constexpr Duration kLongestDraw = std::chrono::days{30};

class Distribution {
 public:
  enum class Shape { kConstant, kExponential, kUniform, kNormal, kLognormal, kPareto, kEmpirical };

  Distribution() = default;  // constant zero

  // REQUIRES every duration in [0, kLongestDraw].
  static Distribution constant(Duration value);
  static Distribution exponential(Duration mean);
  static Distribution uniform(Duration low, Duration high);      // both ends included; REQUIRES low <= high
  static Distribution normal(Duration mean, Duration stddev);    // negative draws become zero
  static Distribution lognormal(Duration median, double sigma);  // sigma of the underlying normal, in (0, 4]
  static Distribution pareto(Duration scale, double shape);      // P(X > x) = (scale/x)^shape, shape in [0.1, 100]
  static Distribution empirical(std::vector<Duration> values);   // each equally likely; REQUIRES not empty

  Shape shape() const { return shape_; }
  bool is_constant() const { return shape_ == Shape::kConstant; }

  // Rounded to the nearest picosecond; draws beyond kLongestDraw are cut to it. A constant uses no random numbers.
  // Cost: exponential about 8 ns, the others up to 40 ns.
  Duration draw(RandomStream& random) const { return shape_ == Shape::kConstant ? location_ : draw_random(random); }

  // What the distribution was made from, for printing: (value), (mean), (low, high), (mean, stddev),
  // (median, sigma), (scale, shape) or the values.
  Duration location() const { return location_; }
  Duration spread() const { return spread_; }      // high or stddev, else 0
  double parameter() const { return parameter_; }  // sigma or shape, else 0
  std::span<const Duration> values() const;        // empty unless empirical; valid as long as the distribution

 private:
  Distribution(Shape shape, Duration location, Duration spread, double parameter);

  Duration draw_random(RandomStream& random) const;

  Shape shape_ = Shape::kConstant;
  Duration location_{};
  Duration spread_{};
  double parameter_ = 0;
  std::shared_ptr<const std::vector<Duration>> values_;  // shared: a distribution is copied into every task
};

}  // namespace vcpusim
