// Confidence intervals for tests of theory.
#pragma once

#include <boost/math/distributions/students_t.hpp>
#include <ostream>
#include <span>

#include "sim/stats.h"

namespace vcpusim::testing {

struct Interval {
  double low;
  double high;
  bool contains(double value) const { return low <= value && value <= high; }
  double width() const { return high - low; }
  double middle() const { return (low + high) / 2; }
  friend std::ostream& operator<<(std::ostream& out, const Interval& i) {
    return out << "[" << i.low << ", " << i.high << "]";
  }
};

// Of the mean of a sample of independent values.
inline Interval confidence_interval(std::span<const double> values, double confidence) {
  const Summary summary = summarise(values);
  const boost::math::students_t t(static_cast<double>(values.size() - 1));
  const double half = boost::math::quantile(t, (1 + confidence) / 2) * summary.standard_error();
  return {summary.mean - half, summary.mean + half};
}

}  // namespace vcpusim::testing
