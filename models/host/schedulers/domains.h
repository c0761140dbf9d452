// Scheduling domains: the nested sets of pCPUs within which Linux balances load (kernel/sched/topology.c).
//
// A domain spans a core (its SMT siblings), a socket or the machine, and is divided into groups: the domains one level
// below, or single pCPUs. Levels that would have one group only do not exist. pCPUs are numbered such that each span
// is a range.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/machine/machine.h"
#include "models/machine/pcpu_set.h"

namespace vcpusim {

struct PcpuRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
  bool contains(PcpuId pcpu) const { return begin <= index_of(pcpu) && index_of(pcpu) < end; }
};

// A set of pCPUs that is quick to search; all masks of a host have the same size.
class PcpuMask {
 public:
  PcpuMask() = default;
  explicit PcpuMask(std::uint32_t pcpus) : words_((pcpus + 63) / 64) {}
  PcpuMask(std::uint32_t pcpus, const PcpuSet& set) : PcpuMask(pcpus) {
    for (std::uint32_t i = 0; i < pcpus; ++i) {
      if (set.contains(PcpuId{i})) insert(i);
    }
  }

  void insert(std::uint32_t i) { words_[i / 64] |= std::uint64_t{1} << i % 64; }
  void erase(std::uint32_t i) { words_[i / 64] &= ~(std::uint64_t{1} << i % 64); }
  bool contains(std::uint32_t i) const { return (words_[i / 64] >> i % 64 & 1) != 0; }
  bool contains(PcpuId pcpu) const { return contains(index_of(pcpu)); }
  std::uint32_t count() const {
    int n = 0;
    for (const std::uint64_t word : words_) n += std::popcount(word);
    return static_cast<std::uint32_t>(n);
  }
  bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }

  // The lowest member of both sets in [range.begin, range.end), or range.end.
  std::uint32_t first_common(const PcpuMask& other, PcpuRange range) const {
    for (std::uint32_t i = range.begin; i < range.end; i = i / 64 * 64 + 64) {
      const std::uint64_t word = (words_[i / 64] & other.words_[i / 64]) >> i % 64;
      if (word == 0) continue;
      const std::uint32_t found = i + static_cast<std::uint32_t>(std::countr_zero(word));
      return found < range.end ? found : range.end;
    }
    return range.end;
  }

 private:
  std::vector<std::uint64_t> words_;
};

class Domains {
 public:
  enum class Level : std::uint8_t { kCore, kSocket, kMachine };
  static constexpr std::size_t kLevels = 3;

  struct Domain {
    Level level;
    PcpuRange span;
    std::vector<PcpuRange> groups;
    bool above_another;  // its groups are domains
  };

  explicit Domains(const Machine& machine);

  std::uint32_t pcpus() const { return static_cast<std::uint32_t>(places_.size()); }
  // The domains that contain `pcpu`, smallest first.
  const std::vector<const Domain*>& of(PcpuId pcpu) const { return places_[index_of(pcpu)].domains; }
  PcpuRange core(PcpuId pcpu) const { return places_[index_of(pcpu)].core; }
  PcpuRange socket(PcpuId pcpu) const { return places_[index_of(pcpu)].socket; }

 private:
  struct Place {
    PcpuRange core;
    PcpuRange socket;
    std::vector<const Domain*> domains;
  };

  void add(Level level, PcpuRange span, std::vector<PcpuRange> groups);

  std::vector<std::unique_ptr<const Domain>> domains_;
  std::vector<Place> places_;
};

}  // namespace vcpusim
