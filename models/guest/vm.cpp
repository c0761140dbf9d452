#include "models/guest/vm.h"

#include <utility>

#include "sim/check.h"

namespace vcpusim {

bool GuestBarrier::arrive(Task& task) {
  if (static_cast<std::int64_t>(waiting_.size()) + 1 < parties_) {
    waiting_.push_back(&task);
    return false;
  }
  for (Task* const other : std::exchange(waiting_, {})) other->wake();
  return true;
}

namespace {
Co run_program(Task& self, const Program& program) {
  for (const auto& operation : program) co_await operation->run(self);
}
}  // namespace

Vm::Vm(const VmConfig& config, std::uint64_t seed, const Machine& machine, Observer& observer)
    : config_(config), observer_(observer) {
  const auto vcpus = static_cast<std::size_t>(config.vcpus);
  for (const LockConfig& lock : config.guest.locks) {
    locks_.push_back(std::make_unique<GuestLock>(lock, LockSite{machine, vcpus}));
  }
  for (const BarrierConfig& barrier : config.guest.barriers) barriers_.emplace_back(barrier.parties);
  for (std::size_t i = 0; i < vcpus; ++i) {
    vcpus_.push_back(std::make_unique<Vcpu>(*this, VcpuId(static_cast<std::uint32_t>(i)), machine));
  }
  const std::string prefix = "vms." + config.name + ".tasks.";
  for (const TaskConfig& task : config.tasks) {
    TaskGroup& group = groups_.emplace_back(TaskGroup{&task, {}});
    for (std::int64_t i = 0; i < task.count; ++i) {
      group.tasks.push_back(
          std::make_unique<Task>(*this, machine.engine(), seed, prefix + task.name + "." + std::to_string(i)));
    }
  }
}

void Vm::start() {
  std::size_t next = 0;
  for (TaskGroup& group : groups_) {
    for (const auto& task : group.tasks) {
      Vcpu& vcpu = *vcpus_[next++ % vcpus_.size()];
      task->place_on(vcpu);
      task->start(run_program(*task, group.config->program));
      vcpu.enqueue(*task);
    }
  }
}

void Vm::task_finished(Task& task) {
  task.vcpu().leave(task);
  observer_.task_finished();
}

void Vm::reset_statistics() {
  for (const auto& lock : locks_) lock->reset_statistics();
  for (const auto& vcpu : vcpus_) vcpu->reset_accounts();
}

}  // namespace vcpusim
