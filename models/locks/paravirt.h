// What the paravirtual spinlocks of Linux have in common: how long they spin, how they halt and how they kick.
//
// Source      SPIN_THRESHOLD: arch/x86/include/asm/spinlock.h, Linux 3.12 to 6.17; halt and kick:
// arch/x86/kernel/kvm.c,
//             Linux 3.12 and 5.10; yield to the kicked vCPU: commit 266e85a5ec9 (5.4)
// Models      the budget in turns of the spin loop, so that it lasts as long as the machine's PAUSE makes it; HLT with
//             interrupts enabled if they were before, else deaf to all but a kick; a kick to a vCPU that is awake is
//             kept for its next HLT
// Leaves out  NMIs
// Natively there is no one to kick: both locks are then built as the plain locks that they derive from, since the
// kernel patches their extra branches out.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "models/locks/lock.h"

namespace vcpusim {

struct ParavirtParams {
  std::int64_t spin_threshold = 32768;
  Duration kick_cost = std::chrono::nanoseconds(500);
  bool kick_yield = false;

  void describe(ParamVisitor& visitor) {
    visitor.integer("spin_threshold", spin_threshold, {1, std::int64_t{1} << 32},
                    "turns of the spin loop (each one PAUSE of the machine) before a waiter halts; 2^15 in "
                    "arch/x86/include/asm/spinlock.h, Linux 3.12 to 6.17. On a machine whose PAUSE takes no time, "
                    "waiters never halt");
    visitor.duration("kick_cost", kick_cost, kAnyDuration,
                     "of the host's handler that wakes a vCPU, beside the exit; an estimate");
    visitor.flag(
        "kick_yield", kick_yield,
        "the kick also yields the kicker's pCPU to the kicked vCPU, if that waits for one; commit 266e85a5ec9, "
        "Linux 5.4");
  }
};

class Paravirt {
 public:
  Paravirt(const LockSite& site, const ParavirtParams& params)
      : counters_(site.counters), kick_cost_(params.kick_cost), kick_yield_(params.kick_yield) {
    if (const Duration pause = site.machine.pause(); pause > Duration::zero()) {
      budget_ = params.spin_threshold * pause;
    }
  }

  // How long a waiter spins; no value: for as long as it takes.
  std::optional<Duration> budget() const { return budget_; }
  LockCounters& counters() const { return counters_; }

  // REQUIRES that interrupts are disabled. If this lock has done that, and nobody before, an interrupt ends the halt.
  Co halt(Task& self) const {
    ++counters_.halts;
    const bool interruptible = self.interrupts_off == 1;
    if (interruptible) self.enable_interrupts();
    co_await self.halt();
    if (interruptible) self.disable_interrupts();
  }

  Co kick(Task& self, Vcpu& target) const {
    ++counters_.kicks;
    co_await self.hypercall(kick_cost_);
    target.kick(self.pcpu());
    if (kick_yield_ && &target != &self.vcpu()) co_await self.yield_to(target);
  }

 private:
  LockCounters& counters_;
  Duration kick_cost_;
  bool kick_yield_;
  std::optional<Duration> budget_;
};

// The entry of a paravirtual lock class `L`, which natively is the kind `Plain` (with its defaults).
template <class L, LockKind (*Plain)()>
LockKind paravirt_lock_kind(std::string_view name, std::string_view summary, std::string_view source) {
  LockKind kind = lock_kind<L>(name, summary, source);
  kind.make = [](const Kind& params, LockSite& site) -> std::unique_ptr<Lock> {
    std::unique_ptr<Lock> lock = lock_kind<L>("", "", "").make(params, site);
    if (site.native) lock = Plain().make(Kind{std::string(Plain().name), {}}, site);
    return lock;
  };
  return kind;
}

}  // namespace vcpusim
