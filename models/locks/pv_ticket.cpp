// Paravirtual ticket lock: a waiter that has spun for long halts, and the unlocker kicks the next in line.
//
// Source      arch/x86/include/asm/spinlock.h, Linux 3.12 to 4.1 (flag in the tail until 3.19, then in the head);
//             arch/x86/kernel/kvm.c, Linux 3.12 (kvm_lock_spinning, kvm_unlock_kick)
// Models      the order of steps on both sides: publish lock and ticket, join the waiting set, set the flag, look once
//             more, halt; release, look at the flag, scan the waiting set, kick at most one. Each member of the set
//             costs the unlocker a line, after the lock is free
// Leaves out  halted waiters of other locks in the scan: the kernel has one waiting set for all
// Shows       convoys: each hand-off to a halted waiter leaves the lock idle from the kick until the waiter runs; a
// flag
//             that outlives its cause sends later unlocks down the slow path
#include <array>
#include <vector>

#include "models/locks/paravirt.h"

namespace vcpusim {

namespace {

class PvTicketLock final : public Lock {
 public:
  struct Params : ParavirtParams {
    enum class Flag { kTail, kHead };
    Flag flag = Flag::kHead;

    void describe(ParamVisitor& visitor) {
      static constexpr std::array<std::string_view, 2> kFlags{"tail", "head"};
      ParavirtParams::describe(visitor);
      visitor.choice("flag", flag, kFlags,
                     "where the slow-path flag is; tail: Linux 3.12 to 3.19, the unlocker reads it again after its "
                     "release; head: 4.0 and 4.1, the release returns it and the next owner clears it");
    }
  };

  PvTicketLock(const LockSite& site, const Params& params)
      : paravirt_(site, params),
        flag_in_tail_(params.flag == Params::Flag::kTail),
        vcpus_(site.vcpus),
        word_(site.machine),
        waiting_set_(site.machine) {
    waiters_.reserve(site.vcpu_count);
    for (std::size_t i = 0; i < site.vcpu_count; ++i) waiters_.emplace_back(site.machine);
  }

  Co acquire(Task& self) override {
    const std::uint64_t ticket = co_await self.atomic(word_, [this] { return tail_++; });
    if (head_ == ticket) co_return;
    while (!co_await self.watch_for(paravirt_.budget(), word_, [this, ticket] { return head_ == ticket; })) {
      co_await lock_spinning(self, ticket);
    }
    if (!flag_in_tail_ && slow_path_ && tail_ == ticket + 1) {
      co_await self.atomic(word_, [this, ticket] { clear_flag_if_next_is(ticket + 1); });
    }
  }

  Co release(Task& self) override {
    bool slow = false;
    const std::uint64_t next = co_await self.atomic(word_, [this, &slow] {
      slow = slow_path_;
      return ++head_;
    });
    if (flag_in_tail_) {
      co_await self.load(word_);
      slow = slow_path_;
      if (slow && tail_ == next) {
        const bool cleared = co_await self.atomic(word_, [this, next] { return clear_flag_if_next_is(next); });
        if (cleared) co_return;
      }
    }
    if (slow) co_await kick_holder_of(self, next);
  }

  bool fair() const override { return true; }

 private:
  // What a vCPU that is about to halt publishes.
  struct Waiter {
    explicit Waiter(const Machine& machine) : line(machine) {}
    CacheLine line;
    bool in_set = false;
    bool published = false;
    std::uint64_t want = 0;
  };

  // A compare-and-swap: it fails if the word has changed meanwhile.
  bool clear_flag_if_next_is(std::uint64_t ticket) {
    const std::uint64_t expected_head = flag_in_tail_ ? ticket : ticket - 1;
    if (tail_ != ticket || head_ != expected_head) return false;
    slow_path_ = false;
    return true;
  }

  Co lock_spinning(Task& self, std::uint64_t ticket) {
    Waiter& me = waiters_[index_of(self.vcpu().id())];
    self.disable_interrupts();
    // The ticket goes between two stores of the lock pointer, so that a kicker never sees a stale one.
    co_await self.store(me.line, [&me] { me.published = false; });
    co_await self.store(me.line, [&me, ticket] {
      me.want = ticket;
      me.published = true;
    });
    co_await self.atomic(waiting_set_, [&me] { me.in_set = true; });
    co_await self.atomic(word_, [this] { slow_path_ = true; });
    // An unlocker that came before the flag does not kick; its release is seen here.
    co_await self.load(word_);
    if (head_ != ticket) {
      co_await paravirt_.halt(self);
      if (head_ != ticket) ++paravirt_.counters().spurious_wakeups;
    }
    co_await self.atomic(waiting_set_, [&me] { me.in_set = false; });
    co_await self.store(me.line, [&me] { me.published = false; });
    self.enable_interrupts();
  }

  Co kick_holder_of(Task& self, std::uint64_t ticket) {
    co_await self.load(waiting_set_);
    for (std::size_t i = 0; i < waiters_.size(); ++i) {
      Waiter& waiter = waiters_[i];
      if (!waiter.in_set) continue;
      co_await self.load(waiter.line);
      if (!waiter.published || waiter.want != ticket) continue;
      co_await paravirt_.kick(self, *vcpus_[i]);
      break;
    }
  }

  Paravirt paravirt_;
  bool flag_in_tail_;
  const std::vector<std::unique_ptr<Vcpu>>& vcpus_;
  CacheLine word_;
  std::uint64_t head_ = 0;  // now serving
  std::uint64_t tail_ = 0;  // next ticket
  bool slow_path_ = false;  // somebody has halted, or is about to
  CacheLine waiting_set_;
  std::vector<Waiter> waiters_;  // by vCPU; never resized
};

}  // namespace

namespace locks {
LockKind ticket();

LockKind pv_ticket() {
  return paravirt_lock_kind<PvTicketLock, ticket>(
      "pv_ticket", "ticket lock whose waiters halt after a while and are kicked",
      "arch/x86/kernel/kvm.c and arch/x86/include/asm/spinlock.h, Linux 3.12 to 4.1");
}
}  // namespace locks

}  // namespace vcpusim
