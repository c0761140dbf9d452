// What cfs and eevdf share: everything of Linux's fair class except the order within a queue.
//
// Models      the grid of scheduler ticks; the choice of a pCPU for a woken vCPU (the waker's or the previous one, then
//             an idle one that shares its last-level cache) and for a new one (the idlest); load balancing over the
//             domains: by a pCPU that goes idle, by busy pCPUs at their ticks, and for idle ones at the tick of an
//             overloaded pCPU, which wakes one of them to do it (an idle pCPU has no tick of its own)
// Leaves out  decaying load averages: load is the weight of the vCPUs that are ready at this instant; active balancing:
//             a running vCPU is never moved; the search for an idle pCPU looks at all of a socket, as if it were
//             free; wake_wide; NUMA placement by memory accesses
// Deviates    a busy pCPU moves vCPUs for the good of those that have run least in the last 4 to 8 s, and nothing if
//             they are its own; the kernel takes what waits in the first of the busiest queues, least recently used
//             first, so that 48 vCPUs on 32 pCPUs differ by some 10 % after 10 s. Its interval does not double when it
//             finds the load balanced; an attempt that finds only cache-hot vCPUs is repeated at the next tick (kernel:
//             after an interval). The balance times of the pCPUs of a domain start out evenly spread. Half a vCPU's
//             load may exceed the imbalance at the first attempt, as before 5.10 (5.10: none of it)
//
// Ticks happen on the grid only where something can come of them: next_check() is the first tick at which the present
// state makes the tick do anything. A pCPU that has nothing to balance with and one vCPU to run has none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/host/scheduler.h"
#include "models/host/schedulers/domains.h"
#include "models/host/schedulers/run_queue.h"
#include "models/params.h"

namespace vcpusim {

struct FairParams {
  std::int64_t hz = 250;
  bool tick_skew = false;
  std::int64_t scale = 0;
  bool wake_affine = true;
  bool balance = true;
  Duration migration_cost = std::chrono::microseconds(500);
  std::int64_t busy_factor = 16;
  std::int64_t imbalance_pct = 117;
  std::int64_t smt_imbalance_pct = 110;
  std::int64_t cache_nice_tries = 1;
  bool group_by_vm = false;

  void describe(ParamVisitor& visitor);
};

class FairScheduler : public HostScheduler {
 public:
  PcpuId place(VcpuIndex vcpu, PcpuId previous, PcpuId waker) final;
  void enqueue(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) final;
  bool preempts(VcpuIndex vcpu, PcpuId pcpu) final;
  void dequeue(VcpuIndex vcpu) final;
  void charge(VcpuIndex vcpu, PcpuId pcpu, Duration ran) final;
  void blocked(VcpuIndex vcpu, PcpuId pcpu) final;
  VcpuIndex pick(PcpuId pcpu) final;
  SimTime next_check(PcpuId pcpu) final;
  bool check(PcpuId pcpu) final;
  void timer_expired() final;
  void yield(VcpuIndex vcpu, PcpuId pcpu) final;
  bool yield_to(VcpuIndex vcpu, VcpuIndex target) final;
  std::size_t runnable_on(PcpuId pcpu) const final { return queue(pcpu).runnable; }
  PcpuId queue_of(VcpuIndex vcpu) const final { return vcpus_[vcpu].pcpu; }

 protected:
  // Weights are kept in 1/1024 of the contract's, so that shares of them are exact enough. At kUnit, virtual time runs
  // as fast as time; it has the unit of time (picoseconds) but is never compared with an instant.
  static constexpr std::int64_t kUnit = 1024 * 1024;

  enum class State : std::uint8_t { kAway, kWaiting, kRunning };

  FairScheduler(HostView& host, const FairParams& params);

