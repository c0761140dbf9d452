#include "models/guest/guest_lock.h"

#include "sim/check.h"

namespace vcpusim {

GuestLock::GuestLock(const LockConfig& config, LockSite site) : name_(config.name), kind_(config.kind.name) {
  const LockKind* const kind = find_lock_kind(config.kind.name);
  SIM_CHECK(kind != nullptr, "no lock kind \"" + config.kind.name + "\"");
  algorithm_ = kind->make(config.kind, site);
}

void GuestLock::acquired(const Task& owner, SimTime asked, bool spun) {
  SIM_CHECK(owner_ == nullptr, "two owners of lock \"" + name_ + "\"");
  owner_ = &owner;
  acquired_at_ = owner.now();
  const Duration wait = acquired_at_ - asked;
  ++statistics_.acquisitions;
  statistics_.wait.record(wait);
  if (spun) {
    ++statistics_.contended;
    statistics_.spin += wait;
  }
}

void GuestLock::releasing(const Task& owner) {
  SIM_CHECK(owner_ == &owner, "lock \"" + name_ + "\" released by a task that does not own it");
  owner_ = nullptr;
  statistics_.hold.record(owner.now() - acquired_at_);
}

}  // namespace vcpusim
