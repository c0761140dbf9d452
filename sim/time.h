// Simulated time.
//
// An instant is a SimTime, a span a Duration; both count picoseconds in 64 signed bits (106 days), because
// cache-line transfers are fractions of a nanosecond. Instant + span compiles, instant + instant does not.
// Cycles are a third type: to_duration and to_cycles are the only bridge between them and time.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

namespace vcpusim {

using Duration = std::chrono::duration<std::int64_t, std::pico>;

// The simulation's own clock. It has no now(): the engine of one run owns the present (see Engine::now).
struct SimClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SimClock, Duration>;
  static constexpr bool is_steady = true;
};

using SimTime = SimClock::time_point;

inline constexpr SimTime kTimeZero{};
inline constexpr SimTime kNever = SimTime::max();

// A count of processor cycles; meaningless without a Frequency.
struct Cycles {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(const Cycles&, const Cycles&) = default;
};

// Cycles per second, > 0. Whole kilohertz cover every published clock.
struct Frequency {
  std::int64_t kilohertz = 1'000'000;
  friend constexpr auto operator<=>(const Frequency&, const Frequency&) = default;
};

namespace detail {
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

// a * b / c, rounded up, saturating at the largest 64-bit value. REQUIRES a, b >= 0, c > 0.
constexpr std::int64_t mul_div_up(std::int64_t a, std::int64_t b, std::int64_t c) {
  const Int128 quotient = (static_cast<Int128>(a) * b + (c - 1)) / c;
  constexpr Int128 kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(quotient < kMax ? quotient : kMax);
}

inline constexpr std::int64_t kPicosecondsTimesKilohertz = 1'000'000'000;  // one cycle at 1 kHz lasts 1e9 ps
}  // namespace detail

// Both round up: work never ends early, and a window of so many cycles never closes early.
constexpr Duration to_duration(Cycles c, Frequency f) {
  return Duration{detail::mul_div_up(c.count, detail::kPicosecondsTimesKilohertz, f.kilohertz)};
}
constexpr Cycles to_cycles(Duration d, Frequency f) {
  return Cycles{detail::mul_div_up(d.count(), f.kilohertz, detail::kPicosecondsTimesKilohertz)};
}

// For reports only: nothing that decides an order may use a floating-point time.
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }
constexpr double to_microseconds(Duration d) { return static_cast<double>(d.count()) * 1e-6; }

}  // namespace vcpusim
