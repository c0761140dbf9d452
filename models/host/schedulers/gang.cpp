// Strict gang scheduling: the vCPUs of a VM run all together or not at all.
//
// Source      Ousterhout, "Scheduling techniques for concurrent systems", ICDCS 1982; the co-scheduling of early ESX
// Models      time slots over the whole host. At the start of a slot the gangs are taken in the order of the time that
//             they have had by weight, the least served first, and each is dispatched if pCPUs for all of its vCPUs
//             that are not halted are left over by those before it, as affinity allows. So the first in order always
//             runs and no gang starves however many pCPUs it needs; the others fill what remains. The slot lasts the
//             quantum times the first gang's weight / 1024, and all give way together at its end. Within a slot the
//             gangs keep that order: a vCPU that wakes joins its gang at once on a free pCPU or on one of a gang
//             behind it, which then goes as a whole; if neither will do, its own gang goes. A pCPU whose vCPU halts is
//             offered to waiting gangs that fit whole.
// Leaves out  variants that keep the pCPU of a halted vCPU for its gang; packing better than first fit
// Shows       no holder or waiter of a lock is preempted without its siblings; pCPUs idle although vCPUs are ready
// Deviations  a VM with more vCPUs than pCPUs that it may use cannot be a gang: it is cut, in the order of its vCPUs,
//             into gangs that each fit; a gang's weight is the mean of its vCPUs'
// yield_to    not honoured: a sibling runs already, and another VM has to wait for its slot
#include <algorithm>
#include <vector>

#include "models/host/scheduler.h"

namespace vcpusim {

namespace {

class Gang final : public HostScheduler {
 public:
  struct Params {
    Duration quantum = std::chrono::milliseconds(10);
    void describe(ParamVisitor& visitor) {
      visitor.duration("quantum", quantum, kPositiveDuration,
                       "length of a slot for weight 1024 (10 ms is an estimate, no product's value)");
    }
  };

  Gang(HostView& host, const Params& params)
      : host_(host),
        params_(params),
        pcpus_(host.machine().pcpus()),
        vcpus_(host.vcpus().size()),
        free_(host.machine().pcpus()) {
    make_gangs();
    dispatched_.reserve(gangs_.size());
    waiting_.reserve(gangs_.size());
    costopped_.reserve(vcpus_.size());
    changed_.reserve(pcpus_.size() + 1);
  }

  PcpuId place(VcpuIndex vcpu, PcpuId previous, PcpuId) override {
    const PcpuSet& allowed = affinity(vcpu);
    const bool may_stay = previous != kNoPcpu && allowed.contains(previous);
    if (may_stay && pcpus_[index_of(previous)].assigned == kNoVcpu) return previous;
    PcpuId first = kNoPcpu;
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      if (!allowed.contains(PcpuId{i})) continue;
      if (pcpus_[i].assigned == kNoVcpu) return PcpuId{i};
      if (first == kNoPcpu) first = PcpuId{i};
    }
    return may_stay ? previous : first;
  }

  void enqueue(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) override {
    PerVcpu& v = vcpus_[vcpu];
    v.pcpu = pcpu;
    v.waiting = true;
    ++pcpus_[index_of(pcpu)].waiting;
    if (why == Enqueue::kPreempted || why == Enqueue::kYielded) {
      pcpus_[index_of(pcpu)].picked = kNoVcpu;
      // Its slot goes on, on another pCPU that has waited for it.
      if (v.assigned != kNoPcpu && v.assigned != pcpu) host_.reschedule(v.assigned);
    } else {
      join(vcpu);
    }
    note_costops();
  }

  bool preempts(VcpuIndex vcpu, PcpuId pcpu) override { return vcpus_[vcpu].assigned == pcpu; }

  void dequeue(VcpuIndex vcpu) override {
    stop_waiting(vcpu);
    leave(vcpu);
    fill();
    note_costops();
  }

  void charge(VcpuIndex, PcpuId, Duration) override {}

  void blocked(VcpuIndex vcpu, PcpuId pcpu) override {
    pcpus_[index_of(pcpu)].picked = kNoVcpu;
    leave(vcpu);
  }

  VcpuIndex pick(PcpuId pcpu) override {
    PerPcpu& here = pcpus_[index_of(pcpu)];
    deciding_ = pcpu;
    if (here.picked != kNoVcpu) {
      // Picked just now and not let run by the host.
      leave(here.picked);
      here.picked = kNoVcpu;
    }
    if (host_.now() >= slot_end_) {
      begin_slot();
    } else if (here.assigned == kNoVcpu) {
      fill();
    }
    const VcpuIndex next = here.assigned;
    // Who still runs on another pCPU comes when it has left that one: enqueue() calls this pCPU again.
    if (next != kNoVcpu && vcpus_[next].waiting) {
      stop_waiting(next);
      vcpus_[next].pcpu = pcpu;
      here.picked = next;
    }
    note_costops();
    deciding_ = kNoPcpu;
    return here.picked;
  }

