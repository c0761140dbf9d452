// CFS: the vCPU that has run least, by weight, runs next.
//
// Source      Linux 5.10, kernel/sched/fair.c; the rules are those of all kernels up to 6.5
// Models      vruntime; slices of sched_latency by share of weight, looked at in the tick; placement of woken vCPUs
// half
//             a latency before the others; wake-up preemption; next, last and skip buddies; ticks, placement and load
//             balancing as in fair.h
// Leaves out  nested groups (see group_by_vm), SCHED_BATCH and SCHED_IDLE, high-resolution preemption (HRTICK, off by
//             default), what fair.h leaves out
// Shows       a vCPU that was halted preempts a busy one at once, because it is up to half a latency behind; two hogs
//             alternate in stints of a slice (12 ms on 8 pCPUs and more) rounded up to more than that in ticks
// yield_to    the target becomes next buddy of its queue, the caller skip buddy of its own. The next buddy is taken
//             only if it is at most wakeup_granularity ahead of the vCPU that has run least: otherwise the hint has no
//             effect although the caller has given up its pCPU
#include <algorithm>
#include <utility>
#include <vector>

#include "models/host/schedulers/fair.h"

namespace vcpusim {

namespace {

class Cfs final : public FairScheduler {
 public:
  struct Params {
    Duration sched_latency = std::chrono::milliseconds(6);
    Duration min_granularity = std::chrono::microseconds(750);
    Duration wakeup_granularity = std::chrono::milliseconds(1);
    std::int64_t nr_latency = 8;
    bool gentle_sleepers = true;
    bool start_debit = true;
    bool wakeup_preemption = true;
    bool last_buddy = true;
    FairParams fair;

    void describe(ParamVisitor& visitor) {
      visitor.duration("sched_latency", sched_latency, kPositiveDuration,
                       "time in which each of a few runnable vCPUs runs once, before scaling (5.10: 6 ms)");
      visitor.duration("min_granularity", min_granularity, kPositiveDuration,
                       "shortest stint before a tick preempts, before scaling (5.10: 0.75 ms)");
      visitor.duration("wakeup_granularity", wakeup_granularity, kAnyDuration,
                       "lead that a woken vCPU needs to preempt, and a buddy may lack, before scaling (5.10: 1 ms)");
      visitor.integer("nr_latency", nr_latency, {1, 1'000'000},
                      "with more runnable vCPUs, the latency grows by min_granularity each (5.10: 8)");
      visitor.flag("gentle_sleepers", gentle_sleepers,
                   "halted vCPUs are credited half a latency instead of a whole one (GENTLE_FAIR_SLEEPERS, on)");
      visitor.flag("start_debit", start_debit, "new vCPUs start one slice behind (START_DEBIT, on)");
      visitor.flag("wakeup_preemption", wakeup_preemption, "woken vCPUs may preempt (WAKEUP_PREEMPTION, on)");
      visitor.flag(
          "last_buddy", last_buddy,
          "with nr_latency runnable vCPUs, the one that was preempted by a wake-up is preferred (LAST_BUDDY, on)");
      fair.describe(visitor);
    }
  };

  Cfs(HostView& host, const Params& params)
      : FairScheduler(host, params.fair),
        params_(params),
        latency_(params.sched_latency * scale()),
        min_granularity_(params.min_granularity * scale()),
        wakeup_granularity_(params.wakeup_granularity * scale()),
        vcpus_(host.vcpus().size()),
        queues_(host.machine().pcpus()) {}

 protected:
  void join(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) override {
    Queue& q = queue(pcpu);
    PerVcpu& v = vcpus_[vcpu];
    switch (why) {
      case Enqueue::kPreempted:
      case Enqueue::kYielded:
        q.previous = vcpu;
        break;
      case Enqueue::kNew:
        v.vruntime = q.min_vruntime;
        if (params_.start_debit) v.vruntime += to_virtual(slice(vcpu, pcpu), weight(vcpu));
        break;
      case Enqueue::kWoken:
      case Enqueue::kReleased: {
        if (home(vcpu) != pcpu) v.vruntime += q.min_vruntime - queue(home(vcpu)).min_vruntime;
        const Duration credit = params_.gentle_sleepers ? latency_ / 2 : latency_;
        v.vruntime = std::max(v.vruntime, q.min_vruntime - credit.count());
        break;
      }
    }
    insert(vcpu, q);
  }

  void leave(VcpuIndex vcpu, PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    q.ready.erase(vcpus_[vcpu].vruntime, vcpu);
    forget_buddy(q, vcpu);
    update_min(pcpu);
  }

  void detach(VcpuIndex vcpu, PcpuId from) override {
    leave(vcpu, from);
    vcpus_[vcpu].vruntime -= queue(from).min_vruntime;
  }
  void attach(VcpuIndex vcpu, PcpuId to) override {
    vcpus_[vcpu].vruntime += queue(to).min_vruntime;
    insert(vcpu, queue(to));
  }

  void halted(VcpuIndex vcpu, PcpuId pcpu) override {
    forget_buddy(queue(pcpu), vcpu);
    update_min(pcpu);
  }

  void advance(VcpuIndex vcpu, PcpuId pcpu, Duration ran) override {
    vcpus_[vcpu].vruntime += to_virtual(ran, weight(vcpu));
    vcpus_[vcpu].stint += ran;
    update_min(pcpu);
  }

  void yielded(VcpuIndex vcpu, PcpuId pcpu) override {
    forget_buddy(queue(pcpu), vcpu);
    queue(pcpu).skip = vcpu;
  }
  void prefer(VcpuIndex target, PcpuId pcpu) override { queue(pcpu).next = target; }

