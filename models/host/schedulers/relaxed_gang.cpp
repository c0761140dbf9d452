// Relaxed co-scheduling: vCPUs are dispatched one by one, but those that get too far ahead of a sibling are stopped.
//
// Source      VMware, "The CPU scheduler in VMware vSphere" (relaxed co-scheduling by the skew of each vCPU); the
// numbers
//             are estimates
// Models      round robin with a queue per pCPU and a quantum by weight, which a vCPU keeps while it is held back or
//             preempted. A vCPU makes progress while it runs and while it is halted, so it falls behind its siblings by
//             the time that it is ready but does not run. When a ready vCPU is `skew` behind a running sibling, that
//             one is co-stopped, until nobody so far behind waits any more; then it is co-started, before others on its
//             pCPU. A vCPU that wakes is on a level with its most advanced sibling that is not halted. A pCPU without
//             work takes the longest-waiting vCPU of the fullest queue that may run on it.
// Leaves out  shares and reservations of the product's own base scheduler; co-starting a whole VM at once
// Shows       a sibling of a running vCPU is preempted for about `skew` instead of whole quanta, without the idle pCPUs
//             of strict gangs
// yield_to    as in round robin: the target comes next if it waits for the caller's pCPU and is not held back
#include <algorithm>
#include <utility>
#include <vector>

#include "models/host/scheduler.h"
#include "models/host/schedulers/idle_pcpus.h"
#include "models/host/schedulers/vcpu_queues.h"

namespace vcpusim {

namespace {

class RelaxedGang final : public HostScheduler {
 public:
  struct Params {
    Duration quantum = std::chrono::milliseconds(10);
    Duration skew = std::chrono::milliseconds(3);
    Duration check = std::chrono::milliseconds(1);
    void describe(ParamVisitor& visitor) {
      visitor.duration("quantum", quantum, kPositiveDuration,
                       "time on the pCPU before the next in the queue, for weight 1024 (10 ms is an estimate)");
      visitor.duration(
          "skew", skew, kPositiveDuration,
          "a vCPU that leads a waiting sibling by so much is stopped (3 ms is an estimate: the vendor says "
          "\"a few milliseconds\")");
      visitor.duration("check", check, kPositiveDuration,
                       "by how much `skew` may be exceeded if the sibling was running when it was last looked at, and "
                       "what a vCPU may run before a co-start preempts it (1 ms is an estimate)");
    }
  };

  RelaxedGang(HostView& host, const Params& params)
      : host_(host),
        params_(params),
        queues_(host.machine().pcpus(), host.vcpus().size()),
        idle_(host.machine().pcpus()),
        pcpus_(host.machine().pcpus()),
        vcpus_(host.vcpus().size()) {
    for (VcpuIndex v = 0; v < vcpus_.size(); ++v) {
      const std::uint32_t vm = host.vcpus()[v].vm;
      if (vm >= vms_.size()) vms_.resize(vm + 1);
      vms_[vm].push_back(v);
    }
  }

  PcpuId place(VcpuIndex vcpu, PcpuId previous, PcpuId) override {
    const PcpuSet& allowed = affinity(vcpu);
    const bool may_stay = previous != kNoPcpu && allowed.contains(previous);
    PcpuId best = may_stay ? previous : kNoPcpu;
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      if (best != kNoPcpu && load(PcpuId{i}) >= load(best)) continue;
      if (allowed.contains(PcpuId{i})) best = PcpuId{i};
    }
    return best;
  }

  void enqueue(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) override {
    PerVcpu& v = vcpus_[vcpu];
    PerPcpu& here = pcpus_[index_of(pcpu)];
    if (why == Enqueue::kPreempted || why == Enqueue::kYielded) {
      here.picked = kNoVcpu;
      here.returning = vcpu;
    } else {
      catch_up_with_siblings(vcpu);
    }
    v.pcpu = pcpu;
    v.state = State::kWaiting;
    v.since = host_.now();
    if (why == Enqueue::kPreempted && v.used < quantum_of(vcpu)) {
      queues_.push_front(pcpu, vcpu);
    } else {
      v.used = Duration::zero();
      queues_.push_back(pcpu, vcpu);
    }
    if (held_back(vcpu)) {
      set_costopped(vcpu, true);
      return;
    }
    stop_leaders_of(vcpu);
    if (here.returning == vcpu) return;
    if (idle_.contains(pcpu)) {
      idle_.erase(pcpu);  // it is about to pick
    } else {
      call_idle_pcpu_for(vcpu);  // though it may idle, it has been called for somebody else
    }
  }

