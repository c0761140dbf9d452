// The ready vCPUs of one pCPU in the order of a key (vruntime for cfs, deadline for eevdf); equal keys in the order of
// arrival.
//
// A sorted array: queues are short, so that moving a few dozen entries costs less than following the pointers of a
// tree, and a scan from the front is a walk through memory. No allocation once the array has grown to its size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/host/scheduler.h"
#include "sim/check.h"

namespace vcpusim {

class RunQueue {
 public:
  struct Entry {
    std::int64_t key;
    std::int64_t vruntime;
    std::int64_t weight;
    VcpuIndex vcpu;
  };

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  const Entry& operator[](std::size_t i) const { return entries_[i]; }
  const Entry& front() const { return entries_.front(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  // Behind those of the same key.
  void insert(const Entry& entry) {
    entries_.insert(std::ranges::upper_bound(entries_, entry.key, {}, &Entry::key), entry);
  }

  // REQUIRES that `vcpu` is in the queue with that key.
  void erase(std::int64_t key, VcpuIndex vcpu) {
    auto at = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
    while (at != entries_.end() && at->vcpu != vcpu) ++at;
    SIM_DCHECK(at != entries_.end() && at->key == key, "a vCPU is not in the queue that it should wait in");
    entries_.erase(at);
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace vcpusim
