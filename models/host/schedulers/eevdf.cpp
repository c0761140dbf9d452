// EEVDF: of the vCPUs that have had no more than their share, the one with the earliest virtual deadline runs next.
//
// Source      Linux 6.6 to 6.19, kernel/sched/fair.c; Stoica and Abdel-Wahab, "Earliest eligible virtual deadline
//             first", 1995
// Models      lag, eligibility, deadlines, all exactly; slices that end at a tick; placement that preserves lag;
//             RUN_TO_PARITY, DELAY_DEQUEUE, the rules of yield and yield_to of each generation; ticks, placement and
//             load balancing as in fair.h
// Leaves out  slices per task and with them PREEMPT_SHORT, nested groups (see group_by_vm), lazy preemption, what
//             fair.h leaves out
// Shows       two hogs alternate in stints of the slice rounded up to a tick; a vCPU that was halted with no lag waits
//             for the rest of a hog's slice, where cfs lets it in at once; one with positive lag gets in at once
// yield_to    the target becomes next buddy of its queue, which 6.6 and 6.12 ignore and later kernels take if it is
//             eligible, once; the caller's deadline moves a slice away (to 6.17), or it forfeits the rest of its slice
//             (6.19)
//
// The average V of the vruntimes v_i, weighted by w_i over all that wait or run, is never divided out for a comparison:
// i is eligible (v_i <= V) if v_i * sum(w) <= sum(w * v), in 128 bits.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "models/host/schedulers/fair.h"

namespace vcpusim {

namespace {

class Eevdf final : public FairScheduler {
 public:
  enum class Generation : std::uint8_t { k6_6, k6_12, k6_14, k6_17, k6_19 };
  enum class Feature : std::uint8_t { kAuto, kOff, kOn };

  struct Params {
    Generation generation = Generation::k6_17;
    Duration base_slice{};
    bool run_to_parity = true;
    bool place_lag = true;
    bool next_buddy = false;
    Feature pick_buddy = Feature::kAuto;
    Feature delay_dequeue = Feature::kAuto;
    Feature forfeit_on_yield = Feature::kAuto;
    FairParams fair;

    void describe(ParamVisitor& visitor) {
      static constexpr std::array<std::string_view, 5> kGenerations{"6.6", "6.12", "6.14", "6.17", "6.19"};
      static constexpr std::array<std::string_view, 3> kFeatures{"auto", "off", "on"};
      visitor.choice("generation", generation, kGenerations, "kernel whose rules and defaults hold, as released");
      visitor.duration(
          "base_slice", base_slice, kAnyDuration,
          "request of a vCPU, before scaling; 0: that of the generation, 0.75 ms up to 6.14, 0.7 ms from 6.17 "
          "(sysctl_sched_base_slice)");
      visitor.flag(
          "run_to_parity", run_to_parity,
          "the running vCPU is protected until its slice ends or it is no longer eligible (RUN_TO_PARITY, on)");
      visitor.flag("place_lag", place_lag, "lag survives a halt (PLACE_LAG, on)");
      visitor.flag("next_buddy", next_buddy, "prefer the vCPU that woke last, if eligible (NEXT_BUDDY, off)");
      visitor.choice("pick_buddy", pick_buddy, kFeatures,
                     "the target of yield_to is preferred, if eligible (PICK_BUDDY, on from 6.14 and in later stable "
                     "releases of 6.12)");
      visitor.choice(
          "delay_dequeue", delay_dequeue, kFeatures,
          "a vCPU that halts with negative lag stays in its queue until it is picked (DELAY_DEQUEUE, on from "
          "6.12)");
      visitor.choice("forfeit_on_yield", forfeit_on_yield, kFeatures,
                     "an eligible vCPU that yields is charged the rest of its slice (from 6.19)");
      fair.describe(visitor);
    }
  };

  Eevdf(HostView& host, const Params& params)
      : FairScheduler(host, params.fair),
        generation_(params.generation),
        run_to_parity_(params.run_to_parity),
        place_lag_(params.place_lag),
        next_buddy_(params.next_buddy),
        heed_buddy_(enabled(params.pick_buddy, Generation::k6_14) || params.next_buddy),
        delay_dequeue_(enabled(params.delay_dequeue, Generation::k6_12)),
        keep_deadline_(params.generation >= Generation::k6_12),
        forfeit_(enabled(params.forfeit_on_yield, Generation::k6_19)),
        base_slice_(params.base_slice),
        vcpus_(host.vcpus().size()),
        queues_(host.machine().pcpus()) {
    if (base_slice_ == Duration::zero()) {
      base_slice_ = std::chrono::microseconds(generation_ >= Generation::k6_17 ? 700 : 750);
    }
    slice_ = base_slice_ * scale();
  }

