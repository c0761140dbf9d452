// A lock of a guest: the algorithm and what has happened to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/locks/lock.h"
#include "models/trace_kinds.h"
#include "sim/stats.h"
#include "sim/time.h"

namespace vcpusim {

class GuestLock {
 public:
  // `index` is its number among all locks of the host.
  GuestLock(const LockConfig& config, const Machine& machine, const std::vector<std::unique_ptr<Vcpu>>& vcpus,
            std::size_t vcpu_count, bool native, std::uint32_t index, const Tracer& trace);

  const std::string& name() const { return name_; }
  const std::string& kind() const { return kind_; }
  Lock& algorithm() { return *algorithm_; }
  const Task* owner() const { return owner_; }

  // Called around the algorithm. Mutual exclusion is checked here, always.
  void requested(Task& by);
  void acquired(Task& owner, bool contended);
  void releasing(Task& owner);  // gives it up from now on
  void released(Task& owner);   // all stores of the release have been made

  // What the host does to the vCPUs of its owner and waiters.
  void holder_preempted(const Task& owner);
  void holder_resumed(const Task& owner, Duration away);
  void waiter_runs(const Task& waiter);
  void waiter_preempted() { ++statistics_.waiter_preemptions; }
  void waiter_resumed(const Task& waiter, SimTime stopped_at);

  struct Statistics {
    std::uint64_t acquisitions = 0;
    std::uint64_t contended = 0;  // acquisitions that had to wait
    LatencyHistogram wait;        // from the request to ownership, uncontended ones included
    LatencyHistogram hold;        // from ownership to the unlocking store
    Duration spin{};              // CPU time burnt by waiters
    // Time in which the lock was free and kept for its next owner, who was not on a pCPU (LWP).
    Duration idle_reserved{};
    std::uint64_t holder_preemptions = 0;  // a vCPU lost its pCPU while its task owned the lock (LHP) ...
    LatencyHistogram holder_preempted;     // ... and for how long
    // How long owners were off their pCPU if meanwhile a waiter for the lock spun on it, that is, if siblings were
    // stacked: type A, the owner went on on another pCPU; type B, on the same ("Enhancement for PLE handler in KVM",
    // kvm list, March 2014).
    LatencyHistogram type_a;
    LatencyHistogram type_b;
    std::uint64_t waiter_preemptions = 0;
    LockCounters algorithm;
    std::optional<RcuStatistics> rcu;  // of a grace-period domain

    void add(const Statistics& other);
  };
  Statistics statistics() const;
  void reset_statistics();

 private:
  std::string name_;
  std::string kind_;
  std::uint32_t index_;
  const Tracer& trace_;
  LockCounters counters_;
  std::unique_ptr<Lock> algorithm_;
  const Task* owner_ = nullptr;
  Task* releasing_ = nullptr;  // the last owner, until it has released the lock or another has it
  SimTime acquired_at_{};
  SimTime released_at_{};
  PcpuId owner_left_ = kNoPcpu;  // the pCPU that the owner has lost; kNoPcpu: it runs
  bool stacked_ = false;         // and on which a waiter has run since
  // Waiters that were off their pCPU since the last release, and for how long: one of them may be the next owner.
  std::vector<std::pair<const Task*, Duration>> absent_;
  Statistics statistics_;
};

}  // namespace vcpusim
