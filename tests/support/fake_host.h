// A host without hypervisor, guests or costs, to test schedulers with: it drives any HostScheduler through the calls of
// its contract, event by event, and checks what every scheduler owes.
//
//   FakeHost host("cfs", pcpus(2), {{.weight = 1024}, {.weight = 2048}});
//   host.start_all();         // all ready at time zero, always busy
//   host.run_until(at(10s));
//   host.ran(0);              // exact; also stints(), switches(), longest_idle_beside_ready() ...
//
// vCPUs are busy until told otherwise: block() and wake() from at(time, action), or burst(vcpu, run, sleep) for one
// that halts after it has run for so long and wakes after it has slept. Of what happens at the same instant, actions
// come first, in the order of at(); then bursts that end, by vCPU; then checks, by pCPU. A decision asked for is taken
// at once after the call that asked for it.
//
// Checked all along (failures are exceptions): a pick is ready and allowed on its pCPU, check times are not in the past
// and make progress, placement is within the affinity, the queue sizes that the scheduler reports are right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/catalogue.h"
#include "models/host/scheduler.h"
#include "sim/check.h"
#include "sim/engine.h"

namespace vcpusim::testing_support {

// One socket of `count` cores without SMT.
inline MachineConfig pcpus(std::int64_t count) {
  MachineConfig config;
  config.cores_per_socket = count;
  return config;
}

constexpr SimTime at(Duration since_zero) { return kTimeZero + since_zero; }

inline PcpuSet only(std::initializer_list<std::uint32_t> pcpus) {
  PcpuSet set;
  for (const std::uint32_t i : pcpus) set.insert(PcpuId{i});
  return set;
}

// What a test says of a vCPU; an empty affinity is all pCPUs.
struct FakeVcpu {
  std::int64_t weight = 1024;
  std::uint32_t vm = 0;
  PcpuSet affinity = {};
  double cap = 0;
};

inline std::vector<FakeVcpu> busy(std::size_t count) { return std::vector<FakeVcpu>(count); }

class FakeHost final : public HostView {
 public:
  struct Stint {
    VcpuIndex vcpu;
    PcpuId pcpu;
    SimTime begin;
    SimTime end;
    Duration length() const { return end - begin; }
  };

  FakeHost(const Kind& scheduler, const MachineConfig& config, const std::vector<FakeVcpu>& vcpus)
      : machine_(config, config.logical_cpus(), engine_),
        random_(1, "host", "scheduler"),
        pcpus_(machine_.pcpus()),
        states_(vcpus.size()) {
    std::map<std::uint32_t, std::uint32_t> of_vm;
    for (const FakeVcpu& v : vcpus) {
      descriptions_.push_back(
          {v.vm, of_vm[v.vm]++, v.weight, v.affinity.empty() ? PcpuSet::all(machine_.pcpus()) : v.affinity, v.cap});
    }
    const SchedulerKind* kind = find_scheduler_kind(scheduler.name);
    SIM_CHECK(kind != nullptr, "no scheduler " + scheduler.name);
    scheduler_ = kind->make(scheduler, *this);
  }
  FakeHost(std::string scheduler, const MachineConfig& config, const std::vector<FakeVcpu>& vcpus)
      : FakeHost(Kind{std::move(scheduler), {}}, config, vcpus) {}

  // HostView
  SimTime now() const override { return now_; }
  const Machine& machine() const override { return machine_; }
  const std::vector<SchedulableVcpu>& vcpus() const override { return descriptions_; }
  VcpuIndex running_on(PcpuId pcpu) const override { return pcpus_[index_of(pcpu)].running; }
  bool is_ready(VcpuIndex vcpu) const override { return states_[vcpu].state == State::kReady; }
  bool is_running(VcpuIndex vcpu) const override { return states_[vcpu].state == State::kRunning; }
  void reschedule(PcpuId pcpu) override {
    ++reschedules_;
    pcpus_[index_of(pcpu)].decide = true;
  }
  void set_timer(SimTime when) override {
    SIM_CHECK(when >= now_, "a timer in the past");
    timer_at_ = when;
  }
  void set_costopped(VcpuIndex vcpu, bool costopped) override { states_[vcpu].costopped = costopped; }
  RandomStream& random() override { return random_; }
  bool costopped(VcpuIndex vcpu) const { return states_[vcpu].costopped; }

