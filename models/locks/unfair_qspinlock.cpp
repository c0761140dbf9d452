// The unfair queue spinlock: a queue for the cache's sake, and a lock byte that anyone may take when it is free.
//
// Source      the "unfair queue spinlock" of the qspinlock series, linux-kernel list, March 2014 (v6, 05/11):
//             fast path on the lock byte alone, no pending path, one attempt on entry, head takes by atomic
// Models      newcomers ignore the queue; the head competes with them; the others spin on their nodes
// Leaves out  stealing from within the queue, which only later versions of the series had
// Shows       the releaser, whose cache has the line, often takes the lock again at once; a preempted head delays
//             nobody but the queue behind it
#include <utility>

#include "models/locks/lock.h"
#include "models/locks/queue_nodes.h"

namespace vcpusim {

namespace {

class UnfairQspinlock final : public Lock {
 public:
  struct Params {
    Cycles key_test{1};
    void describe(ParamVisitor& visitor) {
      visitor.cycles("key_test", key_test, {0, 1000},
                     "test of the key that selects unfair locks, once per acquisition: the series states 1-2 % of an "
                     "uncontended pair");
    }
  };

  UnfairQspinlock(const LockSite& site, const Params& params)
      : key_test_(to_duration(params.key_test, site.machine.config().clock)),
        counters_(site.counters),
        line_(site.machine),
        nodes_(site.machine, site.vcpu_count) {}

  Co acquire(Task& self) override {
    co_await self.run(key_test_);
    if (co_await self.atomic(line_, [this] { return !std::exchange(locked_, true); })) {
      if (tail_ != nullptr) ++counters_.steals;
      co_return;
    }

    QueueNode& me = nodes_.of(self);
    me.reset();
    QueueNode* const before = co_await self.atomic(line_, [&] { return std::exchange(tail_, &me); });
    if (before != nullptr) {
      co_await self.store(before->line, [&] { before->next = &me; });
      co_await self.watch(me.line, [&] { return me.granted; });
    }

    do {
      co_await self.watch(line_, [this] { return !locked_; });
    } while (!co_await self.atomic(line_, [this] { return !std::exchange(locked_, true); }));

    if (tail_ == &me) {
      const bool alone = co_await self.atomic(line_, [&] {
        if (tail_ != &me) return false;
        tail_ = nullptr;
        return true;
      });
      if (alone) co_return;
    }
    if (me.next == nullptr) co_await self.watch(me.line, [&] { return me.next != nullptr; });
    QueueNode* const successor = me.next;
    self.post(successor->line, [=] { successor->granted = true; });
  }

  Co release(Task& self) override {
    return self.store(line_, [this] { locked_ = false; });
  }

  bool fair() const override { return false; }

 private:
  Duration key_test_;
  LockCounters& counters_;
  CacheLine line_;  // lock byte and tail
  bool locked_ = false;
  QueueNode* tail_ = nullptr;
  QueueNodes nodes_;
};

}  // namespace

namespace locks {
LockKind unfair_qspinlock() {
  return lock_kind<UnfairQspinlock>("unfair_qspinlock", "queue lock whose free lock byte anyone may take",
                                    "qspinlock series v6, linux-kernel list, March 2014");
}
}  // namespace locks

}  // namespace vcpusim