  // What the order within a queue does when something happens. `pcpu` has been charged; counts and states (runnable,
  // load, current, weight) already include the change, the vCPU's pcpu() is still the previous one.
  virtual void join(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) = 0;
  virtual void leave(VcpuIndex vcpu, PcpuId pcpu) = 0;   // a waiting vCPU no longer is
  virtual void detach(VcpuIndex vcpu, PcpuId from) = 0;  // a waiting vCPU migrates ...
  virtual void attach(VcpuIndex vcpu, PcpuId to) = 0;
  virtual void halted(VcpuIndex vcpu, PcpuId pcpu) = 0;                 // the running vCPU
  virtual void advance(VcpuIndex vcpu, PcpuId pcpu, Duration ran) = 0;  // the running vCPU, until now
  virtual void yielded(VcpuIndex vcpu, PcpuId pcpu) = 0;                // the running vCPU, which is not alone
  virtual void prefer(VcpuIndex target, PcpuId pcpu) = 0;               // yield_to
  virtual VcpuIndex take_next(PcpuId pcpu) = 0;                         // out of its queue; kNoVcpu if none is ready
  virtual bool outdoes_current(VcpuIndex vcpu, PcpuId pcpu) = 0;        // preemption by a vCPU that just came
  virtual SimTime time_up(PcpuId pcpu) const = 0;                       // the current vCPU's, unless things change
  virtual bool tick(PcpuId pcpu) = 0;                                   // is it?
  virtual void reweigh(VcpuIndex vcpu, std::int64_t weight) = 0;        // also calls set_weight
  virtual const RunQueue& waiting(PcpuId pcpu) const = 0;               // may contain vCPUs that are not kWaiting
  virtual PcpuId lingers_on(VcpuIndex) const { return kNoPcpu; }        // halted, but kept in a queue

  SimTime now() const { return host_.now(); }
  Duration tick_period() const { return tick_; }
  SimTime tick_at_or_after(PcpuId pcpu, SimTime time) const;
  std::int64_t scale() const { return scale_; }

  State state(VcpuIndex vcpu) const { return vcpus_[vcpu].state; }
  std::int64_t weight(VcpuIndex vcpu) const { return vcpus_[vcpu].weight; }
  PcpuId home(VcpuIndex vcpu) const { return vcpus_[vcpu].pcpu; }
  VcpuIndex current(PcpuId pcpu) const { return queue(pcpu).current; }
  std::int64_t load(PcpuId pcpu) const { return queue(pcpu).load; }
  std::size_t runnable(PcpuId pcpu) const { return queue(pcpu).runnable; }
  SimTime charged_until(PcpuId pcpu) const { return queue(pcpu).charged_until; }
  void set_weight(VcpuIndex vcpu, std::int64_t weight);
  void decide_anew(PcpuId pcpu) { queue(pcpu).decide_anew = true; }

  // Time at `weight` to virtual time, rounded down, and back, rounded up: what has been promised is not given early.
  static std::int64_t to_virtual(Duration time, std::int64_t weight) {
    if (weight == kUnit) return time.count();
    return static_cast<std::int64_t>(static_cast<detail::Int128>(time.count()) * kUnit / weight);
  }
  static Duration to_real(std::int64_t virtual_time, std::int64_t weight) {
    if (weight == kUnit) return Duration{virtual_time};
    const detail::Int128 scaled = static_cast<detail::Int128>(virtual_time) * weight;
    return Duration{static_cast<std::int64_t>(scaled <= 0 ? scaled / kUnit : (scaled + kUnit - 1) / kUnit)};
  }

 private:
  // For how long back at most the time that a vCPU ran is compared with that of others; half of it at least.
  static constexpr Duration kMemory = std::chrono::seconds(8);

  // What came of an attempt: affinity or fairness forbids, all that fits is too heavy or cache-hot, some were moved.
  enum class Pulled : std::uint8_t { kOnlyPinned, kFair, kNone, kOnlyHot, kSome };
  enum class Idle : std::uint8_t { kNot, kIdle, kNewly };

  struct PerVcpu {
    State state = State::kAway;
    PcpuId pcpu = kNoPcpu;  // whose queue it is in, runs on, or was in last
    Enqueue why = Enqueue::kNew;
    std::int64_t weight = kUnit;
    SimTime ran_until = SimTime::min();
    Duration observed_until{};  // by contended_so_far
    Duration ready_lately{};    // up to then, running included
    Duration ran_lately{};
    PcpuMask affinity;
  };

  struct BalanceState {
    SimTime last = kTimeZero;
    std::int64_t interval_ms = 1;
    std::int64_t failed = 0;    // attempts in a row that found nothing to move
    std::int64_t repeated = 0;  // attempts in a row that found only cache-hot vCPUs, and are repeated at the next tick
  };

