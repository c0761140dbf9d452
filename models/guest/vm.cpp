#include "models/guest/vm.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace vcpusim {

bool GuestBarrier::arrive(Task& task) {
  if (static_cast<std::int64_t>(waiting_.size()) + 1 < parties_) {
    waiting_.push_back(&task);
    return false;
  }
  for (Task* const other : std::exchange(waiting_, {})) other->wake(&task);
  return true;
}

namespace {
Co run_program(Task& self, const Program& program) {
  for (const auto& operation : program) co_await operation->run(self);
}
}  // namespace

Vm::Vm(std::string name, const VmConfig& config, std::uint64_t seed, Numbers first, const Machine& machine,
       const Assists& assists, const Tracer& trace, Observer& observer)
    : name_(std::move(name)),
      config_(config),
      machine_(machine),
      assists_(assists),
      hint_(assists.hint ? &*assists.hint : nullptr),
      trace_(trace),
      observer_(observer),
      first_task_(first.task) {
  const auto vcpus = static_cast<std::size_t>(config.vcpus);
  const std::string path = "vms." + name_;
  if (config.guest.tick > Duration::zero()) {
    RandomStream random(seed, path, "clock");
    clock_offset_ =
        Duration{static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(config.guest.tick.count())))};
  }
  std::int64_t tasks = 0;
  for (const TaskConfig& task : config.tasks) tasks += task.count;
  for (const LockConfig& lock : config.guest.locks) {
    const auto make = [&] {
      return std::make_unique<GuestLock>(lock, machine, vcpus_, vcpus, config.native, first.lock, trace);
    };
    locks_.push_back(make());
    auto& own = own_locks_.emplace_back();
    const auto instances = lock.kind.params.find("instances");
    const bool per_task =
        instances != lock.kind.params.end() && instances->second == ParamValue(std::string("per_task"));
    for (std::int64_t i = 0; per_task && i < tasks; ++i) own.push_back(make());
    has_own_locks_ = has_own_locks_ || per_task;
    ++first.lock;
  }
  for (const BarrierConfig& barrier : config.guest.barriers) barriers_.emplace_back(barrier.parties);
  for (std::uint32_t i = 0; i < vcpus; ++i) {
    vcpus_.push_back(std::make_unique<Vcpu>(*this, VcpuId{i}, first.vcpu + i, machine));
  }
  steal_seen_.resize(vcpus);
  for (const TaskConfig& task : config.tasks) {
    TaskGroup& group = groups_.emplace_back(TaskGroup{&task, {}});
    for (std::int64_t i = 0; i < task.count; ++i) {
      group.tasks.push_back(std::make_unique<Task>(*this, machine.engine(), seed, first.task++,
                                                   path + ".tasks." + task.name + "." + std::to_string(i)));
    }
  }
}

void Vm::start_tasks(std::vector<Task*>& order) {
  std::size_t next = 0;
  for (TaskGroup& group : groups_) {
    for (const auto& task : group.tasks) {
      Vcpu& vcpu = *vcpus_[next++ % vcpus_.size()];
      task->place_on(vcpu);
      task->start(run_program(*task, group.config->program));
      order.push_back(task.get());
    }
  }
}

void Vm::start_clocks() {
  for (const auto& vcpu : vcpus_) vcpu->start();
}

void Vm::task_finished(Task& task) {
  trace_(TraceKind::kTaskFinished, task.index());
  task.vcpu().leave(task);
  observer_.task_finished();
}

Vcpu& Vm::place(const Task& task) {
  Vcpu& last = task.vcpu();
  if (last.is_idle()) return last;
  const std::size_t n = vcpus_.size();
  for (std::size_t i = 1; i < n; ++i) {
    Vcpu& other = *vcpus_[(index_of(last.id()) + i) % n];
    if (other.is_idle()) return other;
  }
  return last;
}

Task* Vm::pull_task_for(const Vcpu& vcpu) {
  Vcpu* longest = nullptr;
  for (const auto& other : vcpus_) {
    if (other.get() == &vcpu) continue;
    // Without a current task, it is about to take one of them.
    if (other->waiting_tasks() <= (other->current() == nullptr ? 1u : 0u)) continue;
    if (longest == nullptr || other->waiting_tasks() > longest->waiting_tasks()) longest = other.get();
  }
  return longest == nullptr ? nullptr : longest->give_task();
}

void Vm::account_tick(const Vcpu& vcpu) {
  Duration left = config_.guest.tick;
  if (assists_.steal_clock) {
    // All of it at once, however many periods it is (kernel/sched/cputime.c: account_process_tick, 5.10).
    const Duration steal = vcpu.steal() - std::exchange(steal_seen_[index_of(vcpu.id())], vcpu.steal());
    reported_.steal += steal;
    left = std::max(Duration::zero(), left - steal);
  }
  const Task* const task = vcpu.current();
  if (task == nullptr) return;  // idle
  (task->activity() == Activity::kUser ? reported_.user : reported_.system) += left;
}

GuestLock::Statistics Vm::lock_statistics(std::size_t index) const {
  GuestLock::Statistics sum = locks_[index]->statistics();
  for (const auto& lock : own_locks_[index]) sum.add(lock->statistics());
  return sum;
}

std::vector<std::string> Vm::standstill() const {
  std::vector<std::string> stuck;
  for (const TaskGroup& group : groups_) {
    for (const auto& task : group.tasks) {
      if (task->finished()) continue;
      const std::optional<std::string> reason = task->stuck();
      if (!reason) return {};
      stuck.push_back(task->path() + " " + *reason);
    }
  }
  return stuck;
}

void Vm::reset_statistics() {
  for (const auto& lock : locks_) lock->reset_statistics();
  for (const auto& locks : own_locks_) {
    for (const auto& lock : locks) lock->reset_statistics();
  }
  for (const auto& vcpu : vcpus_) vcpu->reset_statistics();
  for (TaskGroup& group : groups_) {
    for (const auto& task : group.tasks) {
      task->operations = 0;
      task->wait.spin_before = Duration::zero();  // its vCPU counts from zero again, too
    }
  }
  counts = {};
  clock_statistics = {};
  reported_ = {};
  std::ranges::fill(steal_seen_, Duration::zero());
}

}  // namespace vcpusim
