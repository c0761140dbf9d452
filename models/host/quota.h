// Bandwidth quota of a VM: so much CPU time in each period, whatever the scheduler.
//
// Source      kernel/sched/fair.c, Linux 5.10 (CFS bandwidth)
// Models      a pool that is refilled to the quota each period, without carry-over; each pCPU takes slices of 5 ms from
//             it and, when it gets nothing, throttles the VM's vCPUs there until the refill; what a pCPU keeps beyond
//             1 ms goes back to the pool when the VM has nothing more to run on it
// Leaves out  bursts; the slack timer that hands returned time to throttled pCPUs before the refill; throttling at
//             the next tick rather than at the very moment
#pragma once

#include <functional>
#include <vector>

#include "models/config.h"
#include "models/host/scheduler.h"
#include "sim/engine.h"

namespace vcpusim {

class Quota {
 public:
  // `release` is called for each throttled vCPU at the refill: first for those that had no part of what is used up, so
  // that a scheduler that goes by the order of arrival lets all have their turn.
  Quota(const QuotaConfig& config, std::uint32_t pcpus, Engine& engine, std::function<void(VcpuIndex)> release);

  // Time left on `pcpu`, after taking a slice from the pool if there was none. Zero: the vCPU must be throttled.
  Duration available(PcpuId pcpu);
  void use(PcpuId pcpu, Duration ran) { local_[index_of(pcpu)] -= ran; }
  // `has_run`: it is the one that ran until now, not one that was to follow.
  void throttle(VcpuIndex vcpu, bool has_run) { (has_run ? spenders_ : waiters_).push_back(vcpu); }
  // The VM runs nothing more on `pcpu` for now.
  void give_back(PcpuId pcpu);

 private:
  void refill();

  QuotaConfig config_;
  Duration quota_;
  Engine& engine_;
  Engine::TimerId timer_;
  std::function<void(VcpuIndex)> release_;
  Duration pool_;
  std::vector<Duration> local_;
  std::vector<VcpuIndex> waiters_;   // throttled before they could run ...
  std::vector<VcpuIndex> spenders_;  // ... and after
};

}  // namespace vcpusim