  HostScheduler& scheduler() { return *scheduler_; }

  // What happens to vCPUs. Calls from outside of run_until happen at now().
  void start(VcpuIndex vcpu) {
    act([=, this] { make_ready(vcpu, kNoPcpu, Enqueue::kNew); });
  }
  void start_all() {
    act([this] {
      for (VcpuIndex v = 0; v < states_.size(); ++v) make_ready(v, kNoPcpu, Enqueue::kNew);
    });
  }
  void wake(VcpuIndex vcpu, PcpuId waker = kNoPcpu) {
    act([=, this] { make_ready(vcpu, waker, Enqueue::kWoken); });
  }
  // Halts `vcpu`, which runs, or is throttled if it waits.
  void block(VcpuIndex vcpu) {
    act([=, this] { leave(vcpu, State::kHalted); });
  }
  void throttle(VcpuIndex vcpu) {
    act([=, this] { leave(vcpu, State::kThrottled); });
  }
  void release(VcpuIndex vcpu) {
    act([=, this] { make_ready(vcpu, kNoPcpu, Enqueue::kReleased); });
  }
  void yield(VcpuIndex vcpu) {
    act([=, this] {
      Pcpu& pcpu = pcpu_of(vcpu);
      charge(pcpu);
      scheduler_->yield(vcpu, pcpu_id(pcpu));
      decide(pcpu, Enqueue::kYielded);
    });
  }
  bool yield_to(VcpuIndex vcpu, VcpuIndex target) {
    SIM_CHECK(is_ready(target), "yield_to a vCPU that does not wait");
    bool honoured = false;
    act([&, this] {
      Pcpu& pcpu = pcpu_of(vcpu);
      charge(pcpu);
      charge(pcpus_[index_of(scheduler_->queue_of(target))]);
      honoured = scheduler_->yield_to(vcpu, target);
      if (honoured) decide(pcpu, Enqueue::kYielded);
    });
    return honoured;
  }

  void at(SimTime when, std::function<void()> action) {
    SIM_CHECK(when >= now_, "an action in the past");
    actions_.emplace(when, std::move(action));
  }
  // From now on, `vcpu` halts whenever it has run for `run`, and wakes after `sleep`.
  void burst(VcpuIndex vcpu, Duration run, Duration sleep) {
    states_[vcpu].burst_run = states_[vcpu].burst_left = run;
    states_[vcpu].burst_sleep = sleep;
  }

  void run_until(SimTime limit) {
    for (SimTime next = next_event(); next <= limit; next = next_event()) {
      advance_to(next);
      if (!actions_.empty() && actions_.begin()->first == now_) {
        const auto action = actions_.extract(actions_.begin());
        action.mapped()();
      } else if (const VcpuIndex done = burst_done(); done != kNoVcpu) {
        block(done);
        actions_.emplace(now_ + states_[done].burst_sleep, [=, this] { wake(done); });
      } else if (timer_at_ == now_) {
        timer_at_ = kNever;
        scheduler_->timer_expired();
      } else {
        check_first_due();
      }
      drain();
    }
    advance_to(limit);
    for (Pcpu& pcpu : pcpus_) charge(pcpu);
  }
  void run_for(Duration span) { run_until(now_ + span); }

