// Distributions of durations, as plain values. Draws are never negative and are whole picoseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/random.h"
#include "sim/time.h"

namespace vcpusim {

class Distribution {
 public:
  enum class Shape { kConstant, kExponential, kUniform, kNormal, kLognormal, kPareto, kEmpirical };

  Distribution() = default;  // constant zero

  static Distribution constant(Duration value);
  static Distribution exponential(Duration mean);
  static Distribution uniform(Duration low, Duration high);              // REQUIRES low <= high
  static Distribution normal(Duration mean, Duration stddev);            // negative draws become zero
  static Distribution lognormal(Duration median, double sigma);          // sigma of the underlying normal, in (0, 4]
  static Distribution pareto(Duration scale, double shape);              // P(X > x) = (scale/x)^shape, shape in [0.1, 100]
  static Distribution empirical(std::vector<Duration> values);           // each equally likely; REQUIRES not empty

  Shape shape() const { return shape_; }
  bool is_constant() const { return shape_ == Shape::kConstant; }

  // Draws beyond kLongestDraw (30 days) are cut to it, so that a heavy tail cannot overflow the clock.
  Duration draw(RandomStream& random) const {
    return shape_ == Shape::kConstant ? location_ : draw_random(random);
  }

  // What the distribution was made from, for printing: (value), (mean), (low, high), (mean, stddev),
  // (median, sigma), (scale, shape) or the values.
  Duration location() const { return location_; }
  Duration spread() const { return spread_; }
  double parameter() const { return parameter_; }
  std::span<const Duration> values() const;

 private:
  Duration draw_random(RandomStream& random) const;

  Shape shape_ = Shape::kConstant;
  Duration location_{};
  Duration spread_{};
  double parameter_ = 0;
  std::shared_ptr<const std::vector<Duration>> values_;
};

}  // namespace vcpusim
