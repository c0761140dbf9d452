#include "models/host/schedulers/run_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/random.h"

namespace vcpusim {
namespace {

// The same by looking at everybody: the first of those with the least key.
class Reference {
 public:
  void insert(std::int64_t key, VcpuIndex vcpu) { arrived_.push_back({key, vcpu}); }
  void erase(VcpuIndex vcpu) {
    std::erase_if(arrived_, [=](const auto& entry) { return entry.second == vcpu; });
  }
  std::vector<VcpuIndex> in_order() const {
    auto rest = arrived_;
    std::vector<VcpuIndex> result;
    while (!rest.empty()) {
      std::size_t least = 0;
      for (std::size_t i = 1; i < rest.size(); ++i) {
        if (rest[i].first < rest[least].first) least = i;
      }
      result.push_back(rest[least].second);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(least));
    }
    return result;
  }

 private:
  std::vector<std::pair<std::int64_t, VcpuIndex>> arrived_;
};

TEST(RunQueue, IsAsASortedListWithEqualKeysInOrderOfArrival) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    RandomStream random(seed, "run queue", "operations");
    RunQueue queue;
    Reference reference;
    std::vector<std::int64_t> key_of(24, -1);  // -1: not in the queue
    std::size_t longest = 0;
    for (int step = 0; step < 400; ++step) {
      const auto vcpu = static_cast<VcpuIndex>(random.below(key_of.size()));
      if (key_of[vcpu] < 0) {
        key_of[vcpu] = static_cast<std::int64_t>(random.below(8));  // so few that ties are common
        queue.insert({key_of[vcpu], 0, 1024, vcpu});
        reference.insert(key_of[vcpu], vcpu);
      } else {
        queue.erase(key_of[vcpu], vcpu);
        reference.erase(vcpu);
        key_of[vcpu] = -1;
      }
      longest = std::max(longest, queue.size());
      std::vector<VcpuIndex> order;
      for (const RunQueue::Entry& entry : queue) order.push_back(entry.vcpu);
      ASSERT_EQ(order, reference.in_order()) << "seed " << seed << " step " << step;
    }
    EXPECT_GT(longest, 8u);  // more than there are keys
  }
}

}  // namespace
}  // namespace vcpusim