  // The accounts. All are up to date after run_until.
  Duration ran(VcpuIndex vcpu) const { return states_[vcpu].ran; }
  // Stretches of a vCPU on a pCPU in the order in which they ended.
  const std::vector<Stint>& stints() const { return stints_; }
  std::vector<Stint> stints_on(PcpuId pcpu) const {
    std::vector<Stint> result;
    std::ranges::copy_if(stints_, std::back_inserter(result), [=](const Stint& s) { return s.pcpu == pcpu; });
    return result;
  }
  PcpuId last_pcpu(VcpuIndex vcpu) const { return states_[vcpu].previous; }
  std::uint64_t checks() const { return checks_; }
  std::uint64_t switches() const { return switches_; }
  std::uint64_t migrations() const { return migrations_; }
  std::uint64_t reschedules() const { return reschedules_; }
  std::uint64_t migrations_of(VcpuIndex vcpu) const { return states_[vcpu].migrations; }
  // The longest time for which some pCPU was idle although some ready vCPU was allowed on it.
  Duration longest_idle_beside_ready() const {
    Duration longest{};
    for (const Pcpu& pcpu : pcpus_) {
      longest = std::max(longest, pcpu.longest_idle);
      if (pcpu.idle_beside_ready) longest = std::max(longest, now_ - pcpu.idle_since);
    }
    return longest;
  }
  // Ends the stints that are going on, as if all were preempted and picked again now, and forgets those before.
  void cut_stints() {
    for (Pcpu& pcpu : pcpus_) pcpu.since = now_;
    stints_.clear();
  }

 private:
  enum class State : std::uint8_t { kHalted, kReady, kRunning, kThrottled };
  struct PerVcpu {
    State state = State::kHalted;
    bool costopped = false;
    PcpuId previous = kNoPcpu;
    PcpuId last_ran = kNoPcpu;
    Duration ran{};
    std::uint64_t migrations = 0;
    Duration burst_run{};  // zero: always busy
    Duration burst_left{};
    Duration burst_sleep{};
  };
  struct Pcpu {
    VcpuIndex running = kNoVcpu;
    SimTime since = kTimeZero;
    SimTime charged_until = kTimeZero;
    SimTime check_at = kNever;
    bool decide = false;
    bool idle_beside_ready = false;
    SimTime idle_since = kTimeZero;
    Duration longest_idle{};
  };

  PcpuId pcpu_id(const Pcpu& pcpu) const { return PcpuId(static_cast<std::uint32_t>(&pcpu - pcpus_.data())); }
  Pcpu& pcpu_of(VcpuIndex vcpu) {
    for (Pcpu& pcpu : pcpus_) {
      if (pcpu.running == vcpu) return pcpu;
    }
    SIM_CHECK(false, "vCPU " + std::to_string(vcpu) + " does not run");
    return pcpus_.front();
  }

  template <class Action>
  void act(Action action) {
    action();
    if (!within_) drain();
  }

  SimTime next_event() const {
    SimTime next = actions_.empty() ? timer_at_ : std::min(timer_at_, actions_.begin()->first);
    for (const Pcpu& pcpu : pcpus_) {
      next = std::min(next, pcpu.check_at);
      if (pcpu.running == kNoVcpu || states_[pcpu.running].burst_run == Duration::zero()) continue;
      next = std::min(next, pcpu.charged_until + states_[pcpu.running].burst_left);
    }
    return next;
  }