  // pick_next_entity()
  VcpuIndex take_next(PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    const VcpuIndex previous = std::exchange(q.previous, kNoVcpu);
    if (q.ready.empty()) return kNoVcpu;
    const RunQueue::Entry left = q.ready.front();
    VcpuIndex chosen = left.vcpu;
    if (q.skip == chosen && q.ready.size() > 1 && near_enough(q.ready[1].vcpu, left)) chosen = q.ready[1].vcpu;
    if (q.next != kNoVcpu && near_enough(q.next, left)) {
      chosen = q.next;
    } else if (q.last != kNoVcpu && near_enough(q.last, left)) {
      chosen = q.last;
    }
    forget_buddy(q, chosen);
    q.ready.erase(vcpus_[chosen].vruntime, chosen);
    if (chosen != previous) vcpus_[chosen].stint = Duration::zero();
    return chosen;
  }

  // check_preempt_wakeup()
  bool outdoes_current(VcpuIndex vcpu, PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    if (!params_.wakeup_preemption) return false;
    const std::int64_t lead = vcpus_[current(pcpu)].vruntime - vcpus_[vcpu].vruntime;
    if (lead <= 0 || lead <= granularity(vcpu)) return false;
    q.next = vcpu;
    if (params_.last_buddy && static_cast<std::int64_t>(runnable(pcpu)) >= params_.nr_latency) q.last = current(pcpu);
    return true;
  }

  // check_preempt_tick(): the present vCPU has had more than its slice, or is more than a slice ahead. That second
  // comparison is of virtual time with time, as in the original.
  bool tick(PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    const VcpuIndex vcpu = current(pcpu);
    if (q.ready.empty()) return false;
    const Duration mine = slice(vcpu, pcpu);
    if (vcpus_[vcpu].stint > mine) {
      forget_buddy(q, vcpu);
      return true;
    }
    if (vcpus_[vcpu].stint < min_granularity_) return false;
    return vcpus_[vcpu].vruntime - q.ready.front().vruntime > mine.count();
  }

  SimTime time_up(PcpuId pcpu) const override {
    const VcpuIndex vcpu = current(pcpu);
    const PerVcpu& v = vcpus_[vcpu];
    const Duration mine = slice(vcpu, pcpu);
    const Duration until_used = mine + Duration{1} - v.stint;
    const std::int64_t lead = v.vruntime - queue(pcpu).ready.front().vruntime;
    const Duration until_ahead = std::max(min_granularity_ - v.stint, to_real(mine.count() + 1 - lead, weight(vcpu)));
    return charged_until(pcpu) + std::max(Duration::zero(), std::min(until_used, until_ahead));
  }

  void reweigh(VcpuIndex vcpu, std::int64_t weight) override { set_weight(vcpu, weight); }

  const RunQueue& waiting(PcpuId pcpu) const override { return queues_[index_of(pcpu)].ready; }

 private:
  struct PerVcpu {
    std::int64_t vruntime = 0;
    Duration stint{};  // since another vCPU ran
  };
  struct Queue {
    RunQueue ready;
    std::int64_t min_vruntime = 0;  // never goes back
    VcpuIndex next = kNoVcpu;       // buddies; next and last wait in this queue
    VcpuIndex last = kNoVcpu;
    VcpuIndex skip = kNoVcpu;
    VcpuIndex previous = kNoVcpu;  // ran until the pick that comes
  };

  Queue& queue(PcpuId pcpu) { return queues_[index_of(pcpu)]; }
  const Queue& queue(PcpuId pcpu) const { return queues_[index_of(pcpu)]; }

  void insert(VcpuIndex vcpu, Queue& q) {
    q.ready.insert({vcpus_[vcpu].vruntime, vcpus_[vcpu].vruntime, weight(vcpu), vcpu});
  }

  static void forget_buddy(Queue& q, VcpuIndex vcpu) {
    if (q.next == vcpu) q.next = kNoVcpu;
    if (q.last == vcpu) q.last = kNoVcpu;
    if (q.skip == vcpu) q.skip = kNoVcpu;
  }

  // The granularity counts as time of the vCPU that is behind: it is less in virtual time for a heavier one.
  std::int64_t granularity(VcpuIndex vcpu) const { return to_virtual(wakeup_granularity_, weight(vcpu)); }
  bool near_enough(VcpuIndex vcpu, const RunQueue::Entry& left) const {
    return vcpus_[vcpu].vruntime - left.vruntime <= granularity(left.vcpu);
  }

  Duration slice(VcpuIndex vcpu, PcpuId pcpu) const {
    const auto runnable_here = static_cast<std::int64_t>(runnable(pcpu));
    const Duration period = runnable_here > params_.nr_latency ? min_granularity_ * runnable_here : latency_;
    return Duration{static_cast<std::int64_t>(static_cast<detail::Int128>(period.count()) * weight(vcpu) / load(pcpu))};
  }

  void update_min(PcpuId pcpu) {
    Queue& q = queue(pcpu);
    const VcpuIndex running = current(pcpu);
    if (running == kNoVcpu && q.ready.empty()) return;
    std::int64_t least = running != kNoVcpu ? vcpus_[running].vruntime : q.ready.front().vruntime;
    if (!q.ready.empty()) least = std::min(least, q.ready.front().vruntime);
    q.min_vruntime = std::max(q.min_vruntime, least);
  }

  Params params_;
  Duration latency_;
  Duration min_granularity_;
  Duration wakeup_granularity_;
  std::vector<PerVcpu> vcpus_;
  std::vector<Queue> queues_;
};

}  // namespace

namespace schedulers {
SchedulerKind cfs() {
  return scheduler_kind<Cfs>("cfs", "Linux up to 6.5: least weighted run time first",
                             "Linux 5.10, kernel/sched/fair.c");
}
}  // namespace schedulers

}  // namespace vcpusim
