#include "models/host/host.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace vcpusim {

Host::Host(const HostConfig& config, const Machine& machine, Cores& cores, std::uint64_t seed, std::vector<Vcpu*> vcpus,
           std::vector<SchedulableVcpu> descriptions, const std::vector<QuotaConfig>& quotas, const Assists& assists,
           const Tracer& trace)
    : machine_(machine),
      cores_(cores),
      assists_(assists),
      trace_(trace),
      engine_(machine.engine()),
      scheduler_timer_(engine_.add_timer<&Host::on_scheduler_timer>(*this)),
      random_(seed, "host", "scheduler"),
      vcpus_(std::move(vcpus)),
      states_(vcpus_.size(), HostState::kHalted),
      spin_(vcpus_.size()),
      descriptions_(std::move(descriptions)),
      pcpus_(machine.pcpus()) {
  for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
    Pcpu& pcpu = pcpus_[i];
    pcpu.host = this;
    pcpu.id = PcpuId{i};
    pcpu.timer = engine_.add_timer<&Pcpu::on_timer>(pcpu);
  }
  for (VcpuIndex i = 0; i < descriptions_.size(); ++i) {
    if (i == 0 || descriptions_[i].vm != descriptions_[i - 1].vm) vms_.push_back({i, 0, 0});
    ++vms_.back().size;
  }
  for (const QuotaConfig& quota : quotas) {
    if (quota.cpus == 0) {
      quotas_.push_back(nullptr);
    } else {
      quotas_.push_back(std::make_unique<Quota>(
          quota, machine.pcpus(), engine_, [this](VcpuIndex vcpu) { make_ready(vcpu, kNoPcpu, Enqueue::kReleased); }));
    }
  }
  const SchedulerKind* const kind = find_scheduler_kind(config.scheduler.name);
  SIM_CHECK(kind != nullptr, "no scheduler kind \"" + config.scheduler.name + "\"");
  scheduler_ = kind->make(config.scheduler, *this);
}

Host::~Host() = default;

void Host::charge(Pcpu& pcpu) {
  const Duration ran = now() - pcpu.charged_until;
  pcpu.charged_until = now();
  if (pcpu.running == kNoVcpu || ran == Duration::zero()) return;
  pcpu.busy += ran;
  scheduler_->charge(pcpu.running, pcpu.id, ran);
  if (Quota* const quota = quota_of(pcpu.running)) quota->use(pcpu.id, ran);
}

void Host::rearm(Pcpu& pcpu) {
  SimTime next = pcpu.decide_at;
  if (pcpu.running != kNoVcpu) {
    // Once it is going to decide there is nothing to check; a scheduler that has asked for it may want it at once.
    if (pcpu.decide_at == kNever) next = std::min(next, scheduler_->next_check(pcpu.id));
    if (Quota* const quota = quota_of(pcpu.running)) next = std::min(next, now() + quota->available(pcpu.id));
  }
  if (next == kNever) {
    engine_.cancel(pcpu.timer);
  } else if (next != engine_.expiry(pcpu.timer)) {
    engine_.schedule(pcpu.timer, std::max(next, now()));
  }
}

void Host::decide_by(Pcpu& pcpu, SimTime at) { pcpu.decide_at = std::min(pcpu.decide_at, at); }

void Host::on_timer(Pcpu& pcpu) {
  charge(pcpu);
  if (pcpu.running != kNoVcpu) {
    Quota* const quota = quota_of(pcpu.running);
    if (quota != nullptr && quota->available(pcpu.id) == Duration::zero()) {
      quota->throttle(pcpu.running, true);
      leave(pcpu, HostState::kThrottled);
      return;
    }
  }
  if (pcpu.decide_at <= now() || (pcpu.running != kNoVcpu && scheduler_->check(pcpu.id))) {
    decide(pcpu, Enqueue::kPreempted);
  } else {
    rearm(pcpu);
  }
}

void Host::decide(Pcpu& pcpu, Enqueue why) {
  const VcpuIndex previous = pcpu.running;
  if (previous != kNoVcpu) {
    pcpu.running = kNoVcpu;
    states_[previous] = HostState::kReady;
    spin_[previous].woken = false;
    scheduler_->enqueue(previous, pcpu.id, why);
  }
  run_next(pcpu, previous);
}

