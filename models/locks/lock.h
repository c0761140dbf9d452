// The contract of a lock algorithm.
//
// A lock is guest code: it reads and writes cache lines and spins on them, and everything that it costs follows
// from that. acquire() returns when `self` owns the lock, release() when the unlocking store has been made. The
// algorithm keeps no statistics; GuestLock counts what happens to it.
//
// To add an algorithm, add a file to models/locks and its name to the list in models/CMakeLists.txt.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "models/catalogue.h"
#include "models/guest/co.h"
#include "models/guest/task.h"
#include "models/machine/cache_line.h"
#include "sim/stats.h"

namespace vcpusim {

// What only the algorithm knows of what happens to a lock.
struct LockCounters {
  std::uint64_t halts = 0;             // waiters that halted their vCPU (or, of a sleeping lock, slept)
  std::uint64_t kicks = 0;             // hypercalls that wake one
  std::uint64_t spurious_wakeups = 0;  // a halt ended, and it was not yet the waiter's turn
  std::uint64_t steals = 0;            // taken by a newcomer while others waited
};

// What a lock is built into.
struct LockSite {
  const Machine& machine;
  // Of the guest, by their ids; queue locks have one node for each, as kernels do. Complete when the guest starts.
  const std::vector<std::unique_ptr<Vcpu>>& vcpus;
  std::size_t vcpu_count;
  bool native;  // no hypervisor: what asks for its help is compiled out
  LockCounters& counters;
};

// What happens in a grace-period domain.
struct RcuStatistics {
  std::uint64_t reads = 0;           // read-side sections
  std::uint64_t frees_deferred = 0;  // handed over by updaters that do not wait ...
  std::uint64_t frees_done = 0;      // ... and done, a grace period later
  LatencyHistogram grace_period;     // their duration
};
struct RcuDomain {
  RcuStatistics statistics;
};

class Lock {
 public:
  virtual ~Lock() = default;
  virtual Co acquire(Task& self) = 0;  // REQUIRES that self neither owns the lock nor waits for it
  virtual Co release(Task& self) = 0;  // REQUIRES that self owns the lock
  // Grants in the order of arrival at the lock word.
  virtual bool fair() const = 0;
  // A free lock may be kept for one of its waiters while others would take it.
  virtual bool reserves() const { return true; }
  // Its waiters sleep, so its owner may sleep and be switched out by the guest, too.
  virtual bool sleeping() const { return false; }
  // The domain that it is the updaters' side of; null for plain locks.
  virtual RcuDomain* rcu() { return nullptr; }
};

// What a scenario can say of a lock of any kind.
struct LockUse {
  enum class Instances { kOne, kPerTask };
  Instances instances = Instances::kOne;

  void describe(ParamVisitor& visitor) {
    static constexpr std::array<std::string_view, 2> kInstances{"one", "per_task"};
    visitor.choice("instances", instances, kInstances,
                   "per_task: each task has a lock of its own by this name, as for an object that only it uses");
  }
};

// The catalogue entry of a lock class `L`. If it has parameters, they are a struct L::Params with describe(), from
// which L is constructed beside the site. If it is not a plain spinlock, L::traits(params) says so.
template <class L>
LockKind lock_kind(std::string_view name, std::string_view summary, std::string_view source) {
  if constexpr (requires { typename L::Params; }) {
    static constexpr auto kParams = [](const Kind& kind) {
      typename L::Params params;
      apply_params(kind, [&](ParamVisitor& visitor) {
        params.describe(visitor);
        LockUse{}.describe(visitor);
      });
      return params;
    };
    return {name,
            summary,
            source,
            [](ParamVisitor& visitor) {
              typename L::Params{}.describe(visitor);
              LockUse{}.describe(visitor);
            },
            [](const Kind& kind, LockSite& site) -> std::unique_ptr<Lock> {
              return std::make_unique<L>(site, kParams(kind));
            },
            [](const Kind& kind) {
              if constexpr (requires { L::traits(kParams(kind)); }) {
                return L::traits(kParams(kind));
              } else {
                return LockTraits{};
              }
            }};
  } else {
    return {name,
            summary,
            source,
            [](ParamVisitor& visitor) { LockUse{}.describe(visitor); },
            [](const Kind&, LockSite& site) -> std::unique_ptr<Lock> { return std::make_unique<L>(site); },
            [](const Kind&) { return LockTraits{}; }};
  }
}

}  // namespace vcpusim
