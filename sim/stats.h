// Statistics of a run: durations (LatencyHistogram), states over time (TimeWeighted), and samples of real numbers,
// such as one result from each of several replications (Summary).
//
// Everything that is counted during a run is counted in integers, so sums are exact and do not depend on the order
// of addition or merging. Floating point appears only in what is reported.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/check.h"
#include "sim/time.h"

namespace vcpusim {

// A sample of independent values. All fields are 0 for an empty sample.
struct Summary {
  std::size_t count = 0;
  double mean = 0;
  double variance = 0;  // of the population, estimated without bias (n - 1); 0 for fewer than two values
  double min = 0;
  double median = 0;  // of an even number of values, the mean of the middle two
  double max = 0;

  double stddev() const;
  // Of the mean. A confidence interval is mean +- t * standard_error(), with Student's t of count - 1 degrees.
  double standard_error() const;
};

// REQUIRES finite values. Cost: O(values.size()) time and memory.
Summary summarise(std::span<const double> values);

// A histogram of non-negative durations with log-linear classes: exact below 128 ps, and 64 classes of equal width for
// each factor of two above. Count, sum, min and max are exact; quantiles are off by at most 1/128 (0.8 %) of their
// value.
//
// Cost: record() about 2 ns. Memory: 8 bytes a class up to the longest duration seen, so 12 KiB for 1 ms and
// 18 KiB for 1 s; allocated when a duration passes a power of two for the first time.
class LatencyHistogram {
 public:
  // REQUIRES value >= 0.
  void record(Duration value) {
    const std::size_t index = class_of(value);
    if (index >= classes_.size()) [[unlikely]]
      grow(value);
    ++classes_[index];
    ++count_;
    sum_ += value.count();
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  std::uint64_t count() const { return count_; }
  detail::Int128 sum_ps() const { return sum_; }

  // All zero when nothing was recorded.
  Duration min() const { return count_ > 0 ? min_ : Duration::zero(); }
  Duration max() const { return max_; }
  Duration mean() const;  // to the nearest picosecond

  // A duration that at least the share `q` of the records does not exceed, to within the error above: 0.99 for p99.
  // Exactly min() and max() for the first and the last record. REQUIRES q in [0, 1]; it is rounded to a millionth, so
  // that 0.999 of 1000 records are 999 and not 1000.
  Duration quantile(double q) const;

  void merge(const LatencyHistogram& other);
  // Forgets all records, at the end of a warm-up say; keeps the memory.
  void clear();

 private:
  static constexpr unsigned kClassBits = 6;

  // Values below 2^(kClassBits + 1) have a class each; above, a class is the exponent and the kClassBits bits that
  // follow the leading one. A negative value gets a class that never exists.
  static std::size_t class_of(Duration value) {
    const auto v = static_cast<std::uint64_t>(value.count());
    const unsigned width = static_cast<unsigned>(std::bit_width(v | ((std::uint64_t{2} << kClassBits) - 1)));
    const unsigned shift = width - (kClassBits + 1);
    return (std::size_t{shift} << kClassBits) + static_cast<std::size_t>(v >> shift);
  }
  static Duration middle_of(std::size_t index);

  void grow(Duration value);

  std::vector<std::uint64_t> classes_;
  std::uint64_t count_ = 0;
  detail::Int128 sum_ = 0;
  Duration min_ = Duration::max();
  Duration max_ = Duration::zero();
};

// The integral over simulated time of a state that is an integer and changes in steps: the length of a queue, the
// number of busy processors. Exact. Cost: set() about 2 ns.
class TimeWeighted {
 public:
  explicit TimeWeighted(std::int64_t state = 0, SimTime start = kTimeZero)
      : state_(state), start_(start), last_(start) {}

  // From `now` on the state is `state`. REQUIRES that time does not go back.
  void set(SimTime now, std::int64_t state) {
    advance(now);
    state_ = state;
  }
  void add(SimTime now, std::int64_t change) { set(now, state_ + change); }

  std::int64_t state() const { return state_; }

  // State times picoseconds, from the start (or last restart) to `now`. REQUIRES that time does not go back.
  detail::Int128 integral(SimTime now) const { return integral_ + area(now); }

  // The time average; the present state if no time has passed.
  double mean(SimTime now) const;

  // Forgets the past, at the end of a warm-up say; the state remains.
  void restart(SimTime now);

 private:
  detail::Int128 area(SimTime now) const { return detail::Int128{state_} * (now - last_).count(); }
  void advance(SimTime now) {
    SIM_DCHECK(now >= last_, "time goes back");
    integral_ += area(now);
    last_ = now;
  }

  std::int64_t state_;
  SimTime start_;
  SimTime last_;
  detail::Int128 integral_ = 0;
};

}  // namespace vcpusim
