// Ticket lock: waiters take a number and enter in that order.
//
// Source      arch/x86/include/asm/spinlock.h, Linux 2.6.25 to 4.1; Mellor-Crummey and Scott, ACM TOCS 9(1), 1991
// Models      strict FIFO; both counters on one line, so that each release makes every spinner read it again and
//             the next owner's releasing store queues up behind these reads
// Leaves out  the width of the counters and their wrap-around
// Shows       holder and waiter preemption: while the next in line is not running, the free lock stays reserved
#include <cstdint>

#include "models/locks/lock.h"

namespace vcpusim {

namespace {

class TicketLock final : public Lock {
 public:
  explicit TicketLock(const LockSite& site) : word_(site.machine) {}

  Co acquire(Task& self) override {
    const std::uint64_t ticket = co_await self.atomic(word_, [this] { return tail_++; });
    if (head_ != ticket) co_await self.watch(word_, [this, ticket] { return head_ == ticket; });
  }

  Co release(Task& self) override {
    return self.store(word_, [this] { ++head_; });
  }

  bool fair() const override { return true; }

 private:
  CacheLine word_;
  std::uint64_t head_ = 0;  // now serving
  std::uint64_t tail_ = 0;  // next ticket
};

}  // namespace

namespace locks {
LockKind ticket() {
  return lock_kind<TicketLock>("ticket", "FIFO by ticket number, all waiters on one line",
                               "arch/x86/include/asm/spinlock.h, Linux 2.6.25 to 4.1");
}
}  // namespace locks

}  // namespace vcpusim
