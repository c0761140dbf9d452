// A 64-bit fingerprint of a run: mix in what happened, in the order in which it happened, and compare value() with
// that of another run, machine, compiler or version.
//
// Each step is a bijection of the state for a given input, and of the input for a given state. So two sequences of
// the same length that differ in one place never have the same fingerprint, and others do with odds of 2^-64. It is
// not a cryptographic hash. Cost: about 1 ns a value.
#pragma once

#include <cstdint>

namespace vcpusim {

class Fingerprint {
 public:
  void mix(std::uint64_t value) {
    // The multiplication carries each bit upwards, the shift brings the well-mixed high half down again.
    state_ = (state_ ^ value) * kMultiplier;
    state_ ^= state_ >> 32;
  }

  // Of all values mixed in so far.
  std::uint64_t value() const {
    Fingerprint end = *this;
    end.mix(0);
    end.mix(0);
    return end.state_;
  }

 private:
  // 2^64 divided by the golden ratio, made odd: a dense bit pattern without structure, also the start because the
  // state 0 would not notice leading zeros.
  static constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;

  std::uint64_t state_ = kMultiplier;
};

}  // namespace vcpusim