// Lets `pcpu` run whom the scheduler picks. `previous` has run until now and is ready again; a vCPU that is picked
// once more does not notice.
void Host::run_next(Pcpu& pcpu, VcpuIndex previous) {
  pcpu.decide_at = kNever;
  VcpuIndex next = scheduler_->pick(pcpu.id);
  while (next != kNoVcpu) {
    Quota* const quota = quota_of(next);
    if (quota == nullptr || quota->available(pcpu.id) > Duration::zero()) break;
    states_[next] = HostState::kThrottled;
    quota->throttle(next, next == previous);
    if (next != previous) vcpus_[next]->wait_changed(HostState::kThrottled);
    next = scheduler_->pick(pcpu.id);
  }
  if (const VcpuIndex boosted = std::exchange(pcpu.boosted, kNoVcpu); boosted != kNoVcpu && boosted != next) {
    ++statistics_.directed_yields.not_honoured;
  }
  pcpu.running = next;
  if (previous != next && previous != kNoVcpu) vcpus_[previous]->descheduled(states_[previous]);
  if (next != kNoVcpu) {
    states_[next] = HostState::kRunning;
    if (next != previous) dispatch(pcpu, next);
  } else {
    cores_.occupy(pcpu.id, nullptr);
  }
  rearm(pcpu);
}

void Host::dispatch(Pcpu& pcpu, VcpuIndex next) {
  const TransitionCosts& costs = machine_.transitions();
  Vcpu& vcpu = *vcpus_[next];
  Duration overhead{};
  if (pcpu.last != next) {
    ++statistics_.context_switches;
    overhead += costs.context_switch;
  }
  if (const PcpuId before = vcpu.pcpu(); before != kNoPcpu && before != pcpu.id) {
    ++statistics_.migrations;
    const bool same_socket = machine_.distance(before, pcpu.id) <= Distance::kSameSocket;
    overhead += same_socket ? costs.refill_same_socket : costs.refill_other_socket;
  }
  pcpu.last = next;
  spin_[next].in_spin_loop = spin_[next].eligible = false;
  cores_.occupy(pcpu.id, &vcpu);
  vcpu.dispatched(pcpu.id, overhead);
}

void Host::leave(Pcpu& pcpu, HostState state) {
  const VcpuIndex vcpu = pcpu.running;
  scheduler_->blocked(vcpu, pcpu.id);
  pcpu.running = kNoVcpu;
  states_[vcpu] = state;
  run_next(pcpu, vcpu);
}

void Host::halt(Vcpu& vcpu) {
  Pcpu& pcpu = pcpus_[index_of(vcpu.pcpu())];
  charge(pcpu);
  if (Quota* const quota = quota_of(pcpu.running)) quota->give_back(pcpu.id);
  leave(pcpu, HostState::kHalted);
}

bool Host::yield(Vcpu& vcpu) {
  Pcpu& pcpu = pcpus_[index_of(vcpu.pcpu())];
  const VcpuIndex yielding = pcpu.running;
  charge(pcpu);
  scheduler_->yield(yielding, pcpu.id);
  decide(pcpu, Enqueue::kYielded);
  return pcpu.running != yielding;
}

int Host::yield_to(Vcpu& vcpu, Vcpu& target) {
  Pcpu& pcpu = pcpus_[index_of(vcpu.pcpu())];
  const VcpuIndex yielding = pcpu.running;
  const VcpuIndex wanted = target.index();
  const bool ready = states_[wanted] == HostState::kReady;
  const PcpuId where = ready ? scheduler_->queue_of(wanted) : target.pcpu();
  if (where != kNoPcpu && scheduler_->runnable_on(pcpu.id) == 1 && scheduler_->runnable_on(where) == 1) return -1;
  if (!ready) return 0;
  charge(pcpu);
  if (!scheduler_->yield_to(yielding, wanted)) return 0;
  Pcpu& other = pcpus_[index_of(where)];
  other.boosted = wanted;
  if (&other != &pcpu) {
    charge(other);
    decide_by(other, now() + machine_.transitions().resched_ipi);
    rearm(other);
  }
  decide(pcpu, Enqueue::kYielded);
  return 1;
}

// Whether the handler of pause-loop exits may boost `vcpu`, now that it looks at it.
bool Host::is_candidate(VcpuIndex vcpu) {
  const DirectedYieldParams& rules = assists_.directed_yield;
  if (states_[vcpu] != HostState::kReady) return false;
  SpinState& spin = spin_[vcpu];
  if (spin.woken) {
    if (!rules.boosts_woken()) return false;
  } else if (rules.boosts_kernel_mode_only() && !vcpus_[vcpu]->in_kernel()) {
    if (!rules.boosts_interrupted() || !vcpus_[vcpu]->has_pending_interrupt()) return false;
  }
  if (!rules.eligibility || !spin.in_spin_loop) return true;
  return std::exchange(spin.eligible, !spin.eligible);
}

