// Queues of vCPUs, one per pCPU, as doubly linked lists: a vCPU is in at most one, and no operation allocates.
#pragma once

#include <cstddef>
#include <vector>

#include "models/host/scheduler.h"

namespace vcpusim {

class VcpuQueues {
 public:
  VcpuQueues(std::size_t queues, std::size_t vcpus) : queues_(queues), links_(vcpus) {}

  // kNoVcpu: there is none.
  VcpuIndex front(PcpuId queue) const { return queues_[index_of(queue)].head; }
  VcpuIndex after(VcpuIndex vcpu) const { return links_[vcpu].next; }

  bool empty(PcpuId queue) const { return queues_[index_of(queue)].head == kNoVcpu; }
  std::size_t size(PcpuId queue) const { return queues_[index_of(queue)].size; }
  // Over all queues.
  std::size_t size() const { return size_; }
  bool contains(VcpuIndex vcpu) const { return links_[vcpu].queue != kNoPcpu; }

  void push_front(PcpuId queue, VcpuIndex vcpu) { insert_before(queue, front(queue), vcpu); }
  void push_back(PcpuId queue, VcpuIndex vcpu) { insert_before(queue, kNoVcpu, vcpu); }
  // `position` kNoVcpu: at the tail. REQUIRES that `vcpu` is in no queue and `position` in this one.
  void insert_before(PcpuId queue, VcpuIndex position, VcpuIndex vcpu) {
    Queue& q = queues_[index_of(queue)];
    const VcpuIndex previous = position == kNoVcpu ? q.tail : links_[position].previous;
    links_[vcpu] = {previous, position, queue};
    (previous == kNoVcpu ? q.head : links_[previous].next) = vcpu;
    (position == kNoVcpu ? q.tail : links_[position].previous) = vcpu;
    ++q.size;
    ++size_;
  }
  // REQUIRES contains(vcpu).
  void erase(VcpuIndex vcpu) {
    const Link link = links_[vcpu];
    Queue& q = queues_[index_of(link.queue)];
    (link.previous == kNoVcpu ? q.head : links_[link.previous].next) = link.next;
    (link.next == kNoVcpu ? q.tail : links_[link.next].previous) = link.previous;
    links_[vcpu] = {};
    --q.size;
    --size_;
  }

 private:
  struct Queue {
    VcpuIndex head = kNoVcpu;
    VcpuIndex tail = kNoVcpu;
    std::size_t size = 0;
  };
  struct Link {
    VcpuIndex previous = kNoVcpu;
    VcpuIndex next = kNoVcpu;
    PcpuId queue = kNoPcpu;
  };

  std::vector<Queue> queues_;
  std::vector<Link> links_;  // by vCPU
  std::size_t size_ = 0;
};

}  // namespace vcpusim
