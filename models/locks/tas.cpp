// Test-and-set: every turn of a waiter's loop is an atomic.
//
// Source      Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors", IEEE TPDS
//             1(1), 1990
// Models      the line never rests: each running waiter always has one atomic outstanding, so that the releasing
//             store queues up behind all of them, and the waiter whose atomic comes next wins
// Leaves out  the single atomics of a wait in which nothing changes: they are charged together, at the release
// Shows       a release that takes longer the more waiters run; unfairness as with ttas
#include <utility>

#include "models/locks/lock.h"

namespace vcpusim {

namespace {

class TasLock final : public Lock {
 public:
  explicit TasLock(const LockSite& site) : word_(site.machine) {}

  Co acquire(Task& self) override {
    while (!co_await self.atomic(word_, [this] { return !std::exchange(held_, true); })) {
      co_await self.watch(word_, [this] { return !held_; });
    }
  }

  Co release(Task& self) override {
    word_.queue_atomics_of_watchers();
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
LockKind tas() {
  return lock_kind<TasLock>("tas", "test-and-set, unfair: every turn of the spin loop is an atomic",
                            "Anderson, IEEE TPDS 1(1), 1990");
}
}  // namespace locks

}  // namespace vcpusim
