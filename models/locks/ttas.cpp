// Test-and-test-and-set: waiters read the word until it is free, then try one atomic each.
//
// Source      arch/x86/include/asm/qspinlock.h, Linux 6.17 (virt_spin_lock: the fallback of guests without
//             paravirtual locks); RHEL 6 guests used such a lock whenever they ran on a hypervisor
// Models      a release makes every spinner read the line again, one after the other; all that see it free try
//             their atomic, the first wins, and each failed one has moved the line
// Leaves out  back-off (the kernel's has none)
// Shows       holder preemption hurts, waiter preemption does not: any running spinner takes a free lock; the
//             releaser, whose cache has the line, is favoured
#include <utility>

#include "models/locks/lock.h"

namespace vcpusim {

namespace {

class TtasLock final : public Lock {
 public:
  explicit TtasLock(const LockSite& site) : word_(site.machine) {}

  Co acquire(Task& self) override {
    while (!co_await self.atomic(word_, [this] { return !std::exchange(held_, true); })) {
      co_await self.watch(word_, [this] { return !held_; });
    }
  }

  Co release(Task& self) override {
    return self.store(word_, [this] { held_ = false; });
  }

  bool fair() const override { return false; }
  bool reserves() const override { return false; }

 private:
  CacheLine word_;
  bool held_ = false;
};

}  // namespace

namespace locks {
LockKind ttas() {
  return lock_kind<TtasLock>("ttas", "test-and-test-and-set, unfair: whoever runs takes it",
                             "arch/x86/include/asm/qspinlock.h, Linux 6.17 (virt_spin_lock)");
}
}  // namespace locks

}  // namespace vcpusim