  bool preempts(VcpuIndex, PcpuId) override { return false; }

  void dequeue(VcpuIndex vcpu) override {
    queues_.erase(vcpu);
    set_costopped(vcpu, false);
    stop_waiting(vcpu, State::kAway);
    release_siblings_of(vcpu, kNoPcpu);
  }

  void charge(VcpuIndex vcpu, PcpuId, Duration ran) override { vcpus_[vcpu].used += ran; }

  void blocked(VcpuIndex vcpu, PcpuId pcpu) override {
    pcpus_[index_of(pcpu)].picked = kNoVcpu;
    vcpus_[vcpu].state = State::kAway;
  }

  VcpuIndex pick(PcpuId pcpu) override {
    PerPcpu& here = pcpus_[index_of(pcpu)];
    // Picked just now and not let run by the host.
    if (here.picked != kNoVcpu) vcpus_[here.picked].state = State::kAway;
    const VcpuIndex next = choose(pcpu);
    const bool goes_on = next != kNoVcpu && next == here.returning;
    here.returning = kNoVcpu;
    here.picked = next;
    const VcpuIndex called_for = std::exchange(here.called_for, kNoVcpu);
    if (here.costart == next || !may_costart(pcpu)) here.costart = kNoVcpu;
    if (next == kNoVcpu) {
      idle_.insert(pcpu);
      return kNoVcpu;
    }
    idle_.erase(pcpu);
    if (!goes_on) here.since = host_.now();
    queues_.erase(next);
    set_costopped(next, false);
    stop_waiting(next, State::kRunning);
    vcpus_[next].pcpu = pcpu;
    release_siblings_of(next, pcpu);
    call_for_leftovers(pcpu, called_for);
    return next;
  }

  SimTime next_check(PcpuId pcpu) override {
    const VcpuIndex running = host_.running_on(pcpu);
    Duration left = Duration::max();
    if (!queues_.empty(pcpu)) left = quantum_of(running) - vcpus_[running].used;
    if (may_costart(pcpu)) left = std::min(left, params_.check - run_of(pcpu));
    for (const VcpuIndex u : siblings(running)) {
      if (u == running || vcpus_[u].state == State::kAway || vcpus_[u].costopped) continue;
      const Duration to_skew = params_.skew - (behind(u) - behind(running));
      // Who waits falls behind from now on. Who runs may begin to at any time: look again not before it may be late.
      left = std::min(left, vcpus_[u].state == State::kWaiting ? to_skew : std::max(to_skew, params_.check));
    }
    return left == Duration::max() ? kNever : host_.now() + std::max(Duration::zero(), left);
  }

  bool check(PcpuId pcpu) override {
    const VcpuIndex running = host_.running_on(pcpu);
    if (held_back(running)) return true;
    if (may_costart(pcpu) && run_of(pcpu) >= params_.check) return true;
    if (vcpus_[running].used < quantum_of(running)) return false;
    if (first_eligible(pcpu) != kNoVcpu) return true;
    vcpus_[running].used = Duration::zero();
    return false;
  }

  void yield(VcpuIndex, PcpuId) override {}
  bool yield_to(VcpuIndex vcpu, VcpuIndex target) override {
    const PcpuId pcpu = vcpus_[target].pcpu;
    if (host_.running_on(pcpu) != vcpu || held_back(target)) return false;
    queues_.erase(target);
    queues_.push_front(pcpu, target);
    return true;
  }

  std::size_t runnable_on(PcpuId pcpu) const override {
    return queues_.size(pcpu) + (host_.running_on(pcpu) == kNoVcpu ? 0 : 1);
  }
  PcpuId queue_of(VcpuIndex vcpu) const override { return vcpus_[vcpu].pcpu; }

