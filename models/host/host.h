// The host: it switches vCPUs on its pCPUs as a scheduler decides, and charges what that costs.
//
// A pCPU decides anew when its running vCPU halts or yields (at once), when a woken vCPU preempts (after the cost of a
// reschedule IPI), and when the scheduler's own check says so. Each decision is an event of the pCPU's one timer, so
// that a vCPU in the middle of an action is never interrupted by a consequence of that action.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/config.h"
#include "models/guest/vcpu.h"
#include "models/host/assists/assists.h"
#include "models/host/quota.h"
#include "models/host/scheduler.h"
#include "models/machine/cores.h"
#include "models/machine/machine.h"
#include "models/trace_kinds.h"
#include "sim/engine.h"
#include "sim/random.h"

namespace vcpusim {

struct HostStatistics {
  std::uint64_t context_switches = 0;
  std::uint64_t migrations = 0;
  struct DirectedYields {
    std::uint64_t attempted = 0;
    std::uint64_t succeeded = 0;     // the scheduler agreed
    std::uint64_t to_spinner = 0;    // of these: to a vCPU that itself waits for a lock ...
    std::uint64_t to_holder = 0;     // ... that owns one ...
    std::uint64_t to_woken = 0;      // ... that had halted and was woken ...
    std::uint64_t to_marked = 0;     // ... that was in a section marked by a hint
    std::uint64_t not_honoured = 0;  // agreed, but its pCPU ran another next
    std::uint64_t none_marked = 0;   // exits of guests that use hints, while no marked vCPU waited for a pCPU
  } directed_yields;
};

class Host final : private HostView {
 public:
  // `vcpus[i]` is described by `descriptions[i]`; `quotas[vm]` limits a VM. The vCPUs outlive the host.
  Host(const HostConfig& config, const Machine& machine, Cores& cores, std::uint64_t seed, std::vector<Vcpu*> vcpus,
       std::vector<SchedulableVcpu> descriptions, const std::vector<QuotaConfig>& quotas, const Assists& assists,
       const Tracer& trace);
  ~Host();

  // `vcpu`, halted, has something to do. `waker` is the pCPU that found out, kNoPcpu if it was a timer.
  void wake(Vcpu& vcpu, PcpuId waker);
  // The running `vcpu` has nothing to do.
  void halt(Vcpu& vcpu);
  // The running `vcpu` gives way to another, if the scheduler prefers one. True if it has left its pCPU.
  bool yield(Vcpu& vcpu);
  // The running `vcpu` gives its pCPU to `target`. 1: the scheduler has agreed, and `vcpu` has yielded; 0: no;
  // -1: no, and nobody else waits on either pCPU (virt/kvm/kvm_main.c and kernel/sched/core.c: yield_to, -ESRCH).
  int yield_to(Vcpu& vcpu, Vcpu& target);
  // The running `vcpu` has been taken out of a spin loop. True if it has left its pCPU.
  bool on_spin(Vcpu& vcpu);
  // Nobody else wants the pCPU of the running `vcpu`.
  bool is_alone(const Vcpu& vcpu) const { return scheduler_->runnable_on(vcpu.pcpu()) == 1; }

  const HostStatistics& statistics() const { return statistics_; }
  void reset_statistics();
  // Time that pCPUs spent on vCPUs since reset_statistics.
  Duration busy_time() const;

 private:
  struct Pcpu {
    Host* host = nullptr;
    PcpuId id{};
    Engine::TimerId timer{};
    VcpuIndex running = kNoVcpu;
    SimTime charged_until = kTimeZero;
    SimTime decide_at = kNever;
    VcpuIndex last = kNoVcpu;     // whose state the pCPU still has
    VcpuIndex boosted = kNoVcpu;  // who was promised to be the next
    Duration busy{};
    void on_timer() { host->on_timer(*this); }
  };

  // HostView
  SimTime now() const override { return engine_.now(); }
  const Machine& machine() const override { return machine_; }
  const std::vector<SchedulableVcpu>& vcpus() const override { return descriptions_; }
  VcpuIndex running_on(PcpuId pcpu) const override { return pcpus_[index_of(pcpu)].running; }
  bool is_ready(VcpuIndex vcpu) const override { return states_[vcpu] == HostState::kReady; }
  bool is_running(VcpuIndex vcpu) const override { return states_[vcpu] == HostState::kRunning; }
  void reschedule(PcpuId pcpu) override;
  void set_costopped(VcpuIndex vcpu, bool costopped) override { vcpus_[vcpu]->set_costopped(costopped); }
  RandomStream& random() override { return random_; }
  void set_timer(SimTime at) override;

  void on_scheduler_timer() { scheduler_->timer_expired(); }

  void on_timer(Pcpu& pcpu);
  void charge(Pcpu& pcpu);
  void decide(Pcpu& pcpu, Enqueue why);
  void run_next(Pcpu& pcpu, VcpuIndex previous);
  void dispatch(Pcpu& pcpu, VcpuIndex next);
  void leave(Pcpu& pcpu, HostState state);
  bool is_candidate(VcpuIndex vcpu);
  void make_ready(VcpuIndex vcpu, PcpuId waker, Enqueue why);
  void rearm(Pcpu& pcpu);
  void decide_by(Pcpu& pcpu, SimTime at);
  Quota* quota_of(VcpuIndex vcpu) { return quotas_[descriptions_[vcpu].vm].get(); }

  const Machine& machine_;
  Cores& cores_;
  const Assists& assists_;
  const Tracer& trace_;
  Engine& engine_;
  Engine::TimerId scheduler_timer_;
  RandomStream random_;
  std::vector<Vcpu*> vcpus_;
  std::vector<HostState> states_;
  // What the handler of pause-loop exits knows of a vCPU.
  struct SpinState {
    bool in_spin_loop = false;
    bool eligible = false;
    bool woken = false;  // ready because it was woken, not because it was preempted
  };
  std::vector<SpinState> spin_;
  struct VmRange {
    VcpuIndex first;
    std::uint32_t size;
    std::uint32_t last_boosted;
  };
  std::vector<VmRange> vms_;
  std::vector<SchedulableVcpu> descriptions_;
  std::vector<Pcpu> pcpus_;
  std::vector<std::unique_ptr<Quota>> quotas_;  // by VM; null: none
  std::unique_ptr<HostScheduler> scheduler_;
  HostStatistics statistics_;
};

}  // namespace vcpusim