  void advance_to(SimTime time) {
    SIM_CHECK(time >= now_, "a check time in the past");
    events_at_once_ = time == now_ ? events_at_once_ + 1 : 0;
    SIM_CHECK(events_at_once_ < 100'000, "time stands still");
    now_ = time;
  }

  VcpuIndex burst_done() {
    VcpuIndex done = kNoVcpu;
    for (const Pcpu& pcpu : pcpus_) {
      if (pcpu.running == kNoVcpu || states_[pcpu.running].burst_run == Duration::zero()) continue;
      if (pcpu.charged_until + states_[pcpu.running].burst_left == now_) done = std::min(done, pcpu.running);
    }
    return done;
  }

  void check_first_due() {
    for (Pcpu& pcpu : pcpus_) {
      if (pcpu.check_at != now_) continue;
      ++checks_;
      charge(pcpu);
      if (scheduler_->check(pcpu_id(pcpu))) {
        decide(pcpu, Enqueue::kPreempted);
      } else {
        rearm(pcpu);
      }
      return;
    }
  }

  // Takes the decisions that were asked for, and looks at who is idle.
  void drain() {
    within_ = true;
    for (bool again = true; again;) {
      again = false;
      for (Pcpu& pcpu : pcpus_) {
        if (!pcpu.decide) continue;
        again = true;
        charge(pcpu);
        decide(pcpu, Enqueue::kPreempted);
      }
    }
    within_ = false;
    verify();
  }

  void charge(Pcpu& pcpu) {
    const Duration ran = now_ - pcpu.charged_until;
    pcpu.charged_until = now_;
    if (pcpu.running == kNoVcpu || ran == Duration::zero()) return;
    PerVcpu& vcpu = states_[pcpu.running];
    vcpu.ran += ran;
    vcpu.burst_left -= ran;
    scheduler_->charge(pcpu.running, pcpu_id(pcpu), ran);
  }

  void rearm(Pcpu& pcpu) {
    pcpu.check_at = pcpu.running == kNoVcpu ? kNever : scheduler_->next_check(pcpu_id(pcpu));
    SIM_CHECK(pcpu.check_at >= now_, "a check time in the past");
  }

  void decide(Pcpu& pcpu, Enqueue why) {
    const VcpuIndex previous = pcpu.running;
    if (previous != kNoVcpu) {
      pcpu.running = kNoVcpu;
      states_[previous].state = State::kReady;
      scheduler_->enqueue(previous, pcpu_id(pcpu), why);
    }
    run_next(pcpu, previous);
  }

  void run_next(Pcpu& pcpu, VcpuIndex previous) {
    pcpu.decide = false;
    const PcpuId id = pcpu_id(pcpu);
    const VcpuIndex next = scheduler_->pick(id);
    if (next != previous && previous != kNoVcpu) stints_.push_back({previous, id, pcpu.since, now_});
    pcpu.running = next;
    pcpu.charged_until = now_;
    if (next != kNoVcpu) {
      PerVcpu& vcpu = states_[next];
      SIM_CHECK(vcpu.state == State::kReady, "vCPU " + std::to_string(next) + " was picked but is not ready");
      SIM_CHECK(descriptions_[next].affinity.contains(id), "picked outside of its affinity");
      vcpu.state = State::kRunning;
      vcpu.previous = id;
      if (next != previous) {
        pcpu.since = now_;
        ++switches_;
        if (vcpu.last_ran != kNoPcpu && vcpu.last_ran != id) {
          ++migrations_;
          ++vcpu.migrations;
        }
        vcpu.last_ran = id;
      }
    }
    rearm(pcpu);
  }

  void leave(VcpuIndex vcpu, State to) {
    if (states_[vcpu].state == State::kReady) {
      Pcpu& pcpu = pcpus_[index_of(scheduler_->queue_of(vcpu))];
      charge(pcpu);
      scheduler_->dequeue(vcpu);
      states_[vcpu].state = to;
      rearm(pcpu);
      return;
    }
    Pcpu& pcpu = pcpu_of(vcpu);
    charge(pcpu);
    scheduler_->blocked(vcpu, pcpu_id(pcpu));
    pcpu.running = kNoVcpu;
    states_[vcpu].state = to;
    run_next(pcpu, vcpu);
  }

  void make_ready(VcpuIndex vcpu, PcpuId waker, Enqueue why) {
    SIM_CHECK(states_[vcpu].state == State::kHalted || states_[vcpu].state == State::kThrottled,
              "vCPU " + std::to_string(vcpu) + " is ready already");
    states_[vcpu].state = State::kReady;
    if (states_[vcpu].burst_run > Duration::zero()) states_[vcpu].burst_left = states_[vcpu].burst_run;
    const PcpuId id = scheduler_->place(vcpu, states_[vcpu].previous, waker);
    SIM_CHECK(descriptions_[vcpu].affinity.contains(id), "placed outside of its affinity");
    Pcpu& pcpu = pcpus_[index_of(id)];
    charge(pcpu);
    scheduler_->enqueue(vcpu, id, why);
    SIM_CHECK(scheduler_->queue_of(vcpu) == id, "queue_of is not where the vCPU was enqueued");
    if (pcpu.running == kNoVcpu || scheduler_->preempts(vcpu, id)) pcpu.decide = true;
    rearm(pcpu);
  }

  void verify() {
    std::size_t ready = 0;
    std::size_t reported = 0;
    for (const PerVcpu& vcpu : states_) ready += vcpu.state == State::kReady || vcpu.state == State::kRunning ? 1 : 0;
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) reported += scheduler_->runnable_on(PcpuId{i});
    SIM_CHECK(ready == reported,
              "the scheduler reports " + std::to_string(reported) + " runnable vCPUs of " + std::to_string(ready));
    for (Pcpu& pcpu : pcpus_) {
      const bool wasted = pcpu.running == kNoVcpu && someone_waits_for(pcpu_id(pcpu));
      if (wasted && !pcpu.idle_beside_ready) pcpu.idle_since = now_;
      if (!wasted && pcpu.idle_beside_ready) pcpu.longest_idle = std::max(pcpu.longest_idle, now_ - pcpu.idle_since);
      pcpu.idle_beside_ready = wasted;
    }
  }
  bool someone_waits_for(PcpuId pcpu) const {
    for (VcpuIndex v = 0; v < states_.size(); ++v) {
      if (states_[v].state == State::kReady && !states_[v].costopped && descriptions_[v].affinity.contains(pcpu)) {
        return true;
      }
    }
    return false;
  }