bool Host::on_spin(Vcpu& vcpu) {
  const DirectedYieldParams& rules = assists_.directed_yield;
  if (!rules.directed || !scheduler_->directs_yields()) return yield(vcpu);
  const VcpuIndex me = vcpu.index();
  Pcpu& pcpu = pcpus_[index_of(vcpu.pcpu())];
  VmRange& vm = vms_[descriptions_[me].vm];
  auto& counts = statistics_.directed_yields;
  // Guests that use the hint have their marked vCPUs boosted and no others.
  const auto is_marked = [this](VcpuIndex v) { return states_[v] == HostState::kReady && vcpus_[v]->is_marked(); };
  bool marked_only = false;
  if (assists_.hint) {
    for (std::uint32_t i = 0; i < vm.size; ++i) marked_only = marked_only || is_marked(vm.first + i);
    if (!marked_only) {
      ++counts.none_marked;
      if (assists_.hint->fallback == HintParams::Fallback::kResume) return false;
      if (assists_.hint->fallback == HintParams::Fallback::kYield) return yield(vcpu);
    }
  }
  spin_[me].in_spin_loop = true;
  int refusals = 0;
  for (std::uint32_t i = 0; i < vm.size; ++i) {
    const std::uint32_t number = (vm.last_boosted + 1 + i) % vm.size;
    const VcpuIndex candidate = vm.first + number;
    if (candidate == me) continue;
    if (!(marked_only ? is_marked(candidate) : is_candidate(candidate))) continue;
    Vcpu& target = *vcpus_[candidate];
    const bool spinner = target.spins();
    const bool holder = target.holds_lock();
    const bool woken = spin_[candidate].woken;
    const bool marked = target.is_marked();
    ++counts.attempted;
    const int result = yield_to(vcpu, target);
    if (result > 0) {
      vm.last_boosted = rules.has_last_boosted_bug() ? i : number;
      ++counts.succeeded;
      counts.to_holder += holder ? 1 : 0;
      counts.to_spinner += spinner ? 1 : 0;
      counts.to_woken += woken ? 1 : 0;
      counts.to_marked += marked ? 1 : 0;
      const bool left = pcpu.running != me;
      if (!left) spin_[me].in_spin_loop = spin_[me].eligible = false;
      return left;
    }
    constexpr int kMostRefusals = 3;  // virt/kvm/kvm_main.c, Linux 5.10
    if (result < 0 && ++refusals == kMostRefusals) break;
  }
  spin_[me].in_spin_loop = spin_[me].eligible = false;
  vcpu.pay(rules.per_candidate * vm.size);
  return false;
}

void Host::wake(Vcpu& vcpu, PcpuId waker) {
  make_ready(vcpu.index(), waker, vcpu.pcpu() == kNoPcpu ? Enqueue::kNew : Enqueue::kWoken);
}

void Host::make_ready(VcpuIndex index, PcpuId waker, Enqueue why) {
  Vcpu& vcpu = *vcpus_[index];
  states_[index] = HostState::kReady;
  vcpu.wait_changed(HostState::kReady);
  Pcpu& pcpu = pcpus_[index_of(scheduler_->place(index, vcpu.pcpu(), waker))];
  SIM_DCHECK(descriptions_[index].affinity.contains(pcpu.id), "a vCPU was placed outside of its affinity");
  trace_(TraceKind::kWake, index, index_of(pcpu.id));
  spin_[index].woken = true;
  charge(pcpu);
  scheduler_->enqueue(index, pcpu.id, why);
  if (pcpu.running == kNoVcpu) {
    decide_by(pcpu, now() + machine_.transitions().idle_wake);
  } else {
    if (scheduler_->preempts(index, pcpu.id)) {
      decide_by(pcpu, pcpu.id == waker ? now() : now() + machine_.transitions().resched_ipi);
    }
    vcpus_[pcpu.running]->other_waits();
  }
  rearm(pcpu);
}

void Host::reschedule(PcpuId id) {
  Pcpu& pcpu = pcpus_[index_of(id)];
  const TransitionCosts& costs = machine_.transitions();
  decide_by(pcpu, now() + (pcpu.running == kNoVcpu ? costs.idle_wake : costs.resched_ipi));
  if (pcpu.decide_at < engine_.expiry(pcpu.timer)) engine_.schedule(pcpu.timer, pcpu.decide_at);
}

void Host::set_timer(SimTime at) {
  if (at == kNever) {
    engine_.cancel(scheduler_timer_);
  } else {
    engine_.schedule(scheduler_timer_, std::max(at, now()));
  }
}

void Host::reset_statistics() {
  statistics_ = {};
  for (Pcpu& pcpu : pcpus_) {
    charge(pcpu);
    pcpu.busy = Duration::zero();
  }
}

Duration Host::busy_time() const {
  Duration total{};
  for (const Pcpu& pcpu : pcpus_) {
    total += pcpu.busy;
    if (pcpu.running != kNoVcpu) total += now() - pcpu.charged_until;
  }
  return total;
}

}  // namespace vcpusim
