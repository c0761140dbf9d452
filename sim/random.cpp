#include "sim/random.h"

#include <Random123/philox.h>

#include <bit>
#include <cmath>

#include "sim/check.h"
#include "sim/portable_math.h"

namespace vcpusim {
namespace {

using Philox = r123::Philox4x64;  // ten rounds
constexpr std::size_t kBlockWords = 4;

__extension__ using Uint128 = unsigned __int128;

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The ziggurat (Marsaglia and Tsang, J. Statistical Software 5(8), 2000): the area under a falling density f, cut
// into layers of equal area. Layer i > 0 spans heights f(x[i]) to f(x[i-1]) and widths 0 to x[i], so its part left
// of x[i-1] lies wholly under the curve: a uniform point there needs no look at f, and that happens in 99 % of the
// draws. Layer 0 is the rectangle below f(x[last]) plus the tail beyond x[last].
//
// Nothing here is a literal: the widths follow from f, its inverse and its tail by the condition that the topmost
// layer ends at f(0) = 1.
class Ziggurat {
 public:
  static constexpr std::size_t kLayers = 256;
  static constexpr std::uint64_t kSpareBit = kLayers;  // between the layer's bits and the fraction's
  static constexpr unsigned kFractionBits = 53;

  // f with f(0) = 1; inverse(f(x)) = x; tail(x) = area under f beyond x. `low` and `high` enclose x[last].
  template <class Density, class Inverse, class Tail>
  Ziggurat(Density f, Inverse inverse, Tail tail, double low, double high) {
    // From the base upwards; too small an x[last] makes layers so thick that they do not all fit below f(0).
    std::array<double, kLayers> x{};
    const auto fill = [&](double last) {
      double height = f(last);
      const double area = last * height + tail(last);
      x[kLayers - 1] = last;
      for (std::size_t i = kLayers - 1; i > 0; --i) {
        height += area / x[i];
        if (height > 1.0) return false;
        x[i - 1] = inverse(height);
      }
      return true;
    };
    for (;;) {
      const double middle = 0.5 * (low + high);
      if (middle <= low || middle >= high) break;
      (fill(middle) ? high : low) = middle;
    }
    fill(high);
    x[0] = 0.0;
    tail_start_ = high;
    const double base = (high * f(high) + tail(high)) / f(high);
    for (std::size_t i = 0; i < kLayers; ++i) {
      const double width = i == 0 ? base : x[i];
      const double inner = i == 0 ? high : x[i - 1];
      layers_[i] = {.sure = static_cast<std::int64_t>(inner / width * 0x1.0p53), .scale = width * 0x1.0p-53};
      height_[i] = f(x[i]);
    }
  }

  struct Point {
    double x;           // uniform over the width of the layer
    std::size_t layer;  // each equally likely
    bool sure;          // under the curve at any height within the layer
  };
  // The point that 64 uniform bits pick; kSpareBit is not used.
  Point point(std::uint64_t random) const {
    const std::size_t i = random % kLayers;
    const auto fraction = static_cast<std::int64_t>(random >> (64 - kFractionBits));
    return {static_cast<double>(fraction) * layers_[i].scale, i, fraction < layers_[i].sure};
  }
  // The height at which `share` in (0, 1) divides layer i > 0.
  double height(std::size_t i, double share) const { return height_[i] + share * (height_[i - 1] - height_[i]); }
  double tail_start() const { return tail_start_; }

