#include "sim/stats.h"

#include <algorithm>
#include <boost/accumulators/accumulators.hpp>
#include <boost/accumulators/statistics/count.hpp>
#include <boost/accumulators/statistics/max.hpp>
#include <boost/accumulators/statistics/mean.hpp>
#include <boost/accumulators/statistics/min.hpp>
#include <boost/accumulators/statistics/stats.hpp>
#include <boost/accumulators/statistics/variance.hpp>
#include <cmath>

namespace vcpusim {
namespace {

namespace acc = boost::accumulators;

// The immediate forms update mean and variance value by value; the lazy ones subtract two large sums of squares.
using Moments = acc::accumulator_set<
    double, acc::stats<acc::tag::count, acc::tag::immediate_mean, acc::tag::variance, acc::tag::min, acc::tag::max>>;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return *std::max_element(values.begin(), middle) / 2 + *middle / 2;
}

}  // namespace

double Summary::stddev() const { return std::sqrt(variance); }

double Summary::standard_error() const { return count > 0 ? std::sqrt(variance / static_cast<double>(count)) : 0.0; }

Summary summarise(std::span<const double> values) {
  if (values.empty()) return {};
  Moments moments;
  for (const double value : values) {
    SIM_CHECK(std::isfinite(value), "a sample that is not a number");
    moments(value);
  }
  const auto n = static_cast<double>(values.size());
  return {.count = acc::count(moments),
          .mean = acc::mean(moments),
          .variance = values.size() > 1 ? acc::variance(moments) * (n / (n - 1)) : 0.0,
          .min = acc::min(moments),
          .median = median_of({values.begin(), values.end()}),
          .max = acc::max(moments)};
}

void LatencyHistogram::grow(Duration value) {
  SIM_CHECK(value >= Duration::zero(), "a negative duration");
  // To the end of the power of two, so that growing is rare.
  classes_.resize((class_of(value) | ((std::size_t{1} << kClassBits) - 1)) + 1);
}

Duration LatencyHistogram::middle_of(std::size_t index) {
  constexpr std::size_t kClasses = std::size_t{1} << kClassBits;
  if (index < 2 * kClasses) return Duration{static_cast<Duration::rep>(index)};
  const std::size_t shift = index / kClasses - 1;
  const auto low = static_cast<std::uint64_t>(kClasses + index % kClasses) << shift;
  return Duration{static_cast<Duration::rep>(low + (std::uint64_t{1} << shift) / 2)};
}

Duration LatencyHistogram::mean() const {
  if (count_ == 0) return Duration::zero();
  return Duration{static_cast<Duration::rep>((sum_ + count_ / 2) / count_)};
}

Duration LatencyHistogram::quantile(double q) const {
  SIM_CHECK(q >= 0 && q <= 1, "a quantile outside of [0, 1]");
  if (count_ == 0) return Duration::zero();
  constexpr std::uint64_t kMillion = 1'000'000;
  const detail::Int128 share = static_cast<std::int64_t>(q * 1e6 + 0.5);
  const auto rank = static_cast<std::uint64_t>((share * count_ + (kMillion - 1)) / kMillion);
  if (rank <= 1) return min_;
  if (rank == count_) return max_;
  std::size_t i = 0;
  for (std::uint64_t passed = classes_[0]; passed < rank; passed += classes_[i]) ++i;
  return std::clamp(middle_of(i), min_, max_);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  if (classes_.size() < other.classes_.size()) classes_.resize(other.classes_.size());
  for (std::size_t i = 0; i < other.classes_.size(); ++i) classes_[i] += other.classes_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void LatencyHistogram::clear() {
  std::ranges::fill(classes_, 0);
  count_ = 0;
  sum_ = 0;
  min_ = Duration::max();
  max_ = Duration::zero();
}

double TimeWeighted::mean(SimTime now) const {
  const auto elapsed = (now - start_).count();
  if (elapsed == 0) return static_cast<double>(state_);
  return static_cast<double>(integral(now)) / static_cast<double>(elapsed);
}

void TimeWeighted::restart(SimTime now) {
  SIM_CHECK(now >= last_, "time goes back");
  integral_ = 0;
  start_ = last_ = now;
}

}  // namespace vcpusim
