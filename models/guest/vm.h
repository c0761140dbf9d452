// A virtual machine: vCPUs, the tasks of its guest and the locks and barriers that these share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/guest/guest_lock.h"
#include "models/guest/task.h"
#include "models/guest/vcpu.h"
#include "models/machine/machine.h"

namespace vcpusim {

// Tasks that wait for each other.
class GuestBarrier {
 public:
  explicit GuestBarrier(std::int64_t parties) : parties_(parties) {}
  // True if `task` is the last to arrive; the others have been woken then. Otherwise it has to block.
  bool arrive(Task& task);

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

   protected:
    ~Observer() = default;
  };

  Vm(const VmConfig& config, std::uint64_t seed, const Machine& machine, Observer& observer);

  // Starts every task. REQUIRES that the vCPUs have their pCPUs.
  void start();

  const std::string& name() const { return config_.name; }
  const VmConfig& config() const { return config_; }
  GuestLock& lock(std::size_t index) { return *locks_[index]; }
  GuestBarrier& barrier(std::size_t index) { return barriers_[index]; }
  void task_finished(Task& task);

  std::vector<std::unique_ptr<Vcpu>>& vcpus() { return vcpus_; }
  const std::vector<std::unique_ptr<Vcpu>>& vcpus() const { return vcpus_; }
  const std::vector<std::unique_ptr<GuestLock>>& locks() const { return locks_; }

  // The tasks of config().tasks[i], in order of their numbers.
  struct TaskGroup {
    const TaskConfig* config;
    std::vector<std::unique_ptr<Task>> tasks;
  };
  const std::vector<TaskGroup>& task_groups() const { return groups_; }

  void reset_statistics();

 private:
  const VmConfig& config_;
  Observer& observer_;
  std::vector<std::unique_ptr<GuestLock>> locks_;
  std::vector<GuestBarrier> barriers_;
  std::vector<std::unique_ptr<Vcpu>> vcpus_;
  std::vector<TaskGroup> groups_;
};

}  // namespace vcpusim