 private:
  struct Layer {
    std::int64_t sure;  // fractions below this lie under the curve
    double scale;       // width / 2^53
  };
  std::array<Layer, kLayers> layers_;
  std::array<double, kLayers> height_;  // of the lower edge of a layer above the base, and 1
  double tail_start_;
};

[[gnu::noinline]] Ziggurat make_exponential_ziggurat() {
  const auto density = [](double x) { return portable::exp(-x); };
  return {density, [](double y) { return -portable::log(y); }, density, 1.0, 20.0};
}

double bell(double x) { return portable::exp(-0.5 * x * x); }

// The area under bell() beyond x, by Laplace's continued fraction bell(x) / (x + 1/(x + 2/(x + 3/(x + ...)))), which
// at x >= 2 has long converged after 200 terms.
double bell_tail(double x) {
  double fraction = x;
  for (int n = 200; n > 0; --n) fraction = x + n / fraction;
  return bell(x) / fraction;
}

[[gnu::noinline]] Ziggurat make_normal_ziggurat() {
  return {bell, [](double y) { return std::sqrt(-2.0 * portable::log(y)); }, bell_tail, 2.0, 8.0};
}

// Made on first use, in about half a millisecond each, and never changed. The makers are kept out of line, so that
// these are small enough to disappear into the draws.
inline const Ziggurat& exponential_ziggurat() {
  static const Ziggurat ziggurat = make_exponential_ziggurat();
  return ziggurat;
}
inline const Ziggurat& normal_ziggurat() {
  static const Ziggurat ziggurat = make_normal_ziggurat();
  return ziggurat;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view entity, std::string_view purpose)
    : key_{fnv1a(entity), fnv1a(purpose)}, seed_(seed), next_(kWords) {}

void RandomStream::refill() {
  const Philox::key_type key{{key_[0], key_[1]}};
  for (std::size_t at = 0; at < words_.size(); at += kBlockWords) {
    const Philox::ctr_type block = Philox()(Philox::ctr_type{{block_++, seed_, 0, 0}}, key);
    for (std::size_t i = 0; i < kBlockWords; ++i) words_[at + i] = block[i];
  }
  next_ = 0;
}

// Lemire, "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019: the high half of bits * bound,
// drawn again where the low half falls into the part that would favour some results.
std::uint64_t RandomStream::below(std::uint64_t bound) {
  SIM_DCHECK(bound > 0, "an empty range");
  Uint128 product = Uint128{bits()} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t unfair = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < unfair) product = Uint128{bits()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double RandomStream::exponential() {
  const Ziggurat::Point point = exponential_ziggurat().point(bits());
  if (point.sure) return point.x;
  return exponential_edge(point.layer, point.x);
}

// The draw that continues with a point which may lie outside of the curve.
double RandomStream::exponential_edge(std::size_t layer, double x) {
  const Ziggurat& ziggurat = exponential_ziggurat();
  double offset = 0;
  for (;;) {
    if (layer == 0) {
      offset += ziggurat.tail_start();  // the tail of an exponential is the exponential again
    } else if (ziggurat.height(layer, unit()) < portable::exp(-x)) {
      return offset + x;
    }
    const Ziggurat::Point point = ziggurat.point(bits());
    if (point.sure) return offset + point.x;
    layer = point.layer;
    x = point.x;
  }
}

double RandomStream::normal() {
  const std::uint64_t random = bits();
  const Ziggurat::Point point = normal_ziggurat().point(random);
  const double magnitude = point.sure ? point.x : half_normal_edge(point.layer, point.x);
  // Set, not chosen: no branch can predict the sign.
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | (random & Ziggurat::kSpareBit) << 55);
}

double RandomStream::half_normal_edge(std::size_t layer, double x) {
  const Ziggurat& ziggurat = normal_ziggurat();
  for (;;) {
    if (layer == 0) {
      // Marsaglia's tail: an exponential of the rate at its start, thinned to the bell.
      for (;;) {
        const double beyond = exponential() / ziggurat.tail_start();
        if (2.0 * exponential() > beyond * beyond) return ziggurat.tail_start() + beyond;
      }
    }
    if (ziggurat.height(layer, unit()) < bell(x)) return x;
    const Ziggurat::Point point = ziggurat.point(bits());
    if (point.sure) return point.x;
    layer = point.layer;
    x = point.x;
  }
}

}  // namespace vcpusim