 private:
  enum class State : std::uint8_t { kAway, kWaiting, kRunning };  // kAway: halted or throttled
  struct PerVcpu {
    PcpuId pcpu = kNoPcpu;
    State state = State::kAway;
    bool costopped = false;
    SimTime since = kTimeZero;  // when it began to wait, while it waits
    Duration waited{};          // all time that it was ready and did not run, but for `since`
    Duration used{};            // of its quantum
  };
  struct PerPcpu {
    VcpuIndex picked = kNoVcpu;
    VcpuIndex returning = kNoVcpu;   // ran until just now; pick() is next
    VcpuIndex costart = kNoVcpu;     // to come before others of the queue
    VcpuIndex called_for = kNoVcpu;  // for whose sake it was called while it was idle
    SimTime since = kTimeZero;       // when `picked` came
  };

  const PcpuSet& affinity(VcpuIndex vcpu) const { return host_.vcpus()[vcpu].affinity; }
  const std::vector<VcpuIndex>& siblings(VcpuIndex vcpu) const { return vms_[host_.vcpus()[vcpu].vm]; }
  Duration quantum_of(VcpuIndex vcpu) const { return params_.quantum * host_.vcpus()[vcpu].weight / 1024; }
  Duration run_of(PcpuId pcpu) const { return host_.now() - pcpus_[index_of(pcpu)].since; }

  // --- Skew

  // How far behind elapsed time its progress is; differences between siblings are their skew.
  Duration behind(VcpuIndex vcpu) const {
    const PerVcpu& v = vcpus_[vcpu];
    return v.state == State::kWaiting ? v.waited + (host_.now() - v.since) : v.waited;
  }
  bool leads_too_far(VcpuIndex leader, VcpuIndex other) const { return behind(other) - behind(leader) >= params_.skew; }
  // Whether a sibling waits that `vcpu` must not get farther ahead of. The farthest behind is never held back itself.
  bool held_back(VcpuIndex vcpu) const {
    for (const VcpuIndex u : siblings(vcpu)) {
      if (vcpus_[u].state == State::kWaiting && !vcpus_[u].costopped && leads_too_far(vcpu, u)) return true;
    }
    return false;
  }

  // A halted vCPU has progressed all the time; that is no lead over siblings that were busy and had to wait.
  void catch_up_with_siblings(VcpuIndex vcpu) {
    Duration least = Duration::max();
    for (const VcpuIndex u : siblings(vcpu)) {
      if (u != vcpu && vcpus_[u].state != State::kAway) least = std::min(least, behind(u));
    }
    if (least != Duration::max()) vcpus_[vcpu].waited = std::max(vcpus_[vcpu].waited, least);
  }

  void stop_waiting(VcpuIndex vcpu, State state) {
    vcpus_[vcpu].waited = behind(vcpu);
    vcpus_[vcpu].state = state;
  }

  // `vcpu` has begun to wait; siblings may be far ahead already.
  void stop_leaders_of(VcpuIndex vcpu) {
    for (const VcpuIndex u : siblings(vcpu)) {
      if (vcpus_[u].state == State::kRunning && leads_too_far(u, vcpu)) host_.reschedule(vcpus_[u].pcpu);
    }
  }

  // `vcpu` waits no more; `deciding` is the pCPU that is within pick().
  void release_siblings_of(VcpuIndex vcpu, PcpuId deciding) {
    for (const VcpuIndex u : siblings(vcpu)) {
      if (!vcpus_[u].costopped || held_back(u)) continue;
      set_costopped(u, false);
      const PcpuId pcpu = vcpus_[u].pcpu;
      if (pcpu == deciding) continue;
      if (idle_.contains(pcpu)) {
        idle_.erase(pcpu);
        host_.reschedule(pcpu);
        continue;
      }
      // If the pCPU idles, it has been called for somebody else.
      const VcpuIndex running = host_.running_on(pcpu);
      if (call_idle_pcpu_for(u) || running == kNoVcpu || are_siblings(running, u)) continue;
      pcpus_[index_of(pcpu)].costart = u;
      host_.reschedule(pcpu);
    }
  }
  bool are_siblings(VcpuIndex a, VcpuIndex b) const { return host_.vcpus()[a].vm == host_.vcpus()[b].vm; }

