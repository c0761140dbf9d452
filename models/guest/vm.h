// A virtual machine: vCPUs, the tasks of its guest and the locks and barriers that these share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/guest/guest_lock.h"
#include "models/guest/task.h"
#include "models/guest/vcpu.h"
#include "models/host/assists/assists.h"
#include "models/machine/machine.h"
#include "models/trace_kinds.h"

namespace vcpusim {

// Tasks that wait for each other.
class GuestBarrier {
 public:
  explicit GuestBarrier(std::int64_t parties) : parties_(parties) {}
  // True if `task` is the last to arrive; the others have been woken then. Otherwise it has to block.
  bool arrive(Task& task);
  bool holds_up(const Task& task) const { return std::ranges::find(waiting_, &task) != waiting_.end(); }

 private:
  std::int64_t parties_;
  std::vector<Task*> waiting_;
};

class Vm {
 public:
  // Told when a task ends: `done` tasks of all VMs decide when a simulation has nothing left to do.
  class Observer {
   public:
    virtual void task_finished() = 0;
    // The simulation cannot go on: what is wrong with which task.
    virtual void cannot_go_on(const std::string& why) = 0;

   protected:
    ~Observer() = default;
  };

  // Host-wide numbers of the VM's first vCPU, task and lock.
  struct Numbers {
    std::uint32_t vcpu = 0;
    std::uint32_t task = 0;
    std::uint32_t lock = 0;
  };

  // `name` is unique on the host. Everything given by reference outlives the VM.
  Vm(std::string name, const VmConfig& config, std::uint64_t seed, Numbers first, const Machine& machine,
     const Assists& assists, const Tracer& trace, Observer& observer);

  // Gives every task its program and vCPU and appends it to `order`; whoever calls puts them on their vCPUs in an
  // order of his choice, then starts the clocks. REQUIRES that the vCPUs have been given their host or pCPUs.
  void start_tasks(std::vector<Task*>& order);
  void start_clocks();

  const std::string& name() const { return name_; }
  const VmConfig& config() const { return config_; }
  const Machine& machine() const { return machine_; }
  const Tracer& trace() const { return trace_; }
  const Assists& assists() const { return assists_; }
  const HintParams* hint() const { return hint_; }  // null: the guest marks nothing
  // The lock that `user` means by this name.
  GuestLock& lock(std::size_t index, const Task& user) {
    if (!has_own_locks_ || own_locks_[index].empty()) return *locks_[index];
    return *own_locks_[index][user.index() - first_task_];
  }
  GuestBarrier& barrier(std::size_t index) { return barriers_[index]; }
  void task_finished(Task& task);
  void cannot_go_on(const Task& task, const std::string& why) { observer_.cannot_go_on(task.path() + " " + why); }

  // Where on the grid of its period the clock of this guest's vCPUs ticks.
  Duration clock_offset() const { return clock_offset_; }

  // ---- the guest's scheduler ------------------------------------------------------------------------------

  // The vCPU on which a task that can run again is queued: its last one if that is idle, else any idle one, else its
  // last one. (A guest sees which vCPUs are idle, not which are on a pCPU.)
  Vcpu& place(const Task& task);
  // A waiting task for the idle `vcpu`, from the vCPU with the longest queue; null if none waits.
  Task* pull_task_for(const Vcpu& vcpu);

  // ---- the guest's own accounts ---------------------------------------------------------------------------

  // CPU time as this guest's clock interrupt counts it: each tick charges one period to what it has interrupted,
  // less what a steal clock says was stolen.
  struct ReportedTime {
    Duration user{};
    Duration system{};
    Duration steal{};

    void add(const ReportedTime& other) {
      user += other.user;
      system += other.system;
      steal += other.steal;
    }
  };
  void account_tick(const Vcpu& vcpu);
  const ReportedTime& reported() const { return reported_; }

  // What the guest has asked its host for.
  struct Counts {
    std::uint64_t hints = 0;             // hint hypercalls
    std::uint64_t deferred_flushes = 0;  // targets of shootdowns that were left to the host
  };
  Counts counts;
  GuestClock::Statistics clock_statistics;

  std::vector<std::unique_ptr<Vcpu>>& vcpus() { return vcpus_; }
  const std::vector<std::unique_ptr<Vcpu>>& vcpus() const { return vcpus_; }
  const std::vector<std::unique_ptr<GuestLock>>& locks() const { return locks_; }
  GuestLock::Statistics lock_statistics(std::size_t index) const;  // of all locks by its name

  // The tasks of config().tasks[i], in order of their numbers.
  struct TaskGroup {
    const TaskConfig* config;
    std::vector<std::unique_ptr<Task>> tasks;
  };
  const std::vector<TaskGroup>& task_groups() const { return groups_; }

  // If no task can ever go on: for each unfinished one, what it waits for. Empty while any can.
  std::vector<std::string> standstill() const;

  void reset_statistics();

 private:
  std::string name_;
  const VmConfig& config_;
  const Machine& machine_;
  const Assists& assists_;
  const HintParams* hint_;
  const Tracer& trace_;
  Observer& observer_;
  Duration clock_offset_{};
  ReportedTime reported_;
  std::vector<Duration> steal_seen_;  // by vCPU: what its steal clock showed at its last tick
  std::vector<std::unique_ptr<GuestLock>> locks_;
  // By lock, then by task, where each task has its own; empty where locks_ has the one for all.
  std::vector<std::vector<std::unique_ptr<GuestLock>>> own_locks_;
  bool has_own_locks_ = false;
  std::uint32_t first_task_;
  std::vector<GuestBarrier> barriers_;
  std::vector<std::unique_ptr<Vcpu>> vcpus_;
  std::vector<TaskGroup> groups_;
};

}  // namespace vcpusim
