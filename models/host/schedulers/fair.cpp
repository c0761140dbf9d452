#include "models/host/schedulers/fair.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "sim/check.h"

namespace vcpusim {

void FairParams::describe(ParamVisitor& visitor) {
  visitor.integer("hz", hz, {10, 100'000},
                  "scheduler ticks per second and pCPU (Linux: kernel/Kconfig.hz, default 250)");
  visitor.flag(
      "tick_skew", tick_skew,
      "spread the ticks of the pCPUs over half a period (boot option skew_tick, off by default) instead of all "
      "at the same instants");
  visitor.integer("scale", scale, {0, 1'000'000},
                  "factor on latencies and slices; 0: 1 + log2(min(8, pCPUs)) (kernel/sched/fair.c: "
                  "get_update_sysctl_factor)");
  visitor.flag("wake_affine", wake_affine, "a woken vCPU may move to the waker's pCPU (SD_WAKE_AFFINE, on)");
  visitor.flag("balance", balance, "balance load between pCPUs; off is like isolcpus");
  visitor.duration("migration_cost", migration_cost, kAnyDuration,
                   "a vCPU that ran more recently is cache-hot; a pCPU that expects to idle for less does not look for "
                   "work (sysctl_sched_migration_cost, 0.5 ms)");
  visitor.integer("busy_factor", busy_factor, {1, 1024},
                  "busy pCPUs balance so many times more rarely (kernel/sched/topology.c: 16 from 5.10, 32 before)");
  visitor.integer("imbalance_pct", imbalance_pct, {100, 1000},
                  "between two overloaded groups, percentage of load that is an imbalance (117 from 5.10, 125 before)");
  visitor.integer("smt_imbalance_pct", smt_imbalance_pct, {100, 1000}, "the same between SMT siblings (110)");
  visitor.integer("cache_nice_tries", cache_nice_tries, {0, 1000},
                  "failed attempts after which cache-hot vCPUs are moved too (kernel/sched/topology.c: 1)");
  visitor.flag("group_by_vm", group_by_vm,
               "the runnable vCPUs of a VM share its weight, as if in one cgroup with cpu.shares; flat: queues are not "
               "nested");
}

FairScheduler::FairScheduler(HostView& host, const FairParams& params)
    : host_(host),
      params_(params),
      domains_(host.machine()),
      // TICK_NSEC: whole nanoseconds, rounded to the nearest.
      tick_(std::chrono::nanoseconds((1'000'000'000 + params.hz / 2) / params.hz)),
      scale_(params.scale),
      vcpus_(host.vcpus().size()),
      queues_(host.machine().pcpus()),
      idle_(host.machine().pcpus()) {
  const std::uint32_t pcpus = host.machine().pcpus();
  if (scale_ == 0) scale_ = std::bit_width(std::min(pcpus, 8u));
  std::vector<std::size_t> candidates(pcpus);
  bool any_restricted = false;
  for (VcpuIndex v = 0; v < vcpus_.size(); ++v) {
    const SchedulableVcpu& description = host.vcpus()[v];
    vcpus_[v].affinity = PcpuMask(pcpus, description.affinity);
    vcpus_[v].ran_until = kTimeZero - kLongestDuration;
    any_restricted = any_restricted || vcpus_[v].affinity.count() < pcpus;
    for (std::uint32_t i = 0; i < pcpus; ++i) candidates[i] += vcpus_[v].affinity.contains(i) ? 1 : 0;
    if (description.vm >= vms_.size()) vms_.resize(description.vm + 1);
    vms_[description.vm].push_back(v);
  }
  vm_runnable_.resize(vms_.size());
  for (VcpuIndex v = 0; v < vcpus_.size(); ++v) vcpus_[v].weight = effective_weight(v);

  for (std::uint32_t i = 0; i < pcpus; ++i) {
    const PcpuId pcpu{i};
    Queue& q = queues_[i];
    idle_.insert(i);
    q.average_idle = 2 * params_.migration_cost;
    // Where every vCPU could have a pCPU of its own, idle pCPUs do all the balancing.
    q.contended = candidates[i] >= 2 && (any_restricted || vcpus_.size() > pcpus);
    const auto& domains = domains_.of(pcpu);
    for (std::size_t level = 0; level < domains.size(); ++level) {
      q.levels[level].interval_ms = domains[level]->span.size();
      const Duration interval = balance_interval(pcpu, level, true);
      const std::int64_t rank = i - domains[level]->span.begin + 1;
      q.levels[level].last = kTimeZero - interval + interval * rank / domains[level]->span.size();
    }
  }
}

// ---- Ticks

SimTime FairScheduler::tick_at_or_after(PcpuId pcpu, SimTime time) const {
  // kernel/time/tick-sched.c: half a period, divided by the number of CPUs.
  const std::int64_t skew =
      params_.tick_skew ? (tick_ / 2 / std::ssize(queues_) * std::int64_t{index_of(pcpu)}).count() : 0;
  const std::int64_t since = time.time_since_epoch().count() - skew;
  const std::int64_t ticks = since <= 0 ? 0 : (since + tick_.count() - 1) / tick_.count();
  return kTimeZero + Duration{skew} + ticks * tick_;
}

SimTime FairScheduler::next_check(PcpuId pcpu) {
  const Queue& q = queue(pcpu);
  if (q.current == kNoVcpu) return kNever;
  if (q.decide_anew) return now();
  SimTime due = waiting(pcpu).empty() ? kNever : time_up(pcpu);
  if (params_.balance) due = std::min(due, balance_due(pcpu));
  if (due == kNever) return kNever;
  const SimTime at = tick_at_or_after(pcpu, std::max(due, now()));
  return at == q.ticked ? at + tick_ : at;
}

bool FairScheduler::check(PcpuId pcpu) {
  Queue& q = queue(pcpu);
  if (q.ticked != now() && tick_at_or_after(pcpu, now()) == now()) {
    q.ticked = now();
    if (tick(pcpu)) q.decide_anew = true;
    if (params_.balance) balance_levels(pcpu, false);
  }
  return q.decide_anew;
}

// ---- Accounts

void FairScheduler::charge(VcpuIndex vcpu, PcpuId pcpu, Duration ran) {
  Queue& q = queue(pcpu);
  const Duration rest = ran - q.charged_ahead;
  q.charged_ahead = Duration::zero();
  q.charged_until = now();
  vcpus_[vcpu].ran_until = now();
  if (rest > Duration::zero()) advance(vcpu, pcpu, rest);
  observe(vcpu);
  if (params_.group_by_vm && effective_weight(vcpu) != vcpus_[vcpu].weight) reweigh(vcpu, effective_weight(vcpu));
}

// Charges the vCPU that runs on another pCPU than the one that the host has charged for this call.
void FairScheduler::settle(PcpuId pcpu) {
  Queue& q = queue(pcpu);
  const Duration ran = now() - q.charged_until;
  if (q.current == kNoVcpu || ran <= Duration::zero()) return;
  q.charged_ahead += ran;
  q.charged_until = now();
  vcpus_[q.current].ran_until = now();
  advance(q.current, pcpu, ran);
  observe(q.current);
}

void FairScheduler::count_in(VcpuIndex vcpu, PcpuId pcpu, State state) {
  Queue& q = queue(pcpu);
  if (++q.runnable == 2) count_overloaded(1);
  q.load += vcpus_[vcpu].weight;
  vcpus_[vcpu].state = state;
  update_idle_mask(pcpu);
  if (q.runnable == 2) watch_idle();
}

void FairScheduler::count_out(VcpuIndex vcpu, PcpuId pcpu) {
  Queue& q = queue(pcpu);
  if (--q.runnable == 1) count_overloaded(-1);
  q.load -= vcpus_[vcpu].weight;
  vcpus_[vcpu].state = State::kAway;
  update_idle_mask(pcpu);
}

void FairScheduler::count_overloaded(int change) {
  contended_ = contended_so_far();
  contended_since_ = now();
  overloaded_ += change;
}

// A clock that stands still while no vCPU waits: who runs then takes nothing from anybody.
Duration FairScheduler::contended_so_far() const {
  return overloaded_ > 0 ? contended_ + (now() - contended_since_) : contended_;
}

void FairScheduler::update_idle_mask(PcpuId pcpu) {
  if (queue(pcpu).runnable == 0) {
    idle_.insert(index_of(pcpu));
  } else {
    idle_.erase(index_of(pcpu));
  }
}

std::int64_t FairScheduler::effective_weight(VcpuIndex vcpu) const {
  const SchedulableVcpu& description = host_.vcpus()[vcpu];
  const std::int64_t sharers = params_.group_by_vm ? std::max<std::int64_t>(1, vm_runnable_[description.vm]) : 1;
  return std::max<std::int64_t>(1, description.weight * (kUnit / 1024) / sharers);
}

void FairScheduler::set_weight(VcpuIndex vcpu, std::int64_t weight) {
  PerVcpu& v = vcpus_[vcpu];
  if (v.state != State::kAway) queue(v.pcpu).load += weight - v.weight;
  v.weight = weight;
}

// What has passed since the last call counts as running or waiting, as its state says.
void FairScheduler::observe(VcpuIndex vcpu) {
  PerVcpu& v = vcpus_[vcpu];
  const Duration passed = contended_so_far() - v.observed_until;
  v.observed_until += passed;
  v.ready_lately += passed;
  if (v.state == State::kRunning) v.ran_lately += passed;
  if (v.ready_lately > kMemory) {
    v.ready_lately /= 2;
    v.ran_lately /= 2;
  }
}

// The part of its ready time in which it ran, by weight. A waiting vCPU is up to date as of when it ran last.
std::int64_t FairScheduler::service(VcpuIndex vcpu) const {
  const PerVcpu& v = vcpus_[vcpu];
  const Duration since = contended_so_far() - v.observed_until;
  const Duration ran = v.ran_lately + (v.state == State::kRunning ? since : Duration::zero());
  constexpr std::int64_t kAlways = 1 << 20;
  const std::int64_t part = ran.count() / ((v.ready_lately + since).count() / kAlways + 1);
  return part * kUnit / v.weight;
}

// Of all vCPUs of a queue together.
std::int64_t FairScheduler::total_service(PcpuId pcpu) const {
  std::int64_t sum = current(pcpu) != kNoVcpu ? service(current(pcpu)) : 0;
  for (const RunQueue::Entry& entry : waiting(pcpu)) {
    if (state(entry.vcpu) == State::kWaiting) sum += service(entry.vcpu);
  }
  return sum;
}

// One vCPU of a VM more or less is runnable. Those that run get their new weight when they are next charged, as their
// time so far was at the old one.
void FairScheduler::vm_changed(VcpuIndex vcpu, int change) {
  const std::uint32_t vm = host_.vcpus()[vcpu].vm;
  vm_runnable_[vm] += change;
  if (!params_.group_by_vm) return;
  for (const VcpuIndex v : vms_[vm]) {
    if (vcpus_[v].state == State::kRunning || vcpus_[v].weight == effective_weight(v)) continue;
    if (vcpus_[v].state == State::kWaiting) settle(vcpus_[v].pcpu);
    reweigh(v, effective_weight(v));
  }
}

// ---- What happens to vCPUs

void FairScheduler::enqueue(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) {
  PerVcpu& v = vcpus_[vcpu];
  v.why = why;
  if (v.state == State::kRunning) {
    queue(pcpu).current = kNoVcpu;
    v.state = State::kWaiting;
  } else {
    vm_changed(vcpu, 1);
    count_in(vcpu, pcpu, State::kWaiting);
    v.observed_until = contended_so_far();
  }
  join(vcpu, pcpu, why);
  v.pcpu = pcpu;
}

bool FairScheduler::preempts(VcpuIndex vcpu, PcpuId pcpu) {
  Queue& q = queue(pcpu);
  // The end of a throttling looks for idle pCPUs only.
  if (!q.decide_anew && vcpus_[vcpu].why != Enqueue::kReleased) q.decide_anew = outdoes_current(vcpu, pcpu);
  return q.decide_anew;
}

void FairScheduler::dequeue(VcpuIndex vcpu) {
  const PcpuId pcpu = vcpus_[vcpu].pcpu;
  count_out(vcpu, pcpu);
  leave(vcpu, pcpu);
  vm_changed(vcpu, -1);
}

void FairScheduler::blocked(VcpuIndex vcpu, PcpuId pcpu) {
  queue(pcpu).current = kNoVcpu;
  count_out(vcpu, pcpu);
  halted(vcpu, pcpu);
  vm_changed(vcpu, -1);
}

void FairScheduler::yield(VcpuIndex vcpu, PcpuId pcpu) {
  if (queue(pcpu).runnable >= 2) yielded(vcpu, pcpu);
}

bool FairScheduler::yield_to(VcpuIndex vcpu, VcpuIndex target) {
  if (vcpus_[target].state != State::kWaiting) return false;
  const PcpuId mine = vcpus_[vcpu].pcpu;
  const PcpuId its = vcpus_[target].pcpu;
  prefer(target, its);
  yield(vcpu, mine);
  if (its != mine) host_.reschedule(its);
  return true;
}

VcpuIndex FairScheduler::pick(PcpuId pcpu) {
  Queue& q = queue(pcpu);
  if (q.current != kNoVcpu) blocked(q.current, pcpu);  // picked just now, and throttled before it ran
  q.decide_anew = false;
  if (q.kicked) {
    q.kicked = false;
    balance_all_idle(pcpu);
  }
  VcpuIndex next = take_next(pcpu);
  if (next == kNoVcpu && !q.idle) {
    if (params_.balance && overloaded_ > 0 && q.average_idle >= params_.migration_cost) {
      bool found = false;
      for (std::size_t level = 0; !found && level < domains_.of(pcpu).size(); ++level) {
        found = balance(pcpu, level, Idle::kNewly);
      }
      if (found) next = take_next(pcpu);
    }
    if (next == kNoVcpu) {
      q.idle = true;
      q.idle_since = now();
      watch_idle();
    }
  }
  if (next == kNoVcpu) return kNoVcpu;
  if (q.idle) {
    q.idle = false;
    // update_avg(): an eighth of the difference, at most twice the migration cost.
    if (q.idle_since != SimTime::min()) q.average_idle += (now() - q.idle_since - q.average_idle) / 8;
    q.average_idle = std::min(q.average_idle, 2 * params_.migration_cost);
  }
  q.current = next;
  q.charged_until = now();
  q.charged_ahead = Duration::zero();
  observe(next);
  vcpus_[next].state = State::kRunning;
  return next;
}

// ---- Placement

PcpuId FairScheduler::place(VcpuIndex vcpu, PcpuId previous, PcpuId waker) {
  if (const PcpuId pcpu = lingers_on(vcpu); pcpu != kNoPcpu) return pcpu;
  const PcpuMask& allowed = vcpus_[vcpu].affinity;
  if (previous == kNoPcpu || !allowed.contains(previous)) return idlest(vcpu);
  const bool may_follow = params_.wake_affine && waker != kNoPcpu && waker != previous && allowed.contains(waker);
  return idle_near(vcpu, previous, may_follow && prefers_waker(vcpu, previous, waker) ? waker : previous);
}

// For a new vCPU: least load, then a core and a socket with least of it, then the lowest index.
PcpuId FairScheduler::idlest(VcpuIndex vcpu) const {
  struct Rank {
    std::int64_t load;
    std::int64_t on_core;
    std::int64_t on_socket;  // vCPUs
    std::int64_t socket_size;
    bool operator<(const Rank& other) const {
      if (load != other.load) return load < other.load;
      if (on_core != other.on_core) return on_core < other.on_core;
      return on_socket * other.socket_size < other.on_socket * socket_size;
    }
  };
  const auto runnable_in = [&](PcpuRange range) {
    std::int64_t sum = 0;
    for (std::uint32_t i = range.begin; i < range.end; ++i) sum += static_cast<std::int64_t>(queues_[i].runnable);
    return sum;
  };
  PcpuId best = kNoPcpu;
  Rank best_rank{};
  std::uint32_t socket_begin = ~std::uint32_t{0};
  std::int64_t on_socket = 0;
  for (std::uint32_t i = 0; i < queues_.size(); ++i) {
    const PcpuId pcpu{i};
    if (!vcpus_[vcpu].affinity.contains(i)) continue;
    const PcpuRange socket = domains_.socket(pcpu);
    if (socket.begin != socket_begin) {
      socket_begin = socket.begin;
      on_socket = runnable_in(socket);
    }
    const Rank rank{queues_[i].load, runnable_in(domains_.core(pcpu)), on_socket, socket.size()};
    if (best == kNoPcpu || rank < best_rank) {
      best = pcpu;
      best_rank = rank;
    }
  }
  return best;
}

// wake_affine(): does the wakee go to the waker's side?
bool FairScheduler::prefers_waker(VcpuIndex vcpu, PcpuId previous, PcpuId waker) const {
  if (idle_.contains(waker) && domains_.socket(waker).contains(previous)) return !idle_.contains(previous);
  const std::int64_t there = (queue(waker).load + vcpus_[vcpu].weight) * 100;
  return there < queue(previous).load * (100 + (params_.imbalance_pct - 100) / 2);
}

// select_idle_sibling(): `target` if idle, else the previous pCPU if that is idle and shares a cache with it, else an
// idle core of target's socket, else any idle pCPU there, else target.
PcpuId FairScheduler::idle_near(VcpuIndex vcpu, PcpuId previous, PcpuId target) const {
  if (idle_.contains(target)) return target;
  const PcpuRange socket = domains_.socket(target);
  if (previous != target && socket.contains(previous) && idle_.contains(previous)) return previous;
  const PcpuMask& allowed = vcpus_[vcpu].affinity;
  PcpuId any = kNoPcpu;
  // From target upwards, and round to it again.
  const std::array<PcpuRange, 2> halves{PcpuRange{index_of(target), socket.end},
                                        PcpuRange{socket.begin, index_of(target)}};
  for (const PcpuRange& half : halves) {
    for (std::uint32_t i = half.begin; (i = idle_.first_common(allowed, {i, half.end})) < half.end; ++i) {
      const PcpuRange core = domains_.core(PcpuId{i});
      bool whole_core = true;
      for (std::uint32_t sibling = core.begin; sibling < core.end; ++sibling) {
        whole_core = whole_core && idle_.contains(sibling);
      }
      if (whole_core) return PcpuId{i};
      if (any == kNoPcpu) any = PcpuId{i};
    }
  }
  return any != kNoPcpu ? any : target;
}

// ---- Load balancing

// get_sd_balance_interval(), in whole ticks.
Duration FairScheduler::balance_interval(PcpuId pcpu, std::size_t level, bool busy) const {
  std::int64_t ms = queue(pcpu).levels[level].interval_ms;
  if (busy) ms *= params_.busy_factor;
  std::int64_t ticks = (ms * params_.hz + 999) / 1000;
  if (busy) --ticks;  // so that the levels' times are not multiples of each other
  const std::int64_t longest = params_.hz * static_cast<std::int64_t>(queues_.size()) / 10;
  return tick_ * std::clamp<std::int64_t>(ticks, 1, std::max<std::int64_t>(longest, 1));
}

SimTime FairScheduler::idle_balance_due(PcpuId pcpu) const {
  SimTime due = kNever;
  for (std::size_t level = 0; level < domains_.of(pcpu).size(); ++level) {
    due = std::min(due, queue(pcpu).levels[level].last + balance_interval(pcpu, level, false));
  }
  return due;
}

bool FairScheduler::has_work_for(PcpuId overloaded, PcpuId idle) const {
  for (const RunQueue::Entry& entry : waiting(overloaded)) {
    if (vcpus_[entry.vcpu].state == State::kWaiting && vcpus_[entry.vcpu].affinity.contains(idle)) return true;
  }
  return false;
}

// The first time from which a tick of the busy `pcpu` may move a vCPU to it.
SimTime FairScheduler::balance_due(PcpuId pcpu) const {
  const Queue& q = queue(pcpu);
  SimTime due = kNever;
  if (!q.contended) return due;
  const auto& domains = domains_.of(pcpu);
  for (std::size_t level = 0; level < domains.size(); ++level) {
    if (leads(pcpu, *domains[level])) due = std::min(due, q.levels[level].last + balance_interval(pcpu, level, true));
  }
  return due;
}

// While some pCPU is idle and some overloaded, looks at the ticks of the first of these whether to kick.
void FairScheduler::watch_idle() {
  if (!params_.balance || watching_ || overloaded_ == 0 || idle_.empty()) return;
  watching_ = true;
  host_.set_timer(kick_tick(now() + Duration{1}));
}

SimTime FairScheduler::kick_tick(SimTime from) const {
  const auto first = std::ranges::find_if(queues_, [](const Queue& q) { return q.runnable >= 2; });
  return tick_at_or_after(PcpuId(static_cast<std::uint32_t>(first - queues_.begin())), from);
}

// nohz_balancer_kick(): at the tick of an overloaded pCPU, the first idle one is asked to balance for all that are.
void FairScheduler::timer_expired() {
  watching_ = false;
  if (overloaded_ == 0) return;
  const PcpuRange all{0, domains_.pcpus()};
  const std::uint32_t first = idle_.first_common(idle_, all);
  SimTime again = kNever;
  for (std::uint32_t i = first; (i = idle_.first_common(idle_, {i, all.end})) < all.end; ++i) {
    const PcpuId idle{i};
    const SimTime due = idle_balance_due(idle);
    if (due >= again) continue;
    for (std::uint32_t other = 0; other < all.end; ++other) {
      if (queues_[other].runnable < 2 || !has_work_for(PcpuId{other}, idle)) continue;
      again = due;
      break;
    }
  }
  if (again == kNever) return;
  if (again <= now()) {
    if (!queues_[first].kicked) host_.reschedule(PcpuId{first});
    queues_[first].kicked = true;
  }
  watching_ = true;
  host_.set_timer(kick_tick(std::max(again, now() + Duration{1})));
}

void FairScheduler::balance_all_idle(PcpuId pcpu) {
  for (std::uint32_t i = 0; i < queues_.size(); ++i) {
    if (!idle_.contains(i) || idle_balance_due(PcpuId{i}) > now()) continue;
    if (balance_levels(PcpuId{i}, true) && PcpuId{i} != pcpu) host_.reschedule(PcpuId{i});
  }
}

// rebalance_domains(): all levels that are due.
bool FairScheduler::balance_levels(PcpuId pcpu, bool idle) {
  const auto& domains = domains_.of(pcpu);
  bool moved = false;
  for (std::size_t level = 0; level < domains.size(); ++level) {
    BalanceState& state = queue(pcpu).levels[level];
    if (now() < state.last + balance_interval(pcpu, level, !idle)) continue;
    moved = balance(pcpu, level, idle ? Idle::kIdle : Idle::kNot) || moved;
    idle = idle && !moved;
    state.last = state.repeated > 0 ? now() - balance_interval(pcpu, level, true) + tick_ : now();
  }
  return moved;
}

// should_we_balance(): for a group, its first idle pCPU does; if none is idle, its first.
bool FairScheduler::leads(PcpuId pcpu, const Domains::Domain& domain) const {
  const auto group = std::ranges::find_if(domain.groups, [=](PcpuRange g) { return g.contains(pcpu); });
  const std::uint32_t first_idle = idle_.first_common(idle_, *group);
  return index_of(pcpu) == (first_idle < group->end ? first_idle : group->begin);
}

// load_balance(): pulls to `to` what it lacks. True if anything was moved.
bool FairScheduler::balance(PcpuId to, std::size_t level, Idle why) {
  const Domains::Domain& domain = *domains_.of(to)[level];
  BalanceState& state = queue(to).levels[level];
  if (why != Idle::kNewly && !leads(to, domain)) return false;

  groups_.clear();
  Group total;
  std::size_t local = 0;
  for (const PcpuRange& span : domain.groups) {
    Group group{.span = span};
    for (std::uint32_t i = span.begin; i < span.end; ++i) {
      group.runnable += static_cast<std::int64_t>(queues_[i].runnable);
      group.load += queues_[i].load;
      group.idle += queues_[i].runnable == 0 ? 1 : 0;
    }
    total.runnable += group.runnable;
    total.load += group.load;
    if (span.contains(to)) local = groups_.size();
    groups_.push_back(group);
  }
  total.span = domain.span;

  const auto busier = [](const Group& a, const Group& b) {
    if (a.kind() != b.kind()) return a.kind() > b.kind();
    if (a.kind() != 0) return a.load * b.size() > b.load * a.size();
    return a.idle != b.idle ? a.idle < b.idle : a.runnable > b.runnable;
  };
  bool failed = false;
  for (;;) {
    Group* busiest = nullptr;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (i == local || groups_[i].excluded || groups_[i].runnable == 0) continue;
      if (busiest == nullptr || busier(groups_[i], *busiest)) busiest = &groups_[i];
    }
    if (busiest == nullptr) break;
    const Imbalance imbalance = measure(groups_[local], *busiest, total, domain, why);
    if (imbalance.amount <= 0) break;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      Group& g = groups_[i];
      g.chosen = i != local && !g.excluded && g.runnable > 0 && !busier(*busiest, g);
    }
    const Pulled pulled = pull(to, imbalance, domain, state, why);
    if (pulled == Pulled::kOnlyHot && why == Idle::kNot) {
      ++state.repeated;
      return false;
    }
    if (pulled == Pulled::kSome) {
      state.repeated = state.failed = 0;
      state.interval_ms = domain.span.size();
      return true;
    }
    failed = pulled == Pulled::kNone || pulled == Pulled::kOnlyHot;
    if (pulled != Pulled::kOnlyPinned) break;
    for (Group& g : groups_) g.excluded = g.excluded || g.chosen;
  }
  state.repeated = 0;
  if (!failed && why != Idle::kNot && level + 1 == domains_.of(to).size()) {
    if (pull_stranded(to, state.failed, failed)) {
      state.failed = 0;
      return true;
    }
  }
  if (why == Idle::kNewly) return false;
  state.failed = failed ? state.failed + 1 : 0;
  const std::int64_t shortest = domain.span.size();
  state.interval_ms = failed || why == Idle::kNot ? shortest : std::min(2 * state.interval_ms, 2 * shortest);
  return false;
}

// find_busiest_group() and calculate_imbalance() of 5.10: is `busiest` so much busier that something should move?
FairScheduler::Imbalance FairScheduler::measure(const Group& local, const Group& busiest, const Group& total,
                                                const Domains::Domain& domain, Idle why) const {
  constexpr Imbalance kBalanced{};
  constexpr int kSpare = 0;
  constexpr int kOverloaded = 2;
  // a.load / a.size() against b.load / b.size()
  const auto compare = [](const Group& a, const Group& b) { return a.load * b.size() - b.load * a.size(); };
  if (local.kind() > busiest.kind()) return kBalanced;
  if (local.kind() == kOverloaded) {
    const std::int64_t percent =
        domain.level == Domains::Level::kCore ? params_.smt_imbalance_pct : params_.imbalance_pct;
    if (compare(local, busiest) >= 0 || compare(local, total) >= 0) return kBalanced;
    if (100 * busiest.load * local.size() <= percent * local.load * busiest.size()) return kBalanced;
  }
  // Siblings below: spread vCPUs evenly over the groups, for they share something within.
  const bool spread = domain.above_another && local.kind() == kSpare && busiest.runnable > local.runnable + 1;
  if (!spread && busiest.kind() != kOverloaded) {
    if (why == Idle::kNot) return kBalanced;
    if (busiest.size() > 1 && local.idle <= busiest.idle + 1) return kBalanced;
    if (busiest.runnable == 1) return kBalanced;
  }
  if (local.kind() == kSpare) {
    if (busiest.kind() == kOverloaded && domain.level == Domains::Level::kMachine) {
      return {false, std::max<std::int64_t>(local.size() - local.runnable, why != Idle::kNot ? 1 : 0)};
    }
    if (busiest.size() == 1 || domain.above_another) return {false, (busiest.runnable - local.runnable) / 2};
    return {false, (local.idle - busiest.idle) / 2};
  }
  if (compare(local, busiest) >= 0) return kBalanced;
  // What the one has above the mean, or the other below it, whichever is less.
  return {true, std::min(compare(busiest, total), -compare(local, total)) / total.size()};
}

// detach_tasks(): moves waiting vCPUs from the busiest queue of the chosen groups. Among equal queues and vCPUs, the
// move is for the good of those who stay behind and have run least; a busy pCPU takes nothing from queues whose vCPUs
// have run more than its own.
FairScheduler::Pulled FairScheduler::pull(PcpuId to, Imbalance imbalance, const Domains::Domain& domain,
                                          const BalanceState& attempts, Idle why) {
  const bool heed_heat =
      domain.level != Domains::Level::kCore && std::max(attempts.failed, attempts.repeated) <= params_.cache_nice_tries;
  // Failures make it content with vCPUs whose load exceeds the imbalance by more.
  const auto excess = static_cast<unsigned>(std::clamp<std::int64_t>(attempts.failed, 1, 62));
  std::int64_t most_service = std::numeric_limits<std::int64_t>::max();
  if (why == Idle::kNot) most_service = total_service(to) / static_cast<std::int64_t>(runnable(to));
  Pulled result = Pulled::kOnlyPinned;
  std::int64_t left = imbalance.amount;
  PcpuId source = kNoPcpu;
  while (left > 0) {
    VcpuIndex victim = kNoVcpu;
    std::int64_t victim_rank = 0;
    std::int64_t least_service = most_service;  // of those who stay, on average
    const auto consider = [&](PcpuId from) {
      const Queue& q = queue(from);
      const std::int64_t rank = imbalance.by_load ? q.load : static_cast<std::int64_t>(q.runnable);
      if (victim != kNoVcpu && rank < victim_rank) return;
      const std::int64_t total = total_service(from);
      for (const RunQueue::Entry& entry : waiting(from)) {
        const PerVcpu& v = vcpus_[entry.vcpu];
        if (v.state != State::kWaiting || !v.affinity.contains(to)) continue;
        if (heed_heat && now() - v.ran_until < params_.migration_cost) {
          result = std::max(result, Pulled::kOnlyHot);
          continue;
        }
        if (imbalance.by_load && v.weight >> excess > left) {
          result = std::max(result, Pulled::kNone);
          continue;
        }
        const std::int64_t rest = (total - service(entry.vcpu)) / static_cast<std::int64_t>(q.runnable - 1);
        result = std::max(result, Pulled::kFair);
        if (rest >= (rank > victim_rank ? most_service : least_service)) continue;
        victim = entry.vcpu;
        victim_rank = rank;
        least_service = rest;
      }
    };
    for (const Group& group : groups_) {
      if (!group.chosen) continue;
      for (std::uint32_t i = group.span.begin; i < group.span.end; ++i) {
        if (queues_[i].runnable >= 2 && (source == kNoPcpu || source == PcpuId{i})) consider(PcpuId{i});
      }
    }
    if (victim == kNoVcpu) break;
    left -= imbalance.by_load ? vcpus_[victim].weight : 1;
    source = vcpus_[victim].pcpu;
    migrate(victim, source, to);
    if (why == Idle::kNewly) break;
  }
  return source != kNoPcpu ? Pulled::kSome : result;
}

// For an idle pCPU that finds the groups in balance: a vCPU that waits although a pCPU is idle, because it may use none
// of the idle ones of its own socket. The kernel finds it by marking the group as imbalanced by affinity.
bool FairScheduler::pull_stranded(PcpuId to, std::int64_t failed, bool& only_hot) {
  for (std::uint32_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].runnable < 2) continue;
    const PcpuRange socket = domains_.socket(PcpuId{i});
    for (const RunQueue::Entry& entry : waiting(PcpuId{i})) {
      const PerVcpu& v = vcpus_[entry.vcpu];
      if (v.state != State::kWaiting || !v.affinity.contains(to)) continue;
      if (!socket.contains(to) && idle_.first_common(v.affinity, socket) < socket.end) continue;
      if (failed <= params_.cache_nice_tries && now() - v.ran_until < params_.migration_cost) {
        only_hot = true;
        continue;
      }
      migrate(entry.vcpu, PcpuId{i}, to);
      return true;
    }
  }
  return false;
}

void FairScheduler::migrate(VcpuIndex vcpu, PcpuId from, PcpuId to) {
  settle(from);
  settle(to);
  count_out(vcpu, from);
  detach(vcpu, from);
  count_in(vcpu, to, State::kWaiting);
  attach(vcpu, to);
  vcpus_[vcpu].pcpu = to;
  Queue& q = queue(to);
  if (q.current != kNoVcpu && outdoes_current(vcpu, to)) q.decide_anew = true;
}

}  // namespace vcpusim
