#include "models/guest/vcpu.h"

#include <algorithm>
#include <utility>

#include "models/guest/ipi.h"
#include "models/guest/task.h"
#include "models/guest/vm.h"
#include "models/host/host.h"
#include "sim/check.h"

namespace vcpusim {

Vcpu::Vcpu(Vm& vm, VcpuId id, std::uint32_t index, const Machine& machine)
    : vm_(vm),
      id_(id),
      index_(index),
      machine_(machine),
      engine_(machine.engine()),
      timer_(engine_.add_timer<&Vcpu::on_timer>(*this)),
      clock_(vm.config().guest.tick, vm.clock_offset(), engine_, *this) {
  if (vm.assists().ple) ple_window_ = vm.assists().ple->base();
}

void Vcpu::run_natively_on(PcpuId pcpu, Cores& cores) {
  pcpu_ = pcpu;
  cores_ = &cores;
  state_ = HostState::kRunning;
  phase_ = Phase::kIdle;
}

void Vcpu::start() {
  if (!is_idle() || !vm_.config().guest.tickless_idle) clock_.start();
}

// ---- guest mode -----------------------------------------------------------------------------------------------

void Vcpu::run_for(Duration span) {
  GuestOp& op = current_->op;
  op.kind = GuestOp::Kind::kRun;
  op.left = span;
  if (attention_) {
    enter();
  } else {
    phase_since_ = engine_.now();
    engine_.schedule(timer_, engine_.now() + wall_time(span));
  }
}

void Vcpu::poll(CacheLine& line, LineWatcher& watcher, std::optional<Duration> budget) {
  current_->op = {GuestOp::Kind::kPoll, {}, &line, &watcher, budget};
  current_->set_activity(Activity::kSpin);
  begin_poll();
  line.watch(watcher, pcpu_);
  if (attention_) {
    suspend();
    enter();
  }
}

void Vcpu::begin_poll() {
  const SimTime now = engine_.now();
  const std::optional<Duration>& budget = current_->op.budget;
  phase_since_ = now;
  poll_sees_at_ = kNever;
  poll_ends_at_ = budget ? now + *budget : kNever;
  poll_exits_at_ = vm_.assists().ple && host_ != nullptr ? now + ple_window() : kNever;
  arm_poll();
}

void Vcpu::arm_poll() {
  const SimTime next = std::min({poll_sees_at_, poll_ends_at_, poll_exits_at_});
  if (next != kNever) {
    engine_.schedule(timer_, next);
  } else {
    engine_.cancel(timer_);
  }
}

// A pause-loop exit: the host's handler runs for a while, then decides (Host::on_spin, from enter).
void Vcpu::pause_loop_exit() {
  suspend();
  ++exits_.ple;
  ple_window_ = vm_.assists().ple->grown(ple_window_);
  overhead_ += machine_.transitions().vm_exit + vm_.assists().directed_yield.handler;
  spun_ = true;
  enter();
}

Duration Vcpu::ple_window() const {
  if (vm_.assists().ple->mode == PleParams::Mode::kAmd) return ple_window_ * machine_.pause();
  return to_duration(Cycles{ple_window_}, machine_.config().clock);
}

void Vcpu::poll_succeeds(SimTime at) {
  poll_sees_at_ = std::max(at, engine_.now());
  arm_poll();
}

void Vcpu::poll_fails() {
  poll_sees_at_ = kNever;
  arm_poll();
}

void Vcpu::halt_current() {
  current_->op.kind = GuestOp::Kind::kHalt;
  enter();
}

void Vcpu::hypercall(Duration cost) {
  if (host_ == nullptr) return;
  ++exits_.hypercall;
  overhead_ += machine_.transitions().vm_exit + cost;
  attention_ = true;
}

void Vcpu::yield_to(Vcpu& target) {
  current_->op.kind = GuestOp::Kind::kContinue;
  if (host_ != nullptr && host_->yield_to(*this, target) > 0 && phase_ == Phase::kOff) return;
  engine_.schedule(timer_, engine_.now());
}

void Vcpu::resume_op() {
  const SimTime now = engine_.now();
  GuestOp& op = current_->op;
  phase_since_ = now;
  switch (op.kind) {
    case GuestOp::Kind::kContinue:
      engine_.schedule(timer_, now);
      break;
    case GuestOp::Kind::kRun:
      engine_.schedule(timer_, now + wall_time(op.left));
      break;
    case GuestOp::Kind::kPoll:
      begin_poll();
      op.line->resume(*op.watcher, pcpu_);
      break;
    case GuestOp::Kind::kHalt:
      SIM_CHECK(false, "a halting vCPU does not resume its task");
  }
}

void Vcpu::suspend() {
  const SimTime now = engine_.now();
  engine_.cancel(timer_);
  switch (phase_) {
    case Phase::kOff:
    case Phase::kHaltPoll:
    case Phase::kIdle:
      break;
    case Phase::kOverhead:
      overhead_ -= std::min(overhead_, now - phase_since_);
      break;
    case Phase::kInterrupt:
      burn_ -= std::min(burn_, work_in(now - phase_since_));
      break;
    case Phase::kGuest: {
      GuestOp& op = current_->op;
      if (op.kind == GuestOp::Kind::kRun) {
        op.left -= std::min(op.left, work_in(now - phase_since_));
      } else if (op.kind == GuestOp::Kind::kPoll) {
        op.line->pause(*op.watcher);
        if (op.budget) *op.budget -= std::min(*op.budget, now - phase_since_);
      }
      break;
    }
  }
  phase_ = Phase::kOff;
}

void Vcpu::on_timer() {
  switch (phase_) {
    case Phase::kOverhead:
      overhead_ = Duration::zero();
      phase_ = Phase::kOff;
      enter();
      break;
    case Phase::kInterrupt:
      burn_ = Duration::zero();
      finish_handling();
      phase_ = Phase::kOff;
      enter();
      break;
    case Phase::kHaltPoll:
      phase_ = Phase::kOff;
      halt_poll_over_ = true;
      enter();
      break;
    case Phase::kGuest:
      if (current_->op.kind == GuestOp::Kind::kPoll && std::min(poll_sees_at_, poll_ends_at_) > engine_.now()) {
        pause_loop_exit();
        break;
      }
      if (std::optional<Duration>& budget = current_->op.budget; current_->op.kind == GuestOp::Kind::kPoll && budget) {
        *budget -= std::min(*budget, engine_.now() - phase_since_);
      }
      current_->op.kind = GuestOp::Kind::kContinue;
      current_->op.watcher = nullptr;
      current_->drive();
      break;
    case Phase::kOff:
    case Phase::kIdle:
      SIM_CHECK(false, "a vCPU's timer expired while nothing was under way");
  }
}

// ---- what comes next ------------------------------------------------------------------------------------------

bool Vcpu::interrupts_enabled() const { return current_ == nullptr || current_->interrupts_off == 0; }
bool Vcpu::preemptible() const { return current_ == nullptr || current_->preemption_off == 0; }

void Vcpu::enter() {
  phase_since_ = engine_.now();
  if (overhead_ > Duration::zero()) {
    phase_ = Phase::kOverhead;
    account(Activity::kOverhead);
    engine_.schedule(timer_, phase_since_ + overhead_);
    return;
  }
  if (std::exchange(spun_, false)) {
    if (host_->on_spin(*this)) return;
    if (overhead_ > Duration::zero()) {
      enter();
      return;
    }
  }
  if (handling_ != Handling::kNothing) {
    begin(handling_, burn_);
    return;
  }
  const TransitionCosts& costs = machine_.transitions();
  if (interrupts_enabled()) {
    if (clock_.pending()) {
      vm_.trace()(TraceKind::kTick, index_, 0, clock_.deliver(vm_.clock_statistics).count());
      begin(Handling::kTick, costs.guest_tick);
      return;
    }
    if (!ipis_.empty()) {
      ipi_under_way_ = ipis_.front();
      ipis_.pop_front();
      begin(Handling::kIpi, costs.ipi_handler + ipi_under_way_->handler_work);
      return;
    }
  }
  if (current_ == nullptr && queue_.empty()) {
    if (Task* const pulled = vm_.pull_task_for(*this)) queue_.push_back(pulled);
  }
  if (!queue_.empty() && preemptible() && (current_ == nullptr || resched_)) {
    if (current_ != nullptr) {
      queue_.push_back(std::exchange(current_, nullptr));
      tell_lookers();
    }
    begin(Handling::kSwitch, costs.guest_switch);
    return;
  }
  attention_ = clock_.pending() || !ipis_.empty();
  if (current_ == nullptr) {
    go_idle();
    return;
  }
  if (current_->op.kind == GuestOp::Kind::kHalt) {
    if (!halting_ || !std::exchange(unhalted_, false)) {  // HLT exits even if a kick is already there
      halt();
      return;
    }
    current_->op.kind = GuestOp::Kind::kContinue;
  }
  awake();
  phase_ = Phase::kGuest;
  account(current_->activity());
  resume_op();
}

// A handler or a switch of `cost` in the guest's kernel.
void Vcpu::begin(Handling what, Duration cost) {
  awake();
  if (what != Handling::kSwitch && current_ != nullptr && current_->op.kind == GuestOp::Kind::kHalt) {
    current_->op.kind = GuestOp::Kind::kContinue;  // an interrupt ends a halt
  }
  handling_ = what;
  burn_ = cost;
  phase_ = Phase::kInterrupt;
  account(Activity::kSystem);
  engine_.schedule(timer_, engine_.now() + wall_time(cost));
}

void Vcpu::finish_handling() {
  switch (std::exchange(handling_, Handling::kNothing)) {
    case Handling::kNothing:
      break;
    case Handling::kTick:
      vm_.account_tick(*this);
      if (!grace_periods_.empty() && (current_ == nullptr || in_preemptible_user_mode())) report_quiescent();
      if (!queue_.empty() && time_on_pcpu() - slice_started_ >= vm_.config().guest.timeslice) resched_ = true;
      break;
    case Handling::kIpi: {
      IpiCall& call = *std::exchange(ipi_under_way_, nullptr);
      if (--call.outstanding == 0) {
        call.line.store(pcpu_);
        call.line.written();
      }
      break;
    }
    case Handling::kSwitch:
      resched_ = false;
      if (!queue_.empty()) {  // it may have been pulled away meanwhile
        current_ = queue_.front();
        queue_.pop_front();
        current_->place_on(*this);
        slice_started_ = time_on_pcpu();
        tell_lookers();
      }
      if (!grace_periods_.empty()) report_quiescent();
      break;
  }
}

void Vcpu::go_idle() {
  if (vm_.config().guest.tickless_idle) clock_.stop();
  if (host_ == nullptr) {
    phase_ = Phase::kIdle;
    account(Activity::kIdle);
    cores_->occupy(pcpu_, nullptr);
    return;
  }
  halt();
}

// Exits in order to halt; polls for a while, if the host does so; gives up the pCPU. Whatever comes up in between is
// found by enter(), which decides anew after each of these steps.
void Vcpu::halt() {
  const SimTime now = engine_.now();
  if (!halting_) {
    halting_ = true;
    halt_began_ = now;
    halt_poll_over_ = false;
    ++exits_.halt;
    overhead_ = machine_.transitions().vm_exit;
    enter();
    return;
  }
  if (!halt_poll_over_ && halt_poll_ > Duration::zero() && host_->is_alone(*this)) {
    phase_ = Phase::kHaltPoll;
    account(Activity::kOverhead);
    engine_.schedule(timer_, now + halt_poll_);
    return;
  }
  phase_ = Phase::kOff;
  host_->halt(*this);
}

// The vCPU goes on after it has exited in order to halt, whether or not it came to that.
void Vcpu::awake() {
  if (!std::exchange(halting_, false) || !vm_.assists().halt_poll) return;
  const HaltPollParams& params = *vm_.assists().halt_poll;
  const Duration slept = engine_.now() - halt_began_;
  if (slept <= halt_poll_) return;
  if (slept > params.max) {
    halt_poll_ = params.shrink == 0 ? Duration::zero() : halt_poll_ / params.shrink;
  } else if (halt_poll_ < params.max) {
    halt_poll_ = std::min(std::max(halt_poll_ * params.grow, params.grow_start), params.max);
  }
}

void Vcpu::other_waits() {
  if (phase_ == Phase::kHaltPoll) engine_.schedule(timer_, engine_.now());
}

void Vcpu::kick(PcpuId from) {
  unhalted_ = true;
  if (state_ == HostState::kHalted) {
    host_->wake(*this, from);
  } else if (phase_ == Phase::kHaltPoll) {
    attend(nullptr);
  }
}

bool Vcpu::reads_preempted() const {
  const std::optional<StealClockParams>& steal_clock = vm_.assists().steal_clock;
  if (!steal_clock || is_running()) return false;
  return !left_halted_ || (steal_clock->halted_reads_preempted && stopped_at_ != kNever);
}

void Vcpu::tell_lookers() {
  for (CacheLine* const line : lookers_) line->look_again();
}

bool Vcpu::in_preemptible_user_mode() const {
  return current_ != nullptr && current_->activity() == Activity::kUser && preemptible();
}

bool Vcpu::await_quiescence(GracePeriod& waiting) {
  if (is_idle() || (!clock_.exists() && in_preemptible_user_mode())) return false;
  grace_periods_.push_back(&waiting);
  return true;
}

void Vcpu::report_quiescent() {
  for (GracePeriod* const waiting : std::exchange(grace_periods_, {})) waiting->quiescent(*this);
}

bool Vcpu::in_kernel() const { return current_ == nullptr || current_->activity() != Activity::kUser; }
bool Vcpu::spins() const { return current_ != nullptr && current_->op.kind == GuestOp::Kind::kPoll; }
bool Vcpu::is_marked() const { return current_ != nullptr && current_->marks > 0; }
bool Vcpu::holds_lock() const { return current_ != nullptr && current_->holds_lock(); }

// Something has come up: do it now if guest code is executing, wake up if halted, otherwise it is found in time.
void Vcpu::attend(std::uint64_t ExitCounts::*reason) {
  attention_ = true;
  if (phase_ == Phase::kGuest) {
    suspend();
    if (host_ != nullptr && reason != nullptr) {
      ++(exits_.*reason);
      overhead_ += machine_.transitions().vm_exit;
    }
    enter();
  } else if (phase_ == Phase::kIdle) {
    phase_ = Phase::kOff;
    cores_->occupy(pcpu_, this);
    enter();
  } else if (phase_ == Phase::kHaltPoll) {
    suspend();
    enter();
  }
}

void Vcpu::leave(Task& task) {
  SIM_DCHECK(&task == current_, "a task that does not run cannot leave");
  task.op = {};
  current_ = nullptr;
  resched_ = false;
  tell_lookers();
  if (!grace_periods_.empty()) report_quiescent();
  enter();
}

void Vcpu::yield_task() {
  if (!queue_.empty()) {
    resched_ = true;
    attention_ = true;
  }
}

void Vcpu::enqueue(Task& task, Vcpu* from) {
  queue_.push_back(&task);
  clock_.start();
  if (state_ == HostState::kHalted) {
    if (from != nullptr && from != this) {
      const TransitionCosts& costs = machine_.transitions();
      ++from->exits_.ipi;
      from->overhead_ += costs.ipi_send + costs.vm_exit;
      from->attention_ = true;
    }
    if (host_ != nullptr) host_->wake(*this, from == nullptr ? kNoPcpu : from->pcpu_);
  } else if (phase_ == Phase::kIdle || phase_ == Phase::kHaltPoll) {
    attend(nullptr);
  }
}

Task* Vcpu::give_task() {
  if (queue_.empty()) return nullptr;
  Task* const task = queue_.back();
  queue_.pop_back();
  return task;
}

void Vcpu::send_ipi(IpiCall& call, Vcpu& sender, bool exits) {
  const TransitionCosts& costs = machine_.transitions();
  ++call.outstanding;
  sender.overhead_ += costs.ipi_send;
  sender.attention_ = true;
  if (exits && sender.host_ != nullptr) {
    ++sender.exits_.ipi;
    sender.overhead_ += costs.vm_exit;
  }
  ipis_.push_back(&call);
  if (state_ == HostState::kHalted) {
    attention_ = true;
    if (interrupts_enabled()) host_->wake(*this, sender.pcpu_);
  } else if (interrupts_enabled() || phase_ != Phase::kGuest) {
    attend(&ExitCounts::ipi);
  } else {
    attention_ = true;
  }
}

void Vcpu::tick_is_due() {
  if (state_ == HostState::kHalted) {
    attention_ = true;
    if (interrupts_enabled()) host_->wake(*this, kNoPcpu);
  } else if (interrupts_enabled() || phase_ != Phase::kGuest) {
    attend(&ExitCounts::timer);
  } else {
    attention_ = true;
  }
}

// ---- the host's side ------------------------------------------------------------------------------------------

void Vcpu::dispatched(PcpuId pcpu, Duration overhead) {
  state_ = HostState::kRunning;
  pcpu_ = pcpu;
  if (vm_.assists().ple) ple_window_ = vm_.assists().ple->shrunk(ple_window_);
  overhead_ += overhead;
  flush_pending_ = false;
  vm_.trace()(TraceKind::kDispatch, index_, vcpusim::index_of(pcpu));
  tell_lookers();
  if (current_ != nullptr) current_->vcpu_resumed(stopped_at_);
  enter();
}

void Vcpu::descheduled(HostState state) {
  suspend();
  state_ = state;
  stopped_at_ = engine_.now();
  left_halted_ = state == HostState::kHalted;
  tell_lookers();
  vm_.trace()(TraceKind::kDeschedule, index_, vcpusim::index_of(pcpu_), static_cast<std::int64_t>(state));
  account(waiting_activity());
  if (current_ != nullptr && state != HostState::kHalted) current_->vcpu_stopped();
}

void Vcpu::wait_changed(HostState state) {
  state_ = state;
  account(waiting_activity());
}

void Vcpu::set_costopped(bool costopped) {
  costopped_ = costopped;
  if (state_ == HostState::kReady) account(waiting_activity());
}

Activity Vcpu::waiting_activity() const {
  switch (state_) {
    case HostState::kReady:
      return costopped_ ? Activity::kCostop : Activity::kReady;
    case HostState::kThrottled:
      return Activity::kLimited;
    default:
      return current_ != nullptr ? Activity::kHalted : Activity::kIdle;
  }
}

// ---- SMT ------------------------------------------------------------------------------------------------------

void Vcpu::core_shared(bool shared) {
  if (shared == core_shared_) return;
  const bool timed = phase_ == Phase::kInterrupt ||
                     (phase_ == Phase::kGuest && current_->op.kind == GuestOp::Kind::kRun && engine_.pending(timer_));
  if (!timed) {
    core_shared_ = shared;
    return;
  }
  const Phase phase = phase_;
  suspend();
  core_shared_ = shared;
  phase_ = phase;
  phase_since_ = engine_.now();
  engine_.schedule(timer_, phase_since_ + wall_time(phase == Phase::kInterrupt ? burn_ : current_->op.left));
}

// ---- accounting -----------------------------------------------------------------------------------------------

Duration Vcpu::time(Activity activity) const {
  Duration total = spent_[static_cast<std::size_t>(activity)];
  if (activity == activity_) total += engine_.now() - activity_since_;
  return total;
}

Duration Vcpu::time_on_pcpu() const {
  Duration total{};
  for (const Activity a : {Activity::kUser, Activity::kSystem, Activity::kHold, Activity::kSpin, Activity::kOverhead}) {
    total += time(a);
  }
  return total;
}

void Vcpu::reset_statistics() {
  slice_started_ -= time_on_pcpu();
  spent_ = {};
  activity_since_ = engine_.now();
  exits_ = {};
}

}  // namespace vcpusim
