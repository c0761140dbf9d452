// Round robin: one queue per pCPU, a fixed quantum, new and preempted vCPUs at the tail.
//
// Source      textbook; the default quantum is that of Linux SCHED_RR (100 ms, kernel/sched/rt.c: RR_TIMESLICE)
// Models      quantum scaled by weight (weight 1024 = one quantum), so that shares follow weights; woken vCPUs at
//             the tail, or at the head on request; a pCPU without work takes the longest-waiting vCPU of the fullest
//             queue that may run on it
// Leaves out  priorities, periodic balancing
// Shows       exact shares and bounded delays: k busy vCPUs of equal weight wait k - 1 quanta for the next one
// yield_to    moves the target to the head of its queue, if it waits for the caller's pCPU, for the rest of the
// caller's
//             quantum; the caller goes to the tail
#include <algorithm>
#include <deque>
#include <vector>

#include "models/host/scheduler.h"

namespace vcpusim {

namespace {

class RoundRobin final : public HostScheduler {
 public:
  struct Params {
    Duration quantum = std::chrono::milliseconds(100);
    bool wake_to_head = false;
    void describe(ParamVisitor& visitor) {
      visitor.duration("quantum", quantum, kPositiveDuration, "time on the pCPU before the next in the queue");
      visitor.flag("wake_to_head", wake_to_head, "a woken vCPU goes to the head of the queue instead of the tail");
    }
  };

  RoundRobin(HostView& host, const Params& params)
      : host_(host), params_(params), queues_(host.machine().pcpus()), vcpus_(host.vcpus().size()) {}

  PcpuId place(VcpuIndex vcpu, PcpuId previous, PcpuId) override {
    const PcpuSet& allowed = host_.vcpus()[vcpu].affinity;
    PcpuId best = kNoPcpu;
    for (std::uint32_t i = 0; i < queues_.size(); ++i) {
      const PcpuId pcpu{i};
      if (!allowed.contains(pcpu)) continue;
      if (best == kNoPcpu || runnable_on(pcpu) < runnable_on(best)) best = pcpu;
    }
    const bool may_stay = previous != kNoPcpu && allowed.contains(previous);
    return may_stay && runnable_on(previous) <= runnable_on(best) ? previous : best;
  }

  void enqueue(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) override {
    auto& queue = queues_[index_of(pcpu)];
    vcpus_[vcpu].pcpu = pcpu;
    // Whoever was held back in the middle of a quantum has the rest of it: a quota shorter than the quantum would
    // otherwise let the same vCPU begin again and again.
    if (why != Enqueue::kReleased) vcpus_[vcpu].ran = Duration::zero();
    if (why == Enqueue::kWoken && params_.wake_to_head) {
      queue.push_front(vcpu);
    } else {
      queue.push_back(vcpu);
    }
    call_an_idle_pcpu_to(pcpu);
  }

  bool preempts(VcpuIndex, PcpuId) override { return false; }

  void dequeue(VcpuIndex vcpu) override { std::erase(queues_[index_of(vcpus_[vcpu].pcpu)], vcpu); }

  void charge(VcpuIndex vcpu, PcpuId, Duration ran) override { vcpus_[vcpu].ran += ran; }
  void blocked(VcpuIndex, PcpuId) override {}

  VcpuIndex pick(PcpuId pcpu) override {
    auto& queue = queues_[index_of(pcpu)];
    VcpuIndex next = kNoVcpu;
    if (!queue.empty()) {
      next = queue.front();
      queue.pop_front();
    } else {
      next = steal_for(pcpu);
    }
    return next;
  }

  SimTime next_check(PcpuId pcpu) override {
    if (queues_[index_of(pcpu)].empty()) return kNever;
    return host_.now() + std::max(Duration::zero(), remaining(host_.running_on(pcpu)));
  }
  bool check(PcpuId pcpu) override {
    return !queues_[index_of(pcpu)].empty() && remaining(host_.running_on(pcpu)) <= Duration::zero();
  }

  void yield(VcpuIndex, PcpuId) override {}
  bool yield_to(VcpuIndex vcpu, VcpuIndex target) override {
    const PcpuId pcpu = vcpus_[target].pcpu;
    if (host_.running_on(pcpu) != vcpu) return false;
    auto& queue = queues_[index_of(pcpu)];
    std::erase(queue, target);
    queue.push_front(target);
    // Otherwise two vCPUs that yield to each other would keep all others waiting for ever.
    vcpus_[target].ran = vcpus_[vcpu].ran;
    return true;
  }

  std::size_t runnable_on(PcpuId pcpu) const override {
    return queues_[index_of(pcpu)].size() + (host_.running_on(pcpu) == kNoVcpu ? 0 : 1);
  }
  PcpuId queue_of(VcpuIndex vcpu) const override { return vcpus_[vcpu].pcpu; }

 private:
  struct PerVcpu {
    PcpuId pcpu = kNoPcpu;
    Duration ran{};  // of its present quantum
  };

  Duration remaining(VcpuIndex vcpu) const {
    return params_.quantum * host_.vcpus()[vcpu].weight / 1024 - vcpus_[vcpu].ran;
  }

  // One that may run any of those who have to wait for `pcpu`: affinities can keep it from being where they were
  // placed.
  void call_an_idle_pcpu_to(PcpuId pcpu) {
    const auto& queue = queues_[index_of(pcpu)];
    const std::size_t served = host_.running_on(pcpu) == kNoVcpu ? 1 : 0;
    if (queue.size() <= served) return;
    for (std::uint32_t i = 0; i < queues_.size(); ++i) {
      const PcpuId other{i};
      if (other == pcpu || runnable_on(other) > 0) continue;
      const auto may_run_there = [&](VcpuIndex vcpu) { return host_.vcpus()[vcpu].affinity.contains(other); };
      if (!std::ranges::any_of(queue, may_run_there)) continue;
      host_.reschedule(other);
      return;
    }
  }

  VcpuIndex steal_for(PcpuId pcpu) {
    std::deque<VcpuIndex>* fullest = nullptr;
    VcpuIndex victim = kNoVcpu;
    for (auto& queue : queues_) {
      if (fullest != nullptr && queue.size() <= fullest->size()) continue;
      for (const VcpuIndex vcpu : queue) {
        if (!host_.vcpus()[vcpu].affinity.contains(pcpu)) continue;
        fullest = &queue;
        victim = vcpu;
        break;
      }
    }
    if (victim != kNoVcpu) std::erase(*fullest, victim);
    return victim;
  }

  HostView& host_;
  Params params_;
  std::vector<std::deque<VcpuIndex>> queues_;  // by pCPU
  std::vector<PerVcpu> vcpus_;
};

}  // namespace

namespace schedulers {
SchedulerKind round_robin() {
  return scheduler_kind<RoundRobin>("round_robin", "one queue per pCPU, a fixed quantum",
                                    "textbook; quantum of Linux SCHED_RR, kernel/sched/rt.c");
}
}  // namespace schedulers

}  // namespace vcpusim
