#include "models/guest/guest_lock.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace vcpusim {

GuestLock::GuestLock(const LockConfig& config, const Machine& machine, const std::vector<std::unique_ptr<Vcpu>>& vcpus,
                     std::size_t vcpu_count, bool native, std::uint32_t index, const Tracer& trace)
    : name_(config.name), kind_(config.kind.name), index_(index), trace_(trace) {
  const LockKind* const kind = find_lock_kind(config.kind.name);
  SIM_CHECK(kind != nullptr, "no lock kind \"" + config.kind.name + "\"");
  LockSite site{machine, vcpus, vcpu_count, native, counters_};
  algorithm_ = kind->make(config.kind, site);
}

void GuestLock::Statistics::add(const Statistics& other) {
  acquisitions += other.acquisitions;
  contended += other.contended;
  wait.merge(other.wait);
  hold.merge(other.hold);
  spin += other.spin;
  idle_reserved += other.idle_reserved;
  holder_preemptions += other.holder_preemptions;
  holder_preempted.merge(other.holder_preempted);
  type_a.merge(other.type_a);
  type_b.merge(other.type_b);
  waiter_preemptions += other.waiter_preemptions;
  algorithm.halts += other.algorithm.halts;
  algorithm.kicks += other.algorithm.kicks;
  algorithm.spurious_wakeups += other.algorithm.spurious_wakeups;
  algorithm.steals += other.algorithm.steals;
  if (!other.rcu) return;
  if (!rcu) rcu.emplace();
  rcu->reads += other.rcu->reads;
  rcu->frees_deferred += other.rcu->frees_deferred;
  rcu->frees_done += other.rcu->frees_done;
  rcu->grace_period.merge(other.rcu->grace_period);
}

GuestLock::Statistics GuestLock::statistics() const {
  Statistics all = statistics_;
  all.algorithm = counters_;
  if (const RcuDomain* const rcu = algorithm_->rcu()) all.rcu = rcu->statistics;
  return all;
}

void GuestLock::reset_statistics() {
  statistics_ = {};
  counters_ = {};
  if (RcuDomain* const rcu = algorithm_->rcu()) rcu->statistics = {};
}

void GuestLock::requested(Task& by) {
  by.waits_for(this);
  by.wait = {by.now(), by.vcpu().time(Activity::kSpin)};
  if (owner_left_ != kNoPcpu) [[unlikely]] {
    waiter_runs(by);
  }
}

void GuestLock::acquired(Task& owner, bool contended) {
  SIM_CHECK(owner_ == nullptr, "two owners of lock \"" + name_ + "\"");
  // Whoever frees the lock may still be busy with the rest of its release.
  if (releasing_ != nullptr) releasing_->no_longer_holds(*this);
  releasing_ = nullptr;
  owner_ = &owner;
  owner.waits_for(nullptr);
  owner.holds(*this);
  acquired_at_ = owner.now();
  for (const auto& [waiter, away] : absent_) {
    if (waiter == &owner) statistics_.idle_reserved += away;
  }
  absent_.clear();
  const Duration wait = acquired_at_ - owner.wait.since;
  ++statistics_.acquisitions;
  statistics_.wait.record(wait);
  trace_(TraceKind::kLockAcquired, owner.index(), index_, wait.count());
  if (contended) {
    ++statistics_.contended;
    statistics_.spin += owner.vcpu().time(Activity::kSpin) - owner.wait.spin_before;
  }
}

void GuestLock::releasing(Task& owner) {
  SIM_CHECK(owner_ == &owner, "lock \"" + name_ + "\" released by a task that does not own it");
  owner_ = nullptr;
  releasing_ = &owner;
  released_at_ = owner.now();
  const Duration hold = released_at_ - acquired_at_;
  statistics_.hold.record(hold);
  trace_(TraceKind::kLockReleased, owner.index(), index_, hold.count());
}

void GuestLock::released(Task& owner) {
  if (releasing_ != &owner) return;
  releasing_ = nullptr;
  owner.no_longer_holds(*this);
}

void GuestLock::holder_preempted(const Task& owner) {
  ++statistics_.holder_preemptions;
  owner_left_ = owner.pcpu();
  stacked_ = false;
}

void GuestLock::holder_resumed(const Task& owner, Duration away) {
  statistics_.holder_preempted.record(away);
  if (releasing_ != nullptr) released_at_ = releasing_->now();  // up to now, the lock was not free
  const PcpuId left = std::exchange(owner_left_, kNoPcpu);
  if (stacked_) (owner.pcpu() == left ? statistics_.type_b : statistics_.type_a).record(away);
  stacked_ = false;
}

void GuestLock::waiter_runs(const Task& waiter) { stacked_ = stacked_ || waiter.pcpu() == owner_left_; }

void GuestLock::waiter_resumed(const Task& waiter, SimTime stopped_at) {
  const bool is_free = owner_ == nullptr && (releasing_ == nullptr || releasing_->vcpu().is_running());
  if (is_free && algorithm_->reserves())
    absent_.emplace_back(&waiter, waiter.now() - std::max(stopped_at, released_at_));
}

}  // namespace vcpusim
