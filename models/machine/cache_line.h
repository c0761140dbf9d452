// A cache line under contention: the place where the cost of a lock hand-off comes from.
//
// A line serves its requests one at a time, in the order in which they arrive. A transfer first travels to whoever
// has the line, then back to the requester; the machine states both parts by distance.
//   - From the core that has modified it. A request for a busy line makes the first part of its way while it waits,
//     so that a contended line moves faster than a lone transfer suggests. A holder that nobody has snooped yet goes
//     on hitting its own copy: in this time it can, for instance, take again the lock that it has just released.
//     Each holder completes at least the access for which it got the line.
//   - From its sharers. A read of a clean line, and the invalidation of all its copies, begin when their turn comes.
// An exclusive request invalidates every copy when it is served. Each spinner that polls the line then asks for it
// again, and these reads queue up behind one another.
//
// Sources: the serialised transfers and their costs by distance are those of David, Guerraoui and Trigonakis,
// "Everything you always wanted to know about synchronization but were afraid to ask", SOSP 2013. Where a transfer
// divides is a parameter of the machine.
// Left out: capacity, false sharing, prefetching; the time from an invalidation to the next turn of the spin loop; a
// line that nobody has cached costs nothing to get.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/machine/machine.h"
#include "sim/time.h"

namespace vcpusim {

class CacheLine;

// Whoever spins on a line. One that polls costs no event while its condition is false: the line evaluates the
// condition when the line has been written, and calls back only if it has become true.
class LineWatcher {
 public:
  virtual bool condition() const = 0;           // of the memory that lives on the line; no side effects
  virtual void sees_condition(SimTime at) = 0;  // the condition holds; the poller learns of it at `at` unless ...
  virtual void loses_condition() = 0;           // ... this is called before

 protected:
  ~LineWatcher() = default;
};

class CacheLine {
 public:
  explicit CacheLine(const Machine& machine) : machine_(&machine) {}
  CacheLine(CacheLine&&) = default;

  // Queues a request of `pcpu` and returns when it is served. What a write changes must be changed at that time,
  // followed by written().
  SimTime load(PcpuId pcpu) { return read(pcpu).at; }
  SimTime store(PcpuId pcpu) { return own(pcpu, machine_->local_access()); }
  SimTime atomic(PcpuId pcpu) { return own(pcpu, machine_->local_atomic()); }

  // An exclusive request has been served (or, for a store that its core does not wait for, has been queued) and
  // the memory on the line is as it left it: watchers that lose their copy queue up to read it again.
  void written() {
    if (!watchers_.empty()) tell_watchers();
  }
  // What its watchers' conditions look at beside the line has changed: they are evaluated anew, at no cost.
  void look_again();

  // `watcher` polls from `pcpu`, until unwatch(), which must come before it dies. In between it may pause, while its
  // vCPU does not execute guest code, and resume elsewhere.
  void watch(LineWatcher& watcher, PcpuId pcpu);
  void unwatch(LineWatcher& watcher);
  void pause(LineWatcher& watcher);
  void resume(LineWatcher& watcher, PcpuId pcpu);
  std::size_t watchers() const { return watchers_.size(); }

  // Occupies the line with the exclusive requests that every running watcher has outstanding, if it polls with
  // atomics rather than with loads.
  void queue_atomics_of_watchers();

 private:
  // A span in which one pCPU has the line exclusively.
  struct Tenure {
    PcpuId pcpu;
    SimTime from;
    SimTime until;        // when the snoop of the next transfer arrives; kNever if none is queued
    std::uint64_t epoch;  // its number among the exclusive requests

    SimTime start(SimTime now) const { return std::max(now, from); }  // of an access that is made `now`
    bool serves(PcpuId by, SimTime now) const { return by == pcpu && start(now) < until; }
  };
  // An access that is served, and the epoch of the copy that it leaves its core.
  struct Served {
    SimTime at;
    std::uint64_t epoch;
  };
  struct Watching {
    LineWatcher* watcher;
    PcpuId pcpu;    // kNoPcpu: paused
    Served copy;    // that it has or has queued for
    bool promised;  // sees_condition was called and nothing has revoked it
  };

  SimTime own(PcpuId pcpu, Duration access);
  Served read(PcpuId pcpu);
  Served fetch(PcpuId pcpu, SimTime now);
  // The tenure in which an access of `pcpu` that is made `now` finds the line in its own cache; null if there is none.
  const Tenure* tenure_of(PcpuId pcpu, SimTime now) const;
  // When a transfer from the latest owner arrives, whose snoop gets there at `snooped`.
  SimTime take(Machine::Transfer transfer, SimTime snooped);
  void begin_tenure(PcpuId pcpu, SimTime from, SimTime now);
  void tell_watchers();
  void begin_polling(Watching& w, PcpuId pcpu);
  static void tell(Watching& w);
  Watching& find(const LineWatcher& watcher);
  bool shared_by(PcpuId pcpu) const;
  Distance farthest_sharer(PcpuId from) const;
  Distance nearest_sharer(PcpuId from) const;

  const Machine* machine_;
  SimTime free_at_ = kTimeZero;  // end of the last transfer that is queued
  Tenure latest_{kNoPcpu, kTimeZero, kNever, 0};
  std::vector<Tenure> earlier_;  // those before it that may not have ended, oldest first
  std::vector<PcpuId> sharers_;  // who has (or has queued for) a clean copy since the last exclusive request
  std::uint64_t epoch_ = 1;      // counts exclusive requests: each makes every copy stale
  std::vector<Watching> watchers_;
  std::size_t first_polled_ = 0;  // rotates: who is first to read a written line is nobody's privilege
};

}  // namespace vcpusim
