// The fair queue spinlock of Linux: a lock word with a pending bit, and an MCS queue behind it.
//
// Source      kernel/locking/qspinlock.c, Linux 4.20 (unchanged in structure to 6.17); pending re-read limit:
//             arch/x86/include/asm/qspinlock.h
// Models      lock byte, pending bit and tail on one line; one pending waiter that spins on the word; the head of
//             the queue spins on the word, all others on their nodes; head-ship passes on at acquisition
// Leaves out  more than one nesting level per vCPU, the width of the tail field
// Shows       with two contenders a ticket lock of depth one; with many a hand-off of constant cost; holder and
//             waiter preemption, also of a pending waiter, of the head, and between the two steps of queueing
#include <utility>

#include "models/locks/lock.h"
#include "models/locks/queue_nodes.h"

namespace vcpusim {

namespace {

class Qspinlock final : public Lock {
 public:
  struct Params {
    std::int64_t pending_rereads = 512;
    void describe(ParamVisitor& visitor) {
      visitor.integer("pending_rereads", pending_rereads, {0, 1 << 20},
                      "how often a newcomer re-reads the word while the pending waiter takes over; "
                      "arch/x86/include/asm/qspinlock.h, Linux 6.17");
    }
  };

  Qspinlock(const LockSite& site, const Params& params)
      : patience_(params.pending_rereads * site.machine.pause()),
        line_(site.machine),
        nodes_(site.machine, site.vcpu_count) {}

  Co acquire(Task& self) override {
    Word seen = co_await self.atomic(line_, [this] {
      const Word before = word_;
      if (before.free()) word_.locked = true;
      return before;
    });
    if (seen.free()) co_return;

    if (seen.handing_over()) {
      co_await self.watch_for(patience_, line_, [this] { return !word_.handing_over(); });
      seen = word_;
    }
    if (!seen.pending && seen.tail == nullptr) {
      seen = co_await self.atomic(line_, [this] { return std::exchange(word_, {word_.locked, true, word_.tail}); });
      if (!seen.pending && seen.tail == nullptr) {
        if (seen.locked) co_await self.watch(line_, [this] { return !word_.locked; });
        self.post(line_, [this] {
          word_.pending = false;
          word_.locked = true;
        });
        co_return;
      }
      if (!seen.pending) co_await self.store(line_, [this] { word_.pending = false; });
    }
    co_await queue(self);
  }

  Co release(Task& self) override {
    return self.store(line_, [this] { word_.locked = false; });
  }

  bool fair() const override { return true; }

 private:
  struct Word {
    bool locked = false;
    bool pending = false;
    QueueNode* tail = nullptr;
    bool free() const { return !locked && !pending && tail == nullptr; }
    bool handing_over() const { return !locked && pending && tail == nullptr; }
  };

  Co queue(Task& self) {
    QueueNode& me = nodes_.of(self);
    me.reset();
    co_await self.load(line_);
    if (word_.free()) {
      const Word seen = co_await self.atomic(line_, [this] {
        const Word before = word_;
        if (before.free()) word_.locked = true;
        return before;
      });
      if (seen.free()) co_return;
    }

    QueueNode* const before = co_await self.atomic(line_, [&] { return std::exchange(word_.tail, &me); });
    if (before != nullptr) {
      co_await self.store(before->line, [&] { before->next = &me; });
      co_await self.watch(me.line, [&] { return me.granted; });
    }

    co_await self.watch(line_, [this] { return !word_.locked && !word_.pending; });
    if (word_.tail == &me) {
      const bool alone = co_await self.atomic(line_, [&] {
        if (word_.tail != &me) return false;
        word_ = {true, false, nullptr};
        return true;
      });
      if (alone) co_return;
    }
    // Nobody else may take the lock while there is a queue, so a plain store does.
    self.post(line_, [this] { word_.locked = true; });
    if (me.next == nullptr) co_await self.watch(me.line, [&] { return me.next != nullptr; });
    QueueNode* const successor = me.next;
    self.post(successor->line, [=] { successor->granted = true; });
  }

  Duration patience_;
  CacheLine line_;
  Word word_;
  QueueNodes nodes_;
};

}  // namespace

namespace locks {
LockKind qspinlock() {
  return lock_kind<Qspinlock>("qspinlock", "the fair queue lock of Linux: pending bit, then an MCS queue",
                              "kernel/locking/qspinlock.c, Linux 4.20 to 6.17");
}
}  // namespace locks

}  // namespace vcpusim