 protected:
  void join(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) override {
    Queue& q = queue(pcpu);
    PerVcpu& v = vcpus_[vcpu];
    switch (why) {
      case Enqueue::kPreempted:
      case Enqueue::kYielded:
        q.previous = vcpu;
        insert(vcpu, q);
        return;
      case Enqueue::kNew:
        renew_current(pcpu);
        v.lag = 0;
        v.deadline_after = virtual_slice(vcpu) / 2;  // PLACE_DEADLINE_INITIAL
        break;
      case Enqueue::kWoken:
      case Enqueue::kReleased:
        renew_current(pcpu);
        if (v.lingers) {
          // It has kept its place; lag that has become positive meanwhile is forgotten (DELAY_ZERO).
          v.lingers = false;
          if (v.vruntime >= average(pcpu)) return;
          remove(vcpu, q);
          v.lag = 0;
        }
        if (!place_lag_) v.lag = 0;
        v.deadline_after = virtual_slice(vcpu);
        break;
    }
    settle_in(vcpu, pcpu);
  }

  void leave(VcpuIndex vcpu, PcpuId pcpu) override {
    renew_current(pcpu);
    take_out(vcpu, pcpu);
  }

  void detach(VcpuIndex vcpu, PcpuId from) override {
    PerVcpu& v = vcpus_[vcpu];
    v.deadline_after = keep_deadline_ ? v.deadline - v.vruntime : virtual_slice(vcpu);
    take_out(vcpu, from);
  }
  void attach(VcpuIndex vcpu, PcpuId to) override { settle_in(vcpu, to); }

  void halted(VcpuIndex vcpu, PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    PerVcpu& v = vcpus_[vcpu];
    if (q.next == vcpu) q.next = kNoVcpu;
    if (v.vruntime >= v.deadline) v.deadline = v.vruntime + virtual_slice(vcpu);
    insert(vcpu, q);  // it counts for the average as it did while it ran
    v.lingers = delay_dequeue_ && !eligible(v.vruntime, totals(pcpu));
    if (!v.lingers) take_out(vcpu, pcpu);
  }

  void advance(VcpuIndex vcpu, PcpuId pcpu, Duration ran) override {
    PerVcpu& v = vcpus_[vcpu];
    SimTime since = now() - ran;
    // With nobody waiting, ticks have begun new slices while nothing called us.
    while (queue(pcpu).ready.empty()) {
      const SimTime expired = tick_at_or_after(pcpu, since + to_real(v.deadline - v.vruntime, weight(vcpu)));
      if (expired > now()) break;
      // From there on once in so many ticks; skip to the last that begins before now.
      const Duration every = (slice_ + tick_period() - Duration{1}) / tick_period() * tick_period();
      const SimTime last = expired + (now() - expired) / every * every;
      v.vruntime += to_virtual(last - since, weight(vcpu));
      v.deadline = v.vruntime + virtual_slice(vcpu);
      since = last;
    }
    v.vruntime += to_virtual(now() - since, weight(vcpu));
  }

  // yield_task_fair()
  void yielded(VcpuIndex vcpu, PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    PerVcpu& v = vcpus_[vcpu];
    if (q.next == vcpu) q.next = kNoVcpu;
    renew_current(pcpu);
    if (forfeit_) {
      if (!eligible(v.vruntime, totals(pcpu))) return;
      v.vruntime = v.deadline;
      v.deadline += virtual_slice(vcpu);
    } else {
      v.deadline += virtual_slice(vcpu);
      // Protection lasts while the deadline is the one of the pick; 6.17 keeps a limit of its own, which stands.
      if (generation_ < Generation::k6_17) v.protected_until = v.vruntime;
    }
  }
  void prefer(VcpuIndex target, PcpuId pcpu) override { queue(pcpu).next = target; }

  // pick_next_entity(), pick_eevdf()
  VcpuIndex take_next(PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    const VcpuIndex previous = std::exchange(q.previous, kNoVcpu);
    while (!q.ready.empty()) {
      const Totals all = totals(pcpu);
      VcpuIndex chosen = kNoVcpu;
      if (heed_buddy_ && q.next != kNoVcpu && eligible(vcpus_[q.next].vruntime, all)) {
        chosen = q.next;
      } else if (previous != kNoVcpu && state(previous) == State::kWaiting && home(previous) == pcpu &&
                 is_protected(previous) && eligible(vcpus_[previous].vruntime, all)) {
        chosen = previous;
      } else {
        chosen = earliest_eligible(q, all);
      }
      PerVcpu& v = vcpus_[chosen];
      if (v.lingers) {
        v.lingers = false;
        take_out(chosen, pcpu);
        v.lag = std::min<std::int64_t>(v.lag, 0);  // DELAY_ZERO
        continue;
      }
      remove(chosen, q);
      if (q.next == chosen) q.next = kNoVcpu;
      if (chosen != previous) protect(chosen);
      return chosen;
    }
    return kNoVcpu;
  }