  struct Queue {
    VcpuIndex current = kNoVcpu;
    SimTime charged_until = kTimeZero;
    Duration charged_ahead{};  // of what the host has charged for
    std::size_t runnable = 0;  // current included
    std::int64_t load = 0;     // weights of these
    bool decide_anew = false;
    bool idle = true;     // as of the last pick
    bool kicked = false;  // to balance for all idle pCPUs
    bool contended = false;
    SimTime ticked = SimTime::min();
    SimTime idle_since = SimTime::min();  // never was
    Duration average_idle{};
    std::array<BalanceState, Domains::kLevels> levels;  // in the order of Domains::of
  };

  struct Group {
    PcpuRange span;
    std::int64_t runnable = 0;
    std::int64_t load = 0;
    std::int64_t idle = 0;
    bool excluded = false;  // affinity forbids
    bool chosen = false;    // as busy as the busiest
    std::int64_t size() const { return span.size(); }
    int kind() const { return runnable < size() ? 0 : runnable == size() ? 1 : 2; }  // spare, full, overloaded
  };

  // How much has to move, in vCPUs or in load.
  struct Imbalance {
    bool by_load = false;
    std::int64_t amount = 0;
  };

  Queue& queue(PcpuId pcpu) { return queues_[index_of(pcpu)]; }
  const Queue& queue(PcpuId pcpu) const { return queues_[index_of(pcpu)]; }

  void settle(PcpuId pcpu);
  void observe(VcpuIndex vcpu);
  std::int64_t service(VcpuIndex vcpu) const;
  std::int64_t total_service(PcpuId pcpu) const;
  void count_in(VcpuIndex vcpu, PcpuId pcpu, State state);
  void count_out(VcpuIndex vcpu, PcpuId pcpu);
  void update_idle_mask(PcpuId pcpu);
  void count_overloaded(int change);
  Duration contended_so_far() const;
  void vm_changed(VcpuIndex vcpu, int change);
  std::int64_t effective_weight(VcpuIndex vcpu) const;

  PcpuId idlest(VcpuIndex vcpu) const;
  PcpuId idle_near(VcpuIndex vcpu, PcpuId previous, PcpuId target) const;
  bool prefers_waker(VcpuIndex vcpu, PcpuId previous, PcpuId waker) const;

  Duration balance_interval(PcpuId pcpu, std::size_t level, bool busy) const;
  SimTime idle_balance_due(PcpuId pcpu) const;
  SimTime balance_due(PcpuId pcpu) const;
  bool has_work_for(PcpuId overloaded, PcpuId idle) const;
  void watch_idle();
  SimTime kick_tick(SimTime from) const;
  void balance_all_idle(PcpuId pcpu);
  bool balance_levels(PcpuId pcpu, bool idle);
  bool leads(PcpuId pcpu, const Domains::Domain& domain) const;
  bool balance(PcpuId to, std::size_t level, Idle why);
  Imbalance measure(const Group& local, const Group& busiest, const Group& total, const Domains::Domain& domain,
                    Idle why) const;
  Pulled pull(PcpuId to, Imbalance imbalance, const Domains::Domain& domain, const BalanceState& attempts, Idle why);
  bool pull_stranded(PcpuId to, std::int64_t failed, bool& only_hot);
  void migrate(VcpuIndex vcpu, PcpuId from, PcpuId to);

  HostView& host_;
  FairParams params_;
  Domains domains_;
  Duration tick_;
  std::int64_t scale_;
  std::vector<PerVcpu> vcpus_;
  std::vector<Queue> queues_;
  PcpuMask idle_;                // nothing runs and nothing waits
  bool watching_ = false;        // the timer is set
  std::int64_t overloaded_ = 0;  // pCPUs with two or more
  Duration contended_{};         // time with any of these, until ...
  SimTime contended_since_ = kTimeZero;
  std::vector<std::vector<VcpuIndex>> vms_;  // by VM: its vCPUs
  std::vector<std::int64_t> vm_runnable_;
  std::vector<Group> groups_;  // of the domain being balanced
};

}  // namespace vcpusim
