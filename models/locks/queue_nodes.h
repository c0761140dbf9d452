// The waiting queue of the Linux queue spinlocks: one node per vCPU, linked from the old tail.
#pragma once

#include <cstddef>
#include <vector>

#include "models/guest/task.h"
#include "models/machine/cache_line.h"

namespace vcpusim {

struct QueueNode {
  explicit QueueNode(const Machine& machine) : line(machine) {}
  CacheLine line;
  QueueNode* next = nullptr;
  bool granted = false;  // this node is the head of the queue

  void reset() {
    next = nullptr;
    granted = false;
  }
};

class QueueNodes {
 public:
  QueueNodes(const Machine& machine, std::size_t vcpus) {
    nodes_.reserve(vcpus);
    for (std::size_t i = 0; i < vcpus; ++i) nodes_.emplace_back(machine);
  }
  QueueNode& of(const Task& task) { return nodes_[index_of(task.vcpu().id())]; }

 private:
  std::vector<QueueNode> nodes_;  // never resized: nodes keep their addresses
};

}  // namespace vcpusim
