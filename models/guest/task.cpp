#include "models/guest/task.h"

#include <utility>

#include "models/guest/vm.h"
#include "sim/check.h"

namespace vcpusim {

Task::Task(Vm& vm, Engine& engine, std::uint64_t seed, std::uint32_t index, std::string path)
    : vm_(vm), engine_(engine), index_(index), path_(std::move(path)), random_(seed, path_, "program") {}

Task::~Task() { program_.reset(); }

void Task::start(Co program) {
  program_.emplace(std::move(program));
  innermost_ = program_->handle();
}

void Task::drive() {
  suspended_ = false;
  while (!suspended_ && innermost_) innermost_.resume();
  if (!innermost_) {
    finished_at = now();
    vm_.task_finished(*this);
  }
}

void Task::wake(Task* from) {
  off_vcpu_ = false;
  Vcpu* const waker = from != nullptr ? from->vcpu_ : nullptr;
  vm_.place(*this).enqueue(*this, waker);
}

void Task::wake_after(Duration span) {
  if (!alarm_) alarm_ = engine_.add_timer<&Task::alarm>(*this);
  engine_.schedule(*alarm_, now() + span);
}

std::optional<std::string> Task::stuck() const {
  if (off_vcpu_) {
    if (alarm_ && engine_.pending(*alarm_)) return std::nullopt;
    if (waiting_for_ == nullptr) return "blocks until others arrive";
  } else if (op.kind == GuestOp::Kind::kHalt) {
    const bool interruptible = interrupts_off == 0 && vm_.config().guest.tick > Duration::zero();
    if (interruptible || !vcpu_->is_halted()) return std::nullopt;
  } else if (op.kind != GuestOp::Kind::kPoll || op.budget || op.watcher->condition()) {
    return std::nullopt;
  }
  if (waiting_for_ == nullptr) {
    // A vCPU that is called answers as soon as it runs, unless its task does not let it.
    if (std::ranges::none_of(vm_.vcpus(), [](const auto& vcpu) { return vcpu->keeps_calls_waiting(); })) {
      return std::nullopt;
    }
    return "spins for an answer of other vCPUs";
  }
  const Task* const owner = waiting_for_->owner();
  return "waits for lock \"" + waiting_for_->name() + "\", " +
         (owner == nullptr ? "which nobody holds"
          : owner == this  ? "which it holds itself"
                           : "held by " + owner->path_);
}

void Task::vcpu_stopped() {
  preempted_ = true;
  for (GuestLock* const lock : held_) lock->holder_preempted(*this);
  if (waiting_for_ != nullptr) waiting_for_->waiter_preempted();
}

void Task::vcpu_resumed(SimTime stopped_at) {
  if (std::exchange(preempted_, false)) {
    for (GuestLock* const lock : held_) lock->holder_resumed(*this, now() - stopped_at);
  }
  if (waiting_for_ == nullptr) return;
  waiting_for_->waiter_runs(*this);
  if (stopped_at != kNever) waiting_for_->waiter_resumed(*this, stopped_at);
}

}  // namespace vcpusim
