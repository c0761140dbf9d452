#include "sim/distribution.h"

#include <cstdint>
#include <utility>

#include "sim/check.h"
#include "sim/portable_math.h"

namespace vcpusim {
namespace {

bool drawable(Duration d) { return d >= Duration::zero() && d <= kLongestDraw; }

double picoseconds(Duration d) { return static_cast<double>(d.count()); }

// To the nearest, halves up. The comparisons come first: a conversion out of range would be undefined.
Duration rounded(double ps) {
  if (ps <= 0) return Duration::zero();
  if (ps >= picoseconds(kLongestDraw)) return kLongestDraw;
  return Duration{static_cast<Duration::rep>(ps + 0.5)};
}

}  // namespace

Distribution::Distribution(Shape shape, Duration location, Duration spread, double parameter)
    : shape_(shape), location_(location), spread_(spread), parameter_(parameter) {
  SIM_CHECK(drawable(location) && drawable(spread), "a duration outside of [0, 30 days]");
}

Distribution Distribution::constant(Duration value) { return {Shape::kConstant, value, {}, 0}; }

Distribution Distribution::exponential(Duration mean) { return {Shape::kExponential, mean, {}, 0}; }

Distribution Distribution::uniform(Duration low, Duration high) {
  SIM_CHECK(low <= high, "low above high");
  return {Shape::kUniform, low, high, 0};
}

Distribution Distribution::normal(Duration mean, Duration stddev) { return {Shape::kNormal, mean, stddev, 0}; }

Distribution Distribution::lognormal(Duration median, double sigma) {
  SIM_CHECK(sigma > 0 && sigma <= 4, "sigma outside of (0, 4]");
  return {Shape::kLognormal, median, {}, sigma};
}

Distribution Distribution::pareto(Duration scale, double shape) {
  SIM_CHECK(shape >= 0.1 && shape <= 100, "shape outside of [0.1, 100]");
  return {Shape::kPareto, scale, {}, shape};
}

Distribution Distribution::empirical(std::vector<Duration> values) {
  SIM_CHECK(!values.empty(), "no values");
  for (const Duration value : values) SIM_CHECK(drawable(value), "a duration outside of [0, 30 days]");
  Distribution d(Shape::kEmpirical, {}, {}, 0);
  d.values_ = std::make_shared<const std::vector<Duration>>(std::move(values));
  return d;
}

std::span<const Duration> Distribution::values() const {
  return values_ ? std::span<const Duration>(*values_) : std::span<const Duration>();
}

Duration Distribution::draw_random(RandomStream& random) const {
  switch (shape_) {
    case Shape::kConstant:
      return location_;
    case Shape::kExponential:
      return rounded(picoseconds(location_) * random.exponential());
    case Shape::kUniform:
      return location_ + Duration{static_cast<Duration::rep>(
                             random.below(static_cast<std::uint64_t>((spread_ - location_).count()) + 1))};
    case Shape::kNormal:
      return rounded(picoseconds(location_) + picoseconds(spread_) * random.normal());
    case Shape::kLognormal:
      return rounded(picoseconds(location_) * portable::exp(parameter_ * random.normal()));
    case Shape::kPareto:
      // The logarithm of X/scale is exponential with mean 1/shape.
      return rounded(picoseconds(location_) * portable::exp(random.exponential() / parameter_));
    case Shape::kEmpirical:
      return (*values_)[random.below(values_->size())];
  }
  return location_;  // not reached
}

}  // namespace vcpusim
