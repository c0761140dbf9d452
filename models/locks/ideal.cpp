// A lock that costs nothing: the base line of every comparison.
//
// Models      mutual exclusion alone; whichever waiter executes when the lock is free takes it
// Leaves out  every transfer, atomic and branch
// Shows       what remains of a slowdown when the lock itself is free of charge
#include "models/locks/lock.h"

namespace vcpusim {

namespace {

MachineConfig free_of_charge(const Machine& machine) {
  MachineConfig config = machine.config();
  config.costs = {};
  return config;
}

class IdealLock final : public Lock {
 public:
  explicit IdealLock(const LockSite& site)
      : machine_(free_of_charge(site.machine), site.machine.pcpus(), site.machine.engine()) {}

  Co acquire(Task& self) override {
    while (held_) co_await self.watch(word_, [this] { return !held_; });
    held_ = true;
    word_.written();
  }

  Co release(Task& self) override {
    return self.store(word_, [this] { held_ = false; });
  }

  bool fair() const override { return false; }
  bool reserves() const override { return false; }

 private:
  Machine machine_;
  CacheLine word_{machine_};
  bool held_ = false;
};

}  // namespace

namespace locks {
LockKind ideal() { return lock_kind<IdealLock>("ideal", "no cost at all: the base line", "by definition"); }
}  // namespace locks

}  // namespace vcpusim
