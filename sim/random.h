// Random streams: one per (seed, entity, purpose), independent of each other and of the order of their creation.
//
// Counter-based (Philox 4x64-10 of Random123: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). Adding an entity never changes the draws of another, so that two configurations run with
// the same seed share their random numbers wherever they share an entity. The bits are the same on every
// machine, compiler and build type.
//
//   key      64-bit FNV-1a of the entity's name, 64-bit FNV-1a of the purpose
//   counter  number of the block, seed, 0, 0
//
// So two streams differ in key or counter whenever their seeds differ or either of the two names does; the one
// exception, two names with the same hash, has odds of 1 in 10^7 among a million names. A stream lasts for 2^64 blocks.
//
// Cost: bits() about 3.5 ns, below(), exponential() and normal() 6 ns, a new stream 30 ns; 104 bytes a stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vcpusim {

class RandomStream {
 public:
  // `entity` is a path that names who draws ("vms.web.tasks.make.3"), `purpose` what for ("user").
  RandomStream(std::uint64_t seed, std::string_view entity, std::string_view purpose);

  // 64 independent, uniform bits.
  std::uint64_t bits() {
    if (next_ == kWords) refill();
    return words_[next_++];
  }

  // Uniform in [0, bound), exactly (no modulo bias). REQUIRES bound > 0.
  std::uint64_t below(std::uint64_t bound);

  // Uniform in (0, 1): odd multiples of 2^-53, so neither end is ever drawn.
  double unit() { return (static_cast<double>(bits() >> 12) + 0.5) * 0x1.0p-52; }

  // Standard exponential (mean 1, never negative) and standard normal (mean 0, variance 1) variates.
  double exponential();
  double normal();

 private:
  // Two blocks at a time: Philox is a chain of multiplications, and two chains overlap.
  static constexpr std::size_t kWords = 8;

  void refill();
  double exponential_edge(std::size_t layer, double x);
  double half_normal_edge(std::size_t layer, double x);

  std::array<std::uint64_t, 2> key_;
  std::uint64_t seed_;
  std::uint64_t block_ = 0;  // the next to be computed
  std::size_t next_;
  std::array<std::uint64_t, kWords> words_;
};

}  // namespace vcpusim
