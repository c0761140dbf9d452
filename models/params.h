// How a model describes its parameters: once, in code, for everybody.
//
// A configurable thing has a method describe(ParamVisitor&) that names each of its parameters with its storage,
// range and help. Loading a scenario, printing the resolved one, the JSON Schema, `list` and `describe` are all
// visitors, so a parameter that a model has cannot be missing from any of them. The value that a field holds
// when describe is called is its default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/distribution.h"
#include "sim/time.h"

namespace vcpusim {

class Operation;
using Program = std::vector<std::shared_ptr<const Operation>>;

template <class T>
struct Range {
  T min;
  T max;
};

using DurationRange = Range<Duration>;
using IntegerRange = Range<std::int64_t>;
using RealRange = Range<double>;

// Longest duration a scenario may name: 30 days, so that sums of a few stay inside SimTime.
inline constexpr Duration kLongestDuration = std::chrono::hours(24 * 30);
inline constexpr DurationRange kAnyDuration{Duration::zero(), kLongestDuration};
inline constexpr DurationRange kPositiveDuration{Duration{1}, kLongestDuration};

// How often a body runs. kForever: until the simulation stops.
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

struct Branch {
  std::int64_t weight = 1;  // in [1, 1'000'000]; a probability is a weight over the sum of the weights
  Program body;
};

class ParamVisitor {
 public:
  virtual ~ParamVisitor() = default;

  virtual void duration(std::string_view key, Duration& value, DurationRange range, std::string_view help) = 0;
  // A span that the hardware counts in cycles. Scenarios may give it in either unit.
  virtual void cycles(std::string_view key, Cycles& value, IntegerRange range, std::string_view help) = 0;
  virtual void integer(std::string_view key, std::int64_t& value, IntegerRange range, std::string_view help) = 0;
  virtual void real(std::string_view key, double& value, RealRange range, std::string_view help) = 0;
  virtual void flag(std::string_view key, bool& value, std::string_view help) = 0;

  // One of a few names; `Enum` counts from 0 in the order of `names`.
  template <class Enum>
  void choice(std::string_view key, Enum& value, std::span<const std::string_view> names, std::string_view help) {
    auto index = static_cast<std::size_t>(value);
    choice_index(key, index, names, help);
    value = static_cast<Enum>(index);
  }

  // A nested object with parameters of its own.
  virtual void group(std::string_view key, std::string_view help,
                     const std::function<void(ParamVisitor&)>& describe_fields) = 0;

 protected:
  virtual void choice_index(std::string_view key, std::size_t& index, std::span<const std::string_view> names,
                            std::string_view help) = 0;
};

// What operations of a program have beside plain parameters. A key that is visited through `optional_*` may be
// absent; every other key of an operation is required.
class OperationVisitor : public ParamVisitor {
 public:
  virtual void distribution(std::string_view key, Distribution& value, std::string_view help) = 0;
  virtual void optional_distribution(std::string_view key, Distribution& value, std::string_view help) = 0;
  virtual void body(std::string_view key, Program& value, std::string_view help) = 0;
  virtual void optional_body(std::string_view key, Program& value, std::string_view help) = 0;
  virtual void branches(std::string_view key, std::vector<Branch>& value, std::string_view help) = 0;
  // A positive count or the word "forever" (kForever).
  virtual void repetitions(std::string_view key, std::int64_t& value, std::string_view help) = 0;
  // A lock of the guest, by name; becomes its index in GuestConfig::locks.
  virtual void lock(std::string_view key, std::size_t& index, std::string_view help) = 0;
  // The same, of a kind that is a grace-period domain.
  virtual void rcu_domain(std::string_view key, std::size_t& index, std::string_view help) { lock(key, index, help); }
  // Says that the operation gives up the vCPU, which sections under a spinlock must not.
  virtual void sleeps() {}
  // A meeting point of the guest, by name; becomes an index in GuestConfig::barriers, added on first mention.
  virtual void barrier(std::string_view key, std::size_t& index, std::string_view help) = 0;
  // Exactly one of these keys must be present.
  virtual void exactly_one_of(std::span<const std::string_view> keys) = 0;
};

}  // namespace vcpusim
