#include "scenarios/mean_difference.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "sim/check.h"
#include "sim/stats.h"

namespace vcpusim {
namespace {

// Not through long double, of which there is less under valgrind and on some machines.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

// The last bits of a quantile depend on the maths library; so many decimals do not.
double rounded(double value, double per_unit) { return std::round(value * per_unit) / per_unit; }

double exact_t(double degrees, double confidence) {
  const boost::math::students_t_distribution<double, Policy> student(degrees);
  return boost::math::quantile(boost::math::complement(student, (1 - confidence) / 2));
}

// ministat has no rows for more than a hundred degrees of freedom.
double table_t(double degrees, double confidence) {
  if (degrees <= 100) return rounded(exact_t(degrees, confidence), 1e3);
  const boost::math::normal_distribution<double, Policy> normal;
  return rounded(boost::math::quantile(boost::math::complement(normal, (1 - confidence) / 2)), 1e3);
}

double square(double x) { return x * x; }

// Variances and covariance of the means of two samples.
struct MeanErrors {
  double a = 0;
  double b = 0;
  double both = 0;
};

// Of b / a - 1. What is inside of it are the ratios r for which the mean of b - r a is not proven to be other than 0.
std::optional<std::pair<double, double>> fieller_interval(double a, double b, const MeanErrors& errors, double t) {
  const double p = square(a) - square(t) * errors.a;
  const double q = a * b - square(t) * errors.both;
  const double r = square(b) - square(t) * errors.b;
  if (!(p > 0)) return {};
  const double root = std::sqrt(std::max(0.0, square(q) - p * r));
  return {{(q - root) / p - 1, (q + root) / p - 1}};
}

}  // namespace

double student_t(double degrees, double confidence) { return rounded(exact_t(degrees, confidence), 1e6); }

std::optional<MeanDifference> compare_means(std::span<const double> a, std::span<const double> b, DifferenceTest test,
                                            double confidence) {
  if (a.size() < 2 || b.size() < 2) return {};
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const Summary x = summarise(a);
  const Summary y = summarise(b);
  MeanErrors errors{.a = x.variance / n, .b = y.variance / m};
  double error = std::sqrt(errors.a + errors.b);
  double t = 0;
  MeanDifference result;
  switch (test) {
    case DifferenceTest::kWelch: {
      const double down = square(errors.a) / (n - 1) + square(errors.b) / (m - 1);
      result.degrees = down > 0 ? square(errors.a + errors.b) / down : n + m - 2;
      t = student_t(result.degrees, confidence);
      break;
    }
    case DifferenceTest::kPooled:
      result.degrees = n + m - 2;
      result.pooled_stddev = std::sqrt(((n - 1) * x.variance + (m - 1) * y.variance) / result.degrees);
      error = result.pooled_stddev * std::sqrt(1 / n + 1 / m);
      t = table_t(result.degrees, confidence);
      break;
    case DifferenceTest::kPaired: {
      SIM_CHECK(a.size() == b.size(), "pairs of which one half is missing");
      std::vector<double> differences;
      for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(b[i] - a[i]);
      error = summarise(differences).standard_error();
      errors.both = (errors.a + errors.b - square(error)) / 2;
      result.pairs = a.size();
      result.degrees = n - 1;
      t = student_t(result.degrees, confidence);
      break;
    }
  }
  result.test = test;
  result.difference = y.mean - x.mean;
  result.half_width = t * error;
  if (x.mean != 0) {
    result.relative = result.difference / x.mean;
    if (test == DifferenceTest::kPooled) {
      const double width = result.half_width / std::abs(x.mean);
      result.relative_interval = {*result.relative - width, *result.relative + width};
    } else {
      result.relative_interval = fieller_interval(x.mean, y.mean, errors, t);
    }
  }
  const double rounding = 1e-12 * std::max(std::abs(x.mean), std::abs(y.mean));
  result.proven = std::abs(result.difference) > std::max(result.half_width, rounding);
  return result;
}

}  // namespace vcpusim