  Engine engine_;  // only because a Machine wants one: time is kept here
  Machine machine_;
  RandomStream random_;
  std::vector<SchedulableVcpu> descriptions_;
  std::vector<Pcpu> pcpus_;
  std::vector<PerVcpu> states_;
  std::unique_ptr<HostScheduler> scheduler_;
  SimTime now_ = kTimeZero;
  SimTime timer_at_ = kNever;  // the scheduler's
  std::multimap<SimTime, std::function<void()>> actions_;
  std::vector<Stint> stints_;
  bool within_ = false;
  std::uint64_t events_at_once_ = 0;
  std::uint64_t checks_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t migrations_ = 0;
  std::uint64_t reschedules_ = 0;
};

// Whether every vCPU of `host`, all busy on one pCPU, gets its share by weight within `slack` over any window of
// `window` slices of time: the largest deviation that occurred, for the test to compare.
inline Duration worst_deviation_from_share(const FakeHost& host, const std::vector<FakeVcpu>& vcpus, Duration window) {
  std::int64_t total_weight = 0;
  for (const FakeVcpu& v : vcpus) total_weight += v.weight;
  const std::vector<FakeHost::Stint> stints = host.stints_on(PcpuId{0});
  Duration worst{};
  // A deviation is largest for a window that begins or ends where a stint does.
  const auto ran_between = [&](VcpuIndex vcpu, SimTime from, SimTime to) {
    Duration ran{};
    const auto first =
        std::ranges::lower_bound(stints, from, std::ranges::less{}, [](const FakeHost::Stint& s) { return s.end; });
    for (auto s = first; s != stints.end() && s->begin < to; ++s) {
      if (s->vcpu == vcpu) ran += std::min(s->end, to) - std::max(s->begin, from);
    }
    return ran;
  };
  const auto try_window = [&](SimTime from) {
    if (from < stints.front().begin || from + window > stints.back().end) return;
    for (VcpuIndex v = 0; v < vcpus.size(); ++v) {
      const Duration share = window * vcpus[v].weight / total_weight;
      const Duration off = ran_between(v, from, from + window) - share;
      worst = std::max(worst, off < Duration::zero() ? -off : off);
    }
  };
  for (const FakeHost::Stint& s : stints) {
    try_window(s.begin);
    try_window(s.end - window);
  }
  return worst;
}

}  // namespace vcpusim::testing_support
