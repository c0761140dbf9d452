// The pCPUs that have nothing to do and that nobody has called yet.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "models/machine/pcpu_set.h"

namespace vcpusim {

class IdlePcpus {
 public:
  // All idle.
  explicit IdlePcpus(std::uint32_t pcpus) : words_((pcpus + 63) / 64) {
    for (std::uint32_t i = 0; i < pcpus; ++i) insert(PcpuId{i});
  }

  bool empty() const { return size_ == 0; }
  bool contains(PcpuId pcpu) const { return (words_[index_of(pcpu) / 64] & bit(pcpu)) != 0; }
  void insert(PcpuId pcpu) {
    if (contains(pcpu)) return;
    words_[index_of(pcpu) / 64] |= bit(pcpu);
    ++size_;
  }
  void erase(PcpuId pcpu) {
    if (!contains(pcpu)) return;
    words_[index_of(pcpu) / 64] &= ~bit(pcpu);
    --size_;
  }

  // The first one in `allowed` behind `last` in the circle of pCPUs; kNoPcpu if there is none.
  PcpuId next_in(const PcpuSet& allowed, PcpuId last) const {
    if (size_ == 0) return kNoPcpu;
    const PcpuId behind = first_in(allowed, index_of(last) + 1);  // kNoPcpu + 1 is 0
    return behind != kNoPcpu ? behind : first_in(allowed, 0);
  }

 private:
  static std::uint64_t bit(PcpuId pcpu) { return std::uint64_t{1} << index_of(pcpu) % 64; }

  PcpuId first_in(const PcpuSet& allowed, std::uint32_t from) const {
    for (std::size_t w = from / 64; w < words_.size(); ++w) {
      std::uint64_t word = words_[w];
      if (w == from / 64) word &= ~std::uint64_t{0} << from % 64;
      for (; word != 0; word &= word - 1) {
        const PcpuId pcpu{static_cast<std::uint32_t>(w * 64 + static_cast<unsigned>(std::countr_zero(word)))};
        if (allowed.contains(pcpu)) return pcpu;
      }
    }
    return kNoPcpu;
  }

  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

}  // namespace vcpusim
