// MCS queue lock: each waiter spins on a node of its own.
//
// Source      Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
//             multiprocessors", ACM TOCS 9(1), 1991
// Models      one atomic on the tail per acquisition and one line transfer per hand-off, however many wait; the
//             two steps of queueing (swap the tail, link behind the old one), so that a releaser waits for a
//             successor that was preempted between them
// Leaves out  nothing of the algorithm
// Shows       hand-offs of constant cost; holder and waiter preemption as with tickets
#include <utility>

#include "models/locks/lock.h"
#include "models/locks/queue_nodes.h"

namespace vcpusim {

namespace {

class McsLock final : public Lock {
 public:
  explicit McsLock(const LockSite& site) : tail_line_(site.machine), nodes_(site.machine, site.vcpu_count) {}

  Co acquire(Task& self) override {
    QueueNode& me = nodes_.of(self);
    me.reset();
    QueueNode* const before = co_await self.atomic(tail_line_, [&] { return std::exchange(tail_, &me); });
    if (before == nullptr) co_return;
    co_await self.store(before->line, [&] { before->next = &me; });
    co_await self.watch(me.line, [&] { return me.granted; });
  }

  Co release(Task& self) override {
    QueueNode& me = nodes_.of(self);
    if (me.next == nullptr) {
      const bool alone = co_await self.atomic(tail_line_, [&] {
        if (tail_ != &me) return false;
        tail_ = nullptr;
        return true;
      });
      if (alone) co_return;
      co_await self.watch(me.line, [&] { return me.next != nullptr; });
    }
    QueueNode* const successor = me.next;
    co_await self.store(successor->line, [=] { successor->granted = true; });
  }

  bool fair() const override { return true; }

 private:
  CacheLine tail_line_;
  QueueNode* tail_ = nullptr;
  QueueNodes nodes_;
};

}  // namespace

namespace locks {
LockKind mcs() {
  return lock_kind<McsLock>("mcs", "FIFO queue, each waiter on a line of its own",
                            "Mellor-Crummey and Scott, ACM TOCS 9(1), 1991");
}
}  // namespace locks

}  // namespace vcpusim