  void set_costopped(VcpuIndex vcpu, bool costopped) {
    if (vcpus_[vcpu].costopped == costopped) return;
    vcpus_[vcpu].costopped = costopped;
    host_.set_costopped(vcpu, costopped);
  }

  // --- Queues

  bool may_costart(PcpuId pcpu) const {
    const VcpuIndex costart = pcpus_[index_of(pcpu)].costart;
    if (costart == kNoVcpu) return false;
    return queues_.contains(costart) && vcpus_[costart].pcpu == pcpu && !held_back(costart);
  }

  VcpuIndex choose(PcpuId pcpu) {
    const PerPcpu& here = pcpus_[index_of(pcpu)];
    if (may_costart(pcpu)) {
      // Not at once: three VMs could otherwise co-start against each other for ever without time going by.
      const bool too_early = here.returning != kNoVcpu && run_of(pcpu) < params_.check;
      if (!too_early || held_back(here.returning)) return here.costart;
      return here.returning;
    }
    for (VcpuIndex v = queues_.front(pcpu); v != kNoVcpu; v = queues_.after(v)) {
      if (!note_held_back(v)) return v;
    }
    return find_to_steal(pcpu);
  }

  // A pCPU could run `vcpu` now: if it must not, that counts as co-stopped.
  bool note_held_back(VcpuIndex vcpu) {
    const bool held = held_back(vcpu);
    if (held) set_costopped(vcpu, true);
    return held;
  }

  VcpuIndex first_eligible(PcpuId pcpu) const {
    for (VcpuIndex v = queues_.front(pcpu); v != kNoVcpu; v = queues_.after(v)) {
      if (!held_back(v)) return v;
    }
    return kNoVcpu;
  }

  VcpuIndex find_to_steal(PcpuId pcpu) {
    if (queues_.size() == queues_.size(pcpu)) return kNoVcpu;
    VcpuIndex found = kNoVcpu;
    std::size_t fullest = 0;
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      const PcpuId peer{i};
      if (peer == pcpu || queues_.size(peer) <= fullest) continue;
      for (VcpuIndex v = queues_.front(peer); v != kNoVcpu; v = queues_.after(v)) {
        if (!affinity(v).contains(pcpu) || note_held_back(v)) continue;
        found = v;
        fullest = queues_.size(peer);
        break;
      }
    }
    return found;
  }

  // An idle pCPU may have some in its queue, all held back.
  std::size_t load(PcpuId pcpu) const {
    if (idle_.contains(pcpu)) return 0;
    return queues_.size(pcpu) + (pcpus_[index_of(pcpu)].picked == kNoVcpu ? 0 : 1);
  }

  // `pcpu` is busy now: whom it was called for, and whoever is left in its queue, may suit an idle pCPU.
  void call_for_leftovers(PcpuId pcpu, VcpuIndex called_for) {
    if (called_for != kNoVcpu && queues_.contains(called_for) && !held_back(called_for)) call_idle_pcpu_for(called_for);
    for (VcpuIndex v = queues_.front(pcpu); v != kNoVcpu && !idle_.empty(); v = queues_.after(v)) {
      if (!held_back(v) && call_idle_pcpu_for(v)) return;
    }
  }

  bool call_idle_pcpu_for(VcpuIndex vcpu) {
    const PcpuId pcpu = idle_.next_in(affinity(vcpu), kNoPcpu);
    if (pcpu == kNoPcpu) return false;
    idle_.erase(pcpu);
    pcpus_[index_of(pcpu)].called_for = vcpu;
    host_.reschedule(pcpu);
    return true;
  }

  HostView& host_;
  Params params_;
  VcpuQueues queues_;
  IdlePcpus idle_;
  std::vector<PerPcpu> pcpus_;
  std::vector<PerVcpu> vcpus_;
  std::vector<std::vector<VcpuIndex>> vms_;
};

}  // namespace

namespace schedulers {
SchedulerKind relaxed_gang() {
  return scheduler_kind<RelaxedGang>("relaxed_gang", "vCPUs one by one; those that lead a waiting sibling are stopped",
                                     "VMware, The CPU Scheduler in VMware vSphere; numbers estimated");
}
}  // namespace schedulers

}  // namespace vcpusim