  // check_preempt_wakeup_fair(): would the newcomer win the pick?
  bool outdoes_current(VcpuIndex vcpu, PcpuId pcpu) override {
    Queue& q = queue(pcpu);
    if (next_buddy_) q.next = vcpu;
    const Totals all = totals(pcpu);
    if (heed_buddy_ && q.next != kNoVcpu && eligible(vcpus_[q.next].vruntime, all)) return q.next == vcpu;
    const PerVcpu& running = vcpus_[current(pcpu)];
    const bool running_eligible = eligible(running.vruntime, all);
    if (running_eligible && is_protected(current(pcpu))) return false;
    if (!eligible(vcpus_[vcpu].vruntime, all) || earliest_eligible(q, all) != vcpu) return false;
    return !running_eligible || vcpus_[vcpu].deadline <= running.deadline;
  }

  bool tick(PcpuId pcpu) override {
    renew_current(pcpu);
    return false;  // renew_current has asked for a decision if there is one to take
  }
  SimTime time_up(PcpuId pcpu) const override {
    const VcpuIndex vcpu = current(pcpu);
    const PerVcpu& v = vcpus_[vcpu];
    return charged_until(pcpu) + std::max(Duration::zero(), to_real(v.deadline - v.vruntime, weight(vcpu)));
  }

  // reweight_entity(): what it has had too little or too much, in time, stays the same.
  void reweigh(VcpuIndex vcpu, std::int64_t to) override {
    PerVcpu& v = vcpus_[vcpu];
    const std::int64_t from = weight(vcpu);
    const auto rescale = [=](std::int64_t x) {
      return static_cast<std::int64_t>(static_cast<detail::Int128>(x) * from / to);
    };
    const bool queued = state(vcpu) == State::kWaiting || v.lingers;
    if (!queued && state(vcpu) == State::kAway) {
      v.lag = rescale(v.lag);
      set_weight(vcpu, to);
      return;
    }
    const PcpuId pcpu = home(vcpu);
    const std::int64_t mean = average(pcpu);
    if (queued) remove(vcpu, queue(pcpu));
    const std::int64_t until_deadline = rescale(v.deadline - v.vruntime);
    const std::int64_t until_unprotected = rescale(v.protected_until - v.vruntime);
    v.vruntime = mean - rescale(mean - v.vruntime);
    v.deadline = v.vruntime + until_deadline;
    v.protected_until = v.vruntime + until_unprotected;
    set_weight(vcpu, to);
    if (queued) insert(vcpu, queue(pcpu));
  }

  const RunQueue& waiting(PcpuId pcpu) const override { return queues_[index_of(pcpu)].ready; }
  PcpuId lingers_on(VcpuIndex vcpu) const override { return vcpus_[vcpu].lingers ? home(vcpu) : kNoPcpu; }

 private:
  struct PerVcpu {
    std::int64_t vruntime = 0;
    std::int64_t deadline = 0;
    std::int64_t protected_until = 0;  // vruntime up to which it is not preempted while eligible
    std::int64_t lag = 0;              // while in no queue: by how much it was behind the average
    std::int64_t deadline_after = 0;   // distance of the deadline when it is placed
    bool lingers = false;              // halted, but still in its queue (DELAY_DEQUEUE)
  };
  struct Totals {
    detail::Int128 weighted = 0;  // sum of weight * vruntime
    std::int64_t weight = 0;
  };
  struct Queue {
    RunQueue ready;       // by deadline
    Totals waiting;       // over `ready`
    std::int64_t at = 0;  // the average when the queue was last left empty
    VcpuIndex next = kNoVcpu;
    VcpuIndex previous = kNoVcpu;  // ran until the pick that comes
  };

  Queue& queue(PcpuId pcpu) { return queues_[index_of(pcpu)]; }
  const Queue& queue(PcpuId pcpu) const { return queues_[index_of(pcpu)]; }
  bool enabled(Feature feature, Generation since) const {
    return feature == Feature::kAuto ? generation_ >= since : feature == Feature::kOn;
  }
  std::int64_t virtual_slice(VcpuIndex vcpu) const { return to_virtual(slice_, weight(vcpu)); }