  SimTime next_check(PcpuId pcpu) override {
    if (pcpus_[index_of(pcpu)].assigned != host_.running_on(pcpu)) return host_.now();
    return std::max(host_.now(), slot_end_);
  }
  bool check(PcpuId pcpu) override {
    if (host_.now() >= slot_end_) begin_slot();
    return pcpus_[index_of(pcpu)].assigned != host_.running_on(pcpu);
  }

  void yield(VcpuIndex, PcpuId) override {}
  bool yield_to(VcpuIndex, VcpuIndex) override { return false; }
  bool directs_yields() const override { return false; }

  std::size_t runnable_on(PcpuId pcpu) const override {
    return pcpus_[index_of(pcpu)].waiting + (host_.running_on(pcpu) == kNoVcpu ? 0 : 1);
  }
  PcpuId queue_of(VcpuIndex vcpu) const override { return vcpus_[vcpu].pcpu; }

 private:
  using GangIndex = std::uint32_t;

  struct PerVcpu {
    GangIndex gang = 0;
    PcpuId pcpu = kNoPcpu;      // where it waits, runs, or ran last
    PcpuId assigned = kNoPcpu;  // where it is to run in this slot
    bool ready = false;         // waiting or running
    bool waiting = false;
    bool costopped = false;
    std::uint64_t held_back = 0;  // searches_ when it was last found to be
  };
  struct PerPcpu {
    VcpuIndex assigned = kNoVcpu;
    VcpuIndex picked = kNoVcpu;
    std::size_t waiting = 0;
    std::uint64_t visited = 0;  // searches_ when it was last looked at
  };
  struct OneGang {
    std::vector<VcpuIndex> vcpus;
    std::int64_t weight = 0;
    std::size_t ready = 0;
    bool dispatched = false;
    SimTime since = kTimeZero;  // up to which `served` is complete, while dispatched
    Duration served{};          // time in slots, times 1024 / weight
  };

  const PcpuSet& affinity(VcpuIndex vcpu) const { return host_.vcpus()[vcpu].affinity; }

  void make_gangs() {
    std::uint32_t vms = 0;
    for (const SchedulableVcpu& v : host_.vcpus()) vms = std::max(vms, v.vm + 1);
    std::vector<std::vector<VcpuIndex>> by_vm(vms);
    for (VcpuIndex v = 0; v < vcpus_.size(); ++v) by_vm[host_.vcpus()[v].vm].push_back(v);
    std::vector<VcpuIndex> rest;
    for (std::vector<VcpuIndex>& vm : by_vm) {
      while (!vm.empty()) {
        OneGang gang;
        rest.clear();
        for (const VcpuIndex v : vm) {
          if (assign(v)) {
            gang.vcpus.push_back(v);
            gang.weight += host_.vcpus()[v].weight;
            vcpus_[v].gang = static_cast<GangIndex>(gangs_.size());
          } else {
            rest.push_back(v);
          }
        }
        for (const VcpuIndex v : gang.vcpus) unassign(v);
        gang.weight /= static_cast<std::int64_t>(gang.vcpus.size());
        gangs_.push_back(std::move(gang));
        vm.swap(rest);
      }
    }
  }

  // --- Which pCPU for which vCPU

  void unassign(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    if (v.assigned == kNoPcpu) return;
    pcpus_[index_of(v.assigned)].assigned = kNoVcpu;
    v.assigned = kNoPcpu;
    ++free_;
  }
  void give(PcpuId pcpu, VcpuIndex vcpu) {
    pcpus_[index_of(pcpu)].assigned = vcpu;
    vcpus_[vcpu].assigned = pcpu;
    --free_;
  }

  // Onto a free pCPU: where it runs or ran last, if possible.
  bool assign_free(VcpuIndex vcpu) {
    if (free_ == 0) return false;
    const PcpuSet& allowed = affinity(vcpu);
    const PcpuId last = vcpus_[vcpu].pcpu;
    if (last != kNoPcpu && allowed.contains(last) && pcpus_[index_of(last)].assigned == kNoVcpu) {
      give(last, vcpu);
      return true;
    }
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      if (pcpus_[i].assigned != kNoVcpu || !allowed.contains(PcpuId{i})) continue;
      give(PcpuId{i}, vcpu);
      return true;
    }
    return false;
  }

