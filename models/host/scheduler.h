// The contract of a host scheduler: pure policy over ready vCPUs.
//
// The host moves the clock, switches vCPUs and charges costs (models/host/host.h); the scheduler is told what has
// happened to a vCPU and is asked who runs next. It keeps its own run queues and its own data per vCPU, indexed by
// VcpuIndex. It never runs, stops or wakes anything: where it wants a pCPU to decide anew, it says so.
//
// A vCPU that runs is in no queue. It is charged for the time it has run (charge) before every other call that
// concerns it or its pCPU. Times are simulated; nothing here may depend on anything but these calls.
//
// To add a scheduler, add a file to models/host/schedulers and its name to the list in models/CMakeLists.txt.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/catalogue.h"
#include "models/machine/machine.h"
#include "models/machine/pcpu_set.h"
#include "sim/random.h"
#include "sim/time.h"

namespace vcpusim {

// Index of a vCPU among all vCPUs of the host, in the order of the scenario.
using VcpuIndex = std::uint32_t;
inline constexpr VcpuIndex kNoVcpu = ~VcpuIndex{0};

// What a scheduler may know of a vCPU beforehand.
struct SchedulableVcpu {
  std::uint32_t vm = 0;        // VMs are numbered in the order of the scenario
  std::uint32_t vcpu = 0;      // index within its VM
  std::int64_t weight = 1024;  // share of a pCPU relative to others; 1024 is nice 0
  PcpuSet affinity;            // pCPUs that it may run on; never empty
  double cap = 0;              // for schedulers with a hard limit of their own (Xen): pCPUs, 0 = none
};

// What a scheduler sees of the host, and the one thing it may ask for.
class HostView {
 public:
  virtual SimTime now() const = 0;
  virtual const Machine& machine() const = 0;
  virtual const std::vector<SchedulableVcpu>& vcpus() const = 0;
  // The vCPU that runs on `pcpu`, or kNoVcpu.
  virtual VcpuIndex running_on(PcpuId pcpu) const = 0;
  // Whether `vcpu` waits in a queue of the scheduler, or runs.
  virtual bool is_ready(VcpuIndex vcpu) const = 0;
  virtual bool is_running(VcpuIndex vcpu) const = 0;
  // Makes `pcpu` call pick() soon (after the cost of a reschedule IPI, if it is another pCPU's).
  virtual void reschedule(PcpuId pcpu) = 0;
  // The scheduler's own timer, for what has to happen whatever the pCPUs do (all of them may be idle): timer_expired()
  // is called at `at`, once; replaces the time set before, kNever cancels it.
  virtual void set_timer(SimTime /*at*/) {}
  // For the accounts: a ready vCPU is held back although a pCPU could run it, for the sake of its siblings.
  virtual void set_costopped(VcpuIndex vcpu, bool costopped) = 0;
  // Draws for rules that are random in the original; one stream for the scheduler.
  virtual RandomStream& random() = 0;

 protected:
  ~HostView() = default;
};

enum class Enqueue : std::uint8_t {
  kNew,        // for the first time
  kWoken,      // it was halted
  kPreempted,  // it was running and has not finished
  kYielded,    // it was running and gave up the pCPU; yield() or yield_to() was called before
  kReleased,   // it was held back (quota), not by its own will
};

class HostScheduler {
 public:
  virtual ~HostScheduler() = default;

  // The pCPU whose queue a vCPU that becomes ready joins: in its affinity. `previous` is where it ran last (kNoPcpu:
  // never), `waker` the pCPU that woke it (kNoPcpu: none).
  virtual PcpuId place(VcpuIndex vcpu, PcpuId previous, PcpuId waker) = 0;

  // `vcpu` is ready and waits for `pcpu`. After kPreempted and kYielded, `pcpu` is where it ran.
  virtual void enqueue(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) = 0;
  // `vcpu`, just enqueued on `pcpu`, where another runs: is that one preempted at once?
  virtual bool preempts(VcpuIndex vcpu, PcpuId pcpu) = 0;
  // A ready vCPU leaves its queue without running (it is throttled).
  virtual void dequeue(VcpuIndex vcpu) = 0;

  // `vcpu` runs on `pcpu` and has used `ran` since it was last charged; the host's own costs are part of it.
  virtual void charge(VcpuIndex vcpu, PcpuId pcpu, Duration ran) = 0;
  // A running vCPU halts (or is throttled): it is no longer the scheduler's.
  virtual void blocked(VcpuIndex vcpu, PcpuId pcpu) = 0;

  // Who runs on `pcpu` next: taken out of its queue, or kNoVcpu to leave it idle. May take from another queue.
  virtual VcpuIndex pick(PcpuId pcpu) = 0;

  // When `pcpu`, on which `running_on(pcpu)` runs, wants check() to be called; kNever if only other calls can change
  // anything. Asked again after every call that concerns the pCPU.
  virtual SimTime next_check(PcpuId pcpu) = 0;
  // The time has come: true if the running vCPU has to give way to pick().
  virtual bool check(PcpuId pcpu) = 0;

  // The time given to HostView::set_timer has come. No pCPU has been charged for it; reschedule() acts on any.
  virtual void timer_expired() {}

  // The running `vcpu` gives way to whomever the scheduler prefers.
  virtual void yield(VcpuIndex vcpu, PcpuId pcpu) = 0;
  // The running `vcpu` asks that the ready `target` run in its stead. False if the scheduler does not honour it, in
  // which case nothing happens; true if the caller now has to give up its pCPU.
  virtual bool yield_to(VcpuIndex vcpu, VcpuIndex target) = 0;
  // False if a vCPU that spins gives way to anybody instead of to a named sibling.
  virtual bool directs_yields() const { return true; }
  // The number of vCPUs that run on or wait for `pcpu`.
  virtual std::size_t runnable_on(PcpuId pcpu) const = 0;
  virtual PcpuId queue_of(VcpuIndex vcpu) const = 0;  // REQUIRES that it is ready
};

// The catalogue entry of a scheduler class `S`, constructed from a HostView& and, if it has one, its S::Params.
template <class S>
SchedulerKind scheduler_kind(std::string_view name, std::string_view summary, std::string_view source) {
  if constexpr (requires { typename S::Params; }) {
    return {name, summary, source, [](ParamVisitor& visitor) { typename S::Params{}.describe(visitor); },
            [](const Kind& kind, HostView& host) -> std::unique_ptr<HostScheduler> {
              typename S::Params params;
              apply_params(kind, [&](ParamVisitor& visitor) { params.describe(visitor); });
              return std::make_unique<S>(host, params);
            }};
  } else {
    return {name, summary, source, [](ParamVisitor&) {},
            [](const Kind&, HostView& host) -> std::unique_ptr<HostScheduler> { return std::make_unique<S>(host); }};
  }
}

}  // namespace vcpusim
