// RCU: readers that never wait, and updaters that wait, or have their frees wait, until every reader has left.
//
// As a lock it is the updaters' side: a section under it holds the internal lock of the updaters, and what follows its
// release is the grace period. The readers' side is the operation rcu_read.
//
// Source      Documentation/RCU, kernel/rcu/tree.c, Linux 5.10, with CONFIG_PREEMPT=n: a section disables preemption,
// so
//             that a vCPU that has switched tasks, is idle, or takes its tick in user mode has left it. Full dynticks
//             (guests without a clock): user mode itself is quiescent
// Models      grace periods one after another, each from its start until every vCPU that was not idle has passed a
//             quiescent state, for all requests that came before it began; a vCPU that is preempted, or halted in a
//             spinlock, passes none
// Leaves out  the grace-period thread and its costs (quiescent states are noticed at once, not by the scan every 3 ms),
//             the callback lists and softirqs that do the frees, expedited grace periods, stall warnings, readers that
//             sleep (SRCU, CONFIG_PREEMPT=y)
// Shows       reads that do not care whether a sibling is preempted, and grace periods as long as the longest time that
//             a vCPU in the kernel, or in need of a tick, was kept from its pCPU
#include <utility>
#include <vector>

#include "models/guest/vm.h"
#include "models/locks/lock.h"

namespace vcpusim {

namespace locks {
LockKind ticket();
}

namespace {

class Rcu final : public Lock, private RcuDomain, private GracePeriod {
 public:
  struct Params {
    bool synchronous = true;
    void describe(ParamVisitor& visitor) {
      visitor.flag(
          "synchronous", synchronous,
          "updaters sleep until a grace period has passed (synchronize_rcu); false: they go on and the free is "
          "done later (call_rcu)");
    }
  };

  Rcu(const LockSite& site, const Params& params)
      : synchronous_(params.synchronous),
        vcpus_(site.vcpus),
        engine_(site.machine.engine()),
        passed_(engine_.add_timer<&Rcu::grace_period_passed>(*this)) {
    LockSite updaters = site;
    updaters_ = locks::ticket().make(Kind{"ticket", {}}, updaters);
  }

  Co acquire(Task& self) override { co_await updaters_->acquire(self); }

  Co release(Task& self) override {
    co_await updaters_->release(self);
    if (!synchronous_) {
      ++statistics.frees_deferred;
      ++requested_.frees;
      start_grace_period();
      co_return;
    }
    requested_.updaters.push_back(&self);
    start_grace_period();
    // The section is over, so its updater may be switched out.
    self.enable_preemption();
    co_await self.block();
    self.disable_preemption();
  }

  bool fair() const override { return true; }
  static LockTraits traits(const Params& params) { return {.sleeps = params.synchronous, .rcu_domain = true}; }
  RcuDomain* rcu() override { return this; }

 private:
  // Those who wait for one grace period.
  struct Requests {
    std::vector<Task*> updaters;
    std::uint64_t frees = 0;
    bool empty() const { return updaters.empty() && frees == 0; }
  };

  void start_grace_period() {
    if (under_way_ || requested_.empty()) return;
    under_way_ = true;
    served_ = std::exchange(requested_, {});
    began_ = engine_.now();
    outstanding_ = 0;
    for (const auto& vcpu : vcpus_) outstanding_ += vcpu->await_quiescence(*this) ? 1 : 0;
    if (outstanding_ == 0) engine_.schedule(passed_, engine_.now());
  }

  void quiescent(Vcpu&) override {
    if (--outstanding_ == 0) engine_.schedule(passed_, engine_.now());
  }

  // An event of its own, since quiescent states are reported from the midst of other things.
  void grace_period_passed() {
    statistics.grace_period.record(engine_.now() - began_);
    statistics.frees_done += served_.frees;
    under_way_ = false;
    for (Task* const updater : std::exchange(served_, {}).updaters) updater->wake(nullptr);
    start_grace_period();
  }

  bool synchronous_;
  const std::vector<std::unique_ptr<Vcpu>>& vcpus_;
  Engine& engine_;
  Engine::TimerId passed_;
  std::unique_ptr<Lock> updaters_;
  Requests requested_;  // wait for the next grace period ...
  Requests served_;     // ... or for the one under way
  bool under_way_ = false;
  SimTime began_{};
  std::size_t outstanding_ = 0;  // vCPUs that have not passed a quiescent state
};

}  // namespace

namespace locks {
LockKind rcu() {
  return lock_kind<Rcu>("rcu", "grace periods behind a lock of updaters; for readers see the operation rcu_read",
                        "kernel/rcu/tree.c, Linux 5.10");
}
}  // namespace locks

}  // namespace vcpusim