  // Finds a pCPU for `vcpu`, moving others to other pCPUs if need be, so that nobody loses his (an augmenting path).
  bool assign(VcpuIndex vcpu) {
    if (assign_free(vcpu)) return true;
    if (free_ == 0) return false;
    ++searches_;
    return assign_by_moving(vcpu);
  }
  bool assign_by_moving(VcpuIndex vcpu) {
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      PerPcpu& pcpu = pcpus_[i];
      if (pcpu.visited == searches_ || !affinity(vcpu).contains(PcpuId{i})) continue;
      pcpu.visited = searches_;
      if (pcpu.assigned == kNoVcpu) {
        --free_;
      } else if (!assign_by_moving(pcpu.assigned)) {
        continue;
      }
      pcpu.assigned = vcpu;
      vcpus_[vcpu].assigned = PcpuId{i};
      return true;
    }
    return false;
  }

  // All ready vCPUs of a gang or none.
  enum class Moving : bool { kNobody, kOthers };
  bool assign_whole(const OneGang& gang, Moving moving) {
    if (gang.ready > free_) return false;
    for (const VcpuIndex v : gang.vcpus) {
      if (!vcpus_[v].ready) continue;
      if (moving == Moving::kOthers ? assign(v) : assign_free(v)) continue;
      for (const VcpuIndex w : gang.vcpus) unassign(w);
      return false;
    }
    return true;
  }

  // --- Which gangs

  // Least served first, of equals the one that has waited for longest.
  void add_waiting(GangIndex index) {
    const auto position = std::upper_bound(waiting_.begin(), waiting_.end(), index, [this](GangIndex a, GangIndex b) {
      return gangs_[a].served < gangs_[b].served;
    });
    waiting_.insert(position, index);
  }
  Duration served_so_far(const OneGang& gang) const {
    return gang.served + (gang.dispatched ? (host_.now() - gang.since) * 1024 / gang.weight : Duration::zero());
  }
  // Of the gangs that want to run; never goes back. A gang that sleeps most of the time does not keep it down.
  void update_least_served() {
    Duration least = Duration::max();
    if (!waiting_.empty()) least = gangs_[waiting_.front()].served;
    for (const GangIndex g : dispatched_) least = std::min(least, served_so_far(gangs_[g]));
    if (!waiting_.empty() || !dispatched_.empty()) least_served_ = std::max(least_served_, least);
  }
  void dispatch(GangIndex index) {
    OneGang& gang = gangs_[index];
    gang.dispatched = true;
    gang.since = host_.now();
    dispatched_.push_back(index);
    for (const VcpuIndex v : gang.vcpus) set_costopped(v, false);
  }
  // It is still in dispatched_.
  void undispatch(GangIndex index) {
    OneGang& gang = gangs_[index];
    gang.served = served_so_far(gang);
    gang.dispatched = false;
    for (const VcpuIndex v : gang.vcpus) unassign(v);
    if (gang.ready > 0) add_waiting(index);
  }

  void begin_slot() {
    for (const GangIndex g : dispatched_) undispatch(g);
    dispatched_.clear();
    if (waiting_.empty()) return;
    const OneGang& first = gangs_[waiting_.front()];
    slot_end_ = host_.now() + std::max(Duration{1}, params_.quantum * first.weight / 1024);
    std::erase_if(waiting_, [this](GangIndex g) {
      if (!assign_whole(gangs_[g], Moving::kOthers)) return false;
      dispatch(g);
      return true;
    });
    // A busy pCPU's own check is due now.
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      if (host_.running_on(PcpuId{i}) == kNoVcpu) call(PcpuId{i});
    }
  }

  // Gangs that fit whole into the pCPUs that are free.
  void fill() {
    if (dispatched_.empty()) {
      begin_slot();
      return;
    }
    if (free_ == 0 || waiting_.empty()) return;
    std::erase_if(waiting_, [this](GangIndex g) {
      if (!assign_whole(gangs_[g], Moving::kNobody)) return false;
      dispatch(g);
      for (const VcpuIndex v : gangs_[g].vcpus) call(vcpus_[v].assigned);
      return true;
    });
  }

  // `vcpu` has woken within its gang's slot and no pCPU is free for it: the last ones in the order of the slot go until
  // it fits, at the worst its own.
  void make_room(VcpuIndex vcpu) {
    const GangIndex own = vcpus_[vcpu].gang;
    changed_.clear();
    bool moved = false;
    while (gangs_[own].dispatched && vcpus_[vcpu].assigned == kNoPcpu) {
      const GangIndex last = dispatched_.back();
      for (const VcpuIndex v : gangs_[last].vcpus) {
        if (vcpus_[v].assigned != kNoPcpu) changed_.push_back(vcpus_[v].assigned);
      }
      dispatched_.pop_back();
      undispatch(last);
      if (last == own || assign_free(vcpu)) continue;
      moved = assign(vcpu) || moved;
    }
    if (vcpus_[vcpu].assigned != kNoPcpu) changed_.push_back(vcpus_[vcpu].assigned);
    fill();
    if (!moved) {
      for (const PcpuId pcpu : changed_) call(pcpu);
    } else {
      for (std::uint32_t i = 0; i < pcpus_.size(); ++i) call(PcpuId{i});
    }
  }

  void join(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    OneGang& gang = gangs_[v.gang];
    v.ready = true;
    ++gang.ready;
    if (gang.dispatched) {
      if (assign_free(vcpu)) {
        call(v.assigned);
      } else {
        make_room(vcpu);
      }
      return;
    }
    if (gang.ready == 1) {
      // Who has slept has no claim to the time that it did not use.
      update_least_served();
      gang.served = std::max(gang.served, least_served_);
      add_waiting(v.gang);
    }
    fill();
  }

  void leave(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    OneGang& gang = gangs_[v.gang];
    v.ready = false;
    unassign(vcpu);
    if (--gang.ready > 0) return;
    if (gang.dispatched) {
      undispatch(v.gang);
      std::erase(dispatched_, v.gang);
    } else {
      std::erase(waiting_, v.gang);
    }
  }

  void stop_waiting(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    v.waiting = false;
    --pcpus_[index_of(v.pcpu)].waiting;
    set_costopped(vcpu, false);
  }

  // Has `pcpu` decide if it does not run whom it should, unless that one has yet to leave another pCPU.
  void call(PcpuId pcpu) {
    if (pcpu == kNoPcpu || pcpu == deciding_) return;
    const VcpuIndex assigned = pcpus_[index_of(pcpu)].assigned;
    const VcpuIndex running = host_.running_on(pcpu);
    if (assigned == running) return;
    if (running == kNoVcpu && !vcpus_[assigned].waiting) return;
    host_.reschedule(pcpu);
  }

  // --- Accounts: as many vCPUs as there are idle pCPUs for them are held back by the rule, not by lack of pCPUs.

  void note_costops() {
    if (free_ == 0 && costopped_.empty()) return;
    std::erase_if(costopped_, [this](VcpuIndex v) { return !vcpus_[v].costopped; });
    ++searches_;
    std::size_t free = free_;
    for (const GangIndex g : waiting_) {
      for (const VcpuIndex v : gangs_[g].vcpus) {
        if (!vcpus_[v].waiting) continue;
        for (std::uint32_t i = 0; i < pcpus_.size() && free > 0; ++i) {
          PerPcpu& pcpu = pcpus_[i];
          if (pcpu.assigned != kNoVcpu || pcpu.visited == searches_ || !affinity(v).contains(PcpuId{i})) continue;
          pcpu.visited = searches_;
          vcpus_[v].held_back = searches_;
          if (!vcpus_[v].costopped) costopped_.push_back(v);
          set_costopped(v, true);
          --free;
          break;
        }
      }
      if (free == 0) break;
    }
    std::erase_if(costopped_, [this](VcpuIndex v) {
      if (vcpus_[v].held_back == searches_) return false;
      set_costopped(v, false);
      return true;
    });
  }
  void set_costopped(VcpuIndex vcpu, bool costopped) {
    PerVcpu& v = vcpus_[vcpu];
    if (v.costopped == costopped) return;
    v.costopped = costopped;
    host_.set_costopped(vcpu, costopped);
  }

  HostView& host_;
  Params params_;
  std::vector<PerPcpu> pcpus_;
  std::vector<PerVcpu> vcpus_;
  std::vector<OneGang> gangs_;
  std::vector<GangIndex> dispatched_;  // in the order of the present slot
  std::vector<GangIndex> waiting_;     // with a ready vCPU, see add_waiting()
  std::size_t free_;                   // pCPUs to which nobody is assigned
  SimTime slot_end_ = kTimeZero;
  Duration least_served_{};    // see update_least_served()
  PcpuId deciding_ = kNoPcpu;  // within pick()
  std::uint64_t searches_ = 0;
  std::vector<VcpuIndex> costopped_;  // all that are, and some that have been since the last note_costops()
  std::vector<PcpuId> changed_;       // scratch of make_room()
};

}  // namespace

namespace schedulers {
SchedulerKind gang() {
  return scheduler_kind<Gang>("gang", "strict gang scheduling: all vCPUs of a VM at once or none",
                              "Ousterhout, ICDCS 1982; quantum estimated");
}
}  // namespace schedulers

}  // namespace vcpusim
