// A set of pCPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "models/machine/machine.h"

namespace vcpusim {

class PcpuSet {
 public:
  PcpuSet() = default;

  static PcpuSet all(std::uint32_t pcpus) {
    PcpuSet set;
    for (std::uint32_t i = 0; i < pcpus; ++i) set.insert(PcpuId(i));
    return set;
  }

  void insert(PcpuId pcpu) {
    const std::uint32_t i = index_of(pcpu);
    if (i / 64 >= words_.size()) words_.resize(i / 64 + 1);
    words_[i / 64] |= std::uint64_t{1} << i % 64;
  }
  bool contains(PcpuId pcpu) const {
    const std::uint32_t i = index_of(pcpu);
    return i / 64 < words_.size() && (words_[i / 64] >> i % 64 & 1) != 0;
  }
  bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace vcpusim
