#include "models/guest/vcpu.h"

#include "models/guest/task.h"

namespace vcpusim {

Vcpu::Vcpu(Vm& vm, VcpuId id, const Machine& machine)
    : vm_(vm), id_(id), engine_(machine.engine()), timer_(engine_.add_timer<&Vcpu::on_timer>(*this)) {}

void Vcpu::run_natively_on(PcpuId pcpu) { pcpu_ = pcpu; }

void Vcpu::poll(CacheLine& line, LineWatcher& watcher, std::optional<Duration> budget) {
  guest_does(Activity::kSpin);
  poll_sees_at_ = kNever;
  poll_ends_at_ = budget ? engine_.now() + *budget : kNever;
  if (budget) engine_.schedule(timer_, poll_ends_at_);
  line.watch(watcher);
}

void Vcpu::poll_succeeds(SimTime at) {
  poll_sees_at_ = at;
  if (at < poll_ends_at_) engine_.schedule(timer_, at);
}

void Vcpu::poll_fails() {
  poll_sees_at_ = kNever;
  if (poll_ends_at_ == kNever) {
    engine_.cancel(timer_);
  } else {
    engine_.schedule(timer_, poll_ends_at_);
  }
}

void Vcpu::leave(Task& task) {
  SIM_DCHECK(&task == current_, "a task that does not run cannot leave");
  current_ = nullptr;
  guest_does(Activity::kIdle);
  pick_task();
}

void Vcpu::enqueue(Task& task) {
  queue_.push_back(&task);
  if (current_ == nullptr) pick_task();
}

void Vcpu::pick_task() {
  if (queue_.empty()) return;
  current_ = queue_.front();
  queue_.pop_front();
  guest_does(current_->activity());
  engine_.schedule(timer_, engine_.now());
}

void Vcpu::on_timer() { current_->drive(); }

void Vcpu::guest_does(Activity activity) {
  const SimTime now = engine_.now();
  spent_[static_cast<std::size_t>(activity_)] += now - activity_since_;
  activity_since_ = now;
  activity_ = activity;
}

Duration Vcpu::time(Activity activity) const {
  Duration total = spent_[static_cast<std::size_t>(activity)];
  if (activity == activity_) total += engine_.now() - activity_since_;
  return total;
}

void Vcpu::reset_accounts() {
  spent_ = {};
  activity_since_ = engine_.now();
}

}  // namespace vcpusim