  // Over those that wait and the one that runs.
  Totals totals(PcpuId pcpu) const {
    Totals sum = queue(pcpu).waiting;
    if (const VcpuIndex running = current(pcpu); running != kNoVcpu) {
      sum.weighted += static_cast<detail::Int128>(vcpus_[running].vruntime) * weight(running);
      sum.weight += weight(running);
    }
    return sum;
  }
  static bool eligible(std::int64_t vruntime, const Totals& all) {
    return static_cast<detail::Int128>(vruntime) * all.weight <= all.weighted;
  }
  // Rounded down, so that whoever is placed there is eligible.
  std::int64_t average(PcpuId pcpu) const {
    const Totals all = totals(pcpu);
    if (all.weight == 0) return queue(pcpu).at;
    const detail::Int128 quotient = all.weighted / all.weight;
    return static_cast<std::int64_t>(quotient * all.weight > all.weighted ? quotient - 1 : quotient);
  }

  void insert(VcpuIndex vcpu, Queue& q) {
    const PerVcpu& v = vcpus_[vcpu];
    q.ready.insert({v.deadline, v.vruntime, weight(vcpu), vcpu});
    q.waiting.weighted += static_cast<detail::Int128>(v.vruntime) * weight(vcpu);
    q.waiting.weight += weight(vcpu);
  }
  void remove(VcpuIndex vcpu, Queue& q) {
    const PerVcpu& v = vcpus_[vcpu];
    q.ready.erase(v.deadline, vcpu);
    q.waiting.weighted -= static_cast<detail::Int128>(v.vruntime) * weight(vcpu);
    q.waiting.weight -= weight(vcpu);
  }

  // dequeue_entity(): out of the queue, with its lag, at most two slices or a tick.
  void take_out(VcpuIndex vcpu, PcpuId pcpu) {
    Queue& q = queue(pcpu);
    PerVcpu& v = vcpus_[vcpu];
    q.at = average(pcpu);
    const std::int64_t limit = to_virtual(std::max(2 * slice_, tick_period()), weight(vcpu));
    v.lag = std::clamp(q.at - v.vruntime, -limit, limit);
    remove(vcpu, q);
    if (q.next == vcpu) q.next = kNoVcpu;
  }

  // place_entity(): so that its lag is the same once it is part of the average itself.
  void settle_in(VcpuIndex vcpu, PcpuId pcpu) {
    PerVcpu& v = vcpus_[vcpu];
    const std::int64_t others = totals(pcpu).weight;
    std::int64_t behind = 0;
    if (others != 0) {
      behind = static_cast<std::int64_t>(static_cast<detail::Int128>(v.lag) * (others + weight(vcpu)) / others);
    }
    v.vruntime = average(pcpu) - behind;
    v.deadline = v.vruntime + v.deadline_after;
    insert(vcpu, queue(pcpu));
  }

  // update_deadline(): a slice that is used up is followed by another, and by a decision if somebody waits.
  void renew_current(PcpuId pcpu) {
    const VcpuIndex vcpu = current(pcpu);
    if (vcpu == kNoVcpu || vcpus_[vcpu].vruntime < vcpus_[vcpu].deadline) return;
    vcpus_[vcpu].deadline = vcpus_[vcpu].vruntime + virtual_slice(vcpu);
    Queue& q = queue(pcpu);
    if (q.ready.empty()) return;
    if (q.next == vcpu) q.next = kNoVcpu;
    decide_anew(pcpu);
  }

  // set_next_entity(): until when the vCPU that begins to run is protected.
  void protect(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    if (run_to_parity_) {
      v.protected_until = v.deadline;
    } else if (generation_ >= Generation::k6_17) {
      v.protected_until = std::min(v.deadline, v.vruntime + to_virtual(std::min(base_slice_, slice_), weight(vcpu)));
    } else {
      v.protected_until = v.vruntime;
    }
  }
  bool is_protected(VcpuIndex vcpu) const { return vcpus_[vcpu].protected_until > vcpus_[vcpu].vruntime; }

  // There is one: the least vruntime is never above the average.
  static VcpuIndex earliest_eligible(const Queue& q, const Totals& all) {
    for (const RunQueue::Entry& entry : q.ready) {
      if (eligible(entry.vruntime, all)) return entry.vcpu;
    }
    return kNoVcpu;
  }

  Generation generation_;
  bool run_to_parity_;
  bool place_lag_;
  bool next_buddy_;
  bool heed_buddy_;
  bool delay_dequeue_;
  bool keep_deadline_;
  bool forfeit_;
  Duration base_slice_;  // before scaling
  Duration slice_{};
  std::vector<PerVcpu> vcpus_;
  std::vector<Queue> queues_;
};

}  // namespace

namespace schedulers {
SchedulerKind eevdf() {
  return scheduler_kind<Eevdf>("eevdf", "Linux from 6.6: earliest eligible virtual deadline first",
                               "Linux 6.17, kernel/sched/fair.c");
}
}  // namespace schedulers

}  // namespace vcpusim
