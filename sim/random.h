// Random streams: one per (seed, entity, purpose), independent of each other and of the order of their creation.
//
// Counter-based (Philox 4x64-10 of Random123: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). Adding an entity never changes the draws of another, so that two configurations run with
// the same seed share their random numbers wherever they share an entity. The bits are the same on every
// machine, compiler and build type.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace vcpusim {

class RandomStream {
 public:
  // `entity` is a path that names who draws ("vms.web.tasks.make.3"), `purpose` what for ("user").
  RandomStream(std::uint64_t seed, std::string_view entity, std::string_view purpose);

  // 64 independent, uniform bits.
  std::uint64_t bits() {
    if (next_ == block_.size()) refill();
    return block_[next_++];
  }

  // Uniform in [0, bound), exactly (no modulo bias). REQUIRES bound > 0.
  std::uint64_t below(std::uint64_t bound);

  // Uniform in (0, 1): odd multiples of 2^-54, so neither end is ever drawn.
  double unit() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1.0p-53; }

  // Standard exponential and standard normal variates, from correctly rounded operations only (sim/portable_math.h).
  double exponential();
  double normal();

 private:
  void refill();

  std::array<std::uint64_t, 2> key_;
  std::uint64_t counter_ = 0;
  std::array<std::uint64_t, 4> block_{};
  std::size_t next_ = 4;
};

}  // namespace vcpusim
