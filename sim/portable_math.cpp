#include "sim/portable_math.h"

#include <array>
#include <bit>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sim/check.h"

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "the bits of a run depend on IEEE 754 arithmetic, rounded to double after every operation"
#endif

namespace vcpusim::portable {
namespace {

// ln 2 = kLn2High + kLn2Low to 85 bits. The high part ends in 21 zero bits, so its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kSqrt2 = 0x1.6a09e667f3bcdp0;

constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1023;
constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << kMantissaBits) - 1;

// 2^k. REQUIRES -1022 <= k <= 1023.
double power_of_two(int k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + kExponentBias) << kMantissaBits);
}

// 2/3, 2/5, ...: the series of 2 atanh(s)/s - 2 in s^2. With s^2 <= 0.0295 the first term left out is below 2^-60.
constexpr auto kAtanh = [] {
  std::array<double, 10> c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = 2.0 / static_cast<double>(2 * i + 3);
  return c;
}();

// 1/2!, 1/3!, ...: the series of (exp(r) - 1 - r)/r^2. With |r| <= 0.347 the first term left out is below 2^-58.
constexpr auto kExp = [] {
  std::array<double, 13> c{};
  double factorial = 1;  // exact: 14! < 2^53
  for (std::size_t i = 0; i < c.size(); ++i) {
    factorial *= static_cast<double>(i + 2);
    c[i] = 1.0 / factorial;
  }
  return c;
}();

template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double sum = coefficients[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

}  // namespace

double log(double x) {
  SIM_DCHECK(x >= std::numeric_limits<double>::min() && x <= std::numeric_limits<double>::max(), "log out of range");
  // x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), where the series is shortest.
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int k = static_cast<int>(bits >> kMantissaBits) - kExponentBias;
  double mantissa = std::bit_cast<double>((bits & kMantissaMask) | std::bit_cast<std::uint64_t>(1.0));
  if (mantissa > kSqrt2) {
    mantissa *= 0.5;
    ++k;
  }
  const double f = mantissa - 1.0;
  // log(1 + f) = 2 atanh(s) = 2s + s R(s^2) with s = f / (2 + f). Since 2s = f - h + s h with h = f^2/2, the exact
  // f can be added last, and the rounding of s touches small terms only.
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double r = z * polynomial(kAtanh, z);
  const double h = 0.5 * f * f;
  const double scale = k;
  return scale * kLn2High - ((h - (s * (h + r) + scale * kLn2Low)) - f);
}

double exp(double x) {
  if (x > 709.79) return std::numeric_limits<double>::infinity();
  if (x < -745.14) return 0.0;
  // x = k ln 2 + r; `lost` is what rounding r to double dropped.
  const int k = static_cast<int>(x / kLn2High + (x < 0 ? -0.5 : 0.5));
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;
  const double lost = (high - r) - low;
  const double unscaled = 1.0 + (r + (r * r * polynomial(kExp, r) + lost));
  // In two steps, because 2^k itself may be out of range when the result is not.
  const int half = k / 2;
  return unscaled * power_of_two(half) * power_of_two(k - half);
}

}  // namespace vcpusim::portable
