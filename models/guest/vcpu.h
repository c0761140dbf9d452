// A virtual CPU: guest tasks on one side, a pCPU on the other.
//
// Everything a vCPU waits for while it runs is one timer. In guest mode it either runs (a known span of CPU time) or
// polls (spins on a cache line; a poll costs no event while its condition is false). Outside of guest mode it pays
// overhead (switches, exits) or handles an interrupt. What it was doing when it left the pCPU goes on when it is back.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "models/guest/guest_clock.h"
#include "models/machine/cache_line.h"
#include "models/machine/cores.h"
#include "models/machine/machine.h"
#include "sim/engine.h"
#include "sim/time.h"

namespace vcpusim {

class Host;
class Task;
class Vcpu;
class Vm;
struct IpiCall;

// Whoever waits until vCPUs have passed a quiescent state: one in which they cannot be inside of an RCU reader.
class GracePeriod {
 public:
  virtual void quiescent(Vcpu& vcpu) = 0;

 protected:
  ~GracePeriod() = default;
};

// Index of a vCPU within its VM, from 0.
enum class VcpuId : std::uint32_t {};
constexpr std::uint32_t index_of(VcpuId id) { return static_cast<std::uint32_t>(id); }

// Where a vCPU stands in the eyes of the host.
enum class HostState : std::uint8_t {
  kHalted,     // blocked until it is woken
  kReady,      // could run, waits for a pCPU
  kThrottled,  // held back by a quota
  kRunning,
};

// What the time of a vCPU is spent on. Each picosecond belongs to exactly one of these.
enum class Activity : std::uint8_t {
  kUser,      // guest user mode
  kSystem,    // guest kernel, outside of lock sections
  kHold,      // guest kernel, holding a lock
  kSpin,      // waiting for a lock, executing
  kOverhead,  // on a pCPU, but not in guest mode: switches, exits, cache refill
  kReady,     // waiting for a pCPU
  kCostop,    // waiting for a pCPU because its siblings lag behind
  kLimited,   // waiting for a quota
  kHalted,    // halted, waiting for a lock
  kIdle,      // halted, nothing to run
};
inline constexpr std::size_t kActivities = 10;

// What a task has yet to do before its coroutine continues.
struct GuestOp {
  enum class Kind : std::uint8_t { kContinue, kRun, kPoll, kHalt };
  Kind kind = Kind::kContinue;
  Duration left{};                 // kRun: CPU time still to spend
  CacheLine* line = nullptr;       // kPoll
  LineWatcher* watcher = nullptr;  // kPoll
  std::optional<Duration> budget;  // kPoll: time in guest mode after which it gives up
};

// Counts of VM exits by reason.
struct ExitCounts {
  std::uint64_t ple = 0;
  std::uint64_t halt = 0;
  std::uint64_t hypercall = 0;
  std::uint64_t ipi = 0;    // sent, or taken while running
  std::uint64_t timer = 0;  // clock interrupt while running
};

class Vcpu final : public Occupant, private GuestClock::Owner {
 public:
  Vcpu(Vm& vm, VcpuId id, std::uint32_t index, const Machine& machine);
  Vcpu(const Vcpu&) = delete;
  Vcpu& operator=(const Vcpu&) = delete;

  VcpuId id() const { return id_; }
  std::uint32_t index() const { return index_; }  // among all vCPUs of the host
  // Where it runs, or ran last; kNoPcpu before it has ever run.
  PcpuId pcpu() const { return pcpu_; }
  Task* current() const { return current_; }
  bool is_running() const { return state_ == HostState::kRunning; }
  bool is_idle() const { return current_ == nullptr && queue_.empty(); }
  bool in_guest_mode() const { return phase_ == Phase::kGuest; }
  // It has been called, and its task has interrupts disabled.
  bool keeps_calls_waiting() const { return !ipis_.empty() && !interrupts_enabled(); }

  // Exactly one of these is called, before anything runs.
  void run_natively_on(PcpuId pcpu, Cores& cores);  // no hypervisor: it has the pCPU for good
  void run_under(Host& host) { host_ = &host; }

  // ---- for its current task -------------------------------------------------------------------------------

  // Executes for `span` if nothing else happens in that time, at once and without an event; false if it might.
  bool run_ahead(Duration span) {
    if (attention_ || phase_ != Phase::kGuest) return false;
    return span == Duration::zero() || engine_.try_advance(engine_.now() + wall_time(span));
  }
  // Executes for `span`, then drives the current task.
  void run_for(Duration span);
  // Polls `line` until the watcher's condition holds or the budget is spent, then drives the current task.
  void poll(CacheLine& line, LineWatcher& watcher, std::optional<Duration> budget);
  void poll_succeeds(SimTime at);
  void poll_fails();
  bool poll_succeeded() const { return poll_sees_at_ <= engine_.now(); }
  // The current task waits for something that is not the vCPU's business, or has ended.
  void leave(Task& task);
  // The current task gives way to the other tasks of this vCPU.
  void yield_task();
  void guest_does(Activity activity) { account(activity); }
  // Halts until kick() or, if they are enabled, an interrupt; at once if it has been kicked since it halted last.
  void halt_current();
  // Leaves guest mode for a hypercall that costs `cost` beside the exit. The time passes when the task waits next.
  void hypercall(Duration cost);
  // Gives the pCPU to `target`, if the host's scheduler agrees; then, or when it is back, drives the current task.
  void yield_to(Vcpu& target);
  // The guest has become preemptible or has enabled its interrupts: what waited for that is done next.
  void look_up() {
    if (resched_ || clock_.pending() || !ipis_.empty()) attention_ = true;
  }

  // ---- for its guest --------------------------------------------------------------------------------------

  // `task` can run; it goes to the tail of this vCPU's queue. `from` is the vCPU on which that was found out, null if
  // it was a timer or a device: it pays for the IPI if this vCPU has to be woken.
  void enqueue(Task& task, Vcpu* from);
  // Takes a waiting task out of the queue, for another vCPU; null if there is none.
  Task* give_task();
  std::size_t waiting_tasks() const { return queue_.size(); }
  // Interrupts this vCPU for `call`; the sender pays, the exit only if `exits`.
  void send_ipi(IpiCall& call, Vcpu& sender, bool exits);
  // Makes a halt of this vCPU end, or the next one not begin. `from` is the pCPU of the kicker.
  void kick(PcpuId from);
  // Starts the clock.
  void start();
  // `waiting` is told, once, when this vCPU passes a quiescent state: it switches tasks, becomes idle, or its clock
  // ticks in user mode; in a guest without a clock, it enters user mode (as with full dynticks). False: it is in one.
  bool await_quiescence(GracePeriod& waiting);

  // What the host's handlers and the guest's spinners may know.
  bool is_preempted() const { return state_ != HostState::kRunning && state_ != HostState::kHalted; }
  bool is_halted() const { return state_ == HostState::kHalted; }
  // What other vCPUs of the guest read in its preempted flag (vcpu_is_preempted): set when it leaves a pCPU, cleared
  // when it is on one again. Without a steal clock there is no flag.
  bool reads_preempted() const;
  // The guest wants it to switch tasks (need_resched).
  bool needs_resched() const { return resched_; }
  // Spinners on `line` look at reads_preempted() or current() of this vCPU, too: the line is told of changes.
  void add_looker(CacheLine& line) { lookers_.push_back(&line); }
  void remove_looker(CacheLine& line) { lookers_.erase(std::ranges::find(lookers_, &line)); }
  bool in_kernel() const;
  bool spins() const;
  bool holds_lock() const;
  // Its task is in a critical section that it has marked by a hint hypercall.
  bool is_marked() const;
  bool has_pending_interrupt() const { return clock_.pending() || !ipis_.empty(); }
  // The host flushes its TLB, for `cost`, when it enters the guest next: once, however often it is told.
  void flush_on_entry(Duration cost) {
    if (!std::exchange(flush_pending_, true)) overhead_ += cost;
  }

  // ---- for the host ---------------------------------------------------------------------------------------

  void dispatched(PcpuId pcpu, Duration overhead);
  void descheduled(HostState state);   // it has been running
  void wait_changed(HostState state);  // it has not been running
  void set_costopped(bool costopped);
  // The host's handler takes so much longer.
  void pay(Duration overhead) { overhead_ += overhead; }
  // Another vCPU waits for its pCPU: a halting vCPU polls no longer.
  void other_waits();

  // ---- accounting -----------------------------------------------------------------------------------------

  // Time spent on `activity` since reset_statistics, up to the present.
  Duration time(Activity activity) const;
  // Ready but not running, as a steal clock counts it: time in which the host kept it from a pCPU.
  Duration steal() const { return time(Activity::kReady) + time(Activity::kCostop) + time(Activity::kLimited); }
  const ExitCounts& exits() const { return exits_; }
  void reset_statistics();

 private:
  enum class Phase : std::uint8_t {
    kOff,        // not on a pCPU
    kOverhead,   // burning overhead_
    kInterrupt,  // burning burn_ in the guest's kernel: a handler or a task switch
    kGuest,      // the current task executes
    kHaltPoll,   // would halt, but polls for a wake-up first
    kIdle,       // nothing to do, but the pCPU is its own: native
  };
  enum class Handling : std::uint8_t { kNothing, kTick, kIpi, kSwitch };

  void on_timer();
  // Decides what to do next. REQUIRES to be running and that nothing is under way.
  void enter();
  // What is under way is put aside.
  void suspend();
  void resume_op();
  void begin(Handling what, Duration cost);
  void finish_handling();
  void attend(std::uint64_t ExitCounts::*reason);
  bool interrupts_enabled() const;
  bool preemptible() const;
  void go_idle();
  void halt();
  void arm_poll();
  void pause_loop_exit();
  Duration ple_window() const;
  void begin_poll();
  void awake();
  void account(Activity activity) {
    const SimTime now = engine_.now();
    spent_[static_cast<std::size_t>(activity_)] += now - activity_since_;
    activity_since_ = now;
    activity_ = activity;
    if (!grace_periods_.empty() && activity == Activity::kUser && !clock_.exists()) report_quiescent();
  }
  void tell_lookers();
  bool in_preemptible_user_mode() const;
  void report_quiescent();
  Activity waiting_activity() const;
  Duration time_on_pcpu() const;

  // What `work` takes, and what gets done in a time, at the present speed of the core.
  Duration wall_time(Duration work) const { return core_shared_ ? machine_.time_on_shared_core(work) : work; }
  Duration work_in(Duration wall) const { return core_shared_ ? machine_.work_on_shared_core(wall) : wall; }

  void core_shared(bool shared) override;
  void tick_is_due() override;

  Vm& vm_;
  VcpuId id_;
  std::uint32_t index_;
  const Machine& machine_;
  Engine& engine_;
  Engine::TimerId timer_;
  Host* host_ = nullptr;    // null: native
  Cores* cores_ = nullptr;  // native: where it says whether its pCPU is busy
  PcpuId pcpu_ = kNoPcpu;

  HostState state_ = HostState::kHalted;
  Phase phase_ = Phase::kOff;
  bool attention_ = false;  // something wants to be done before guest code goes on
  bool core_shared_ = false;
  bool halting_ = false;  // it has exited in order to halt
  bool halt_poll_over_ = false;
  bool unhalted_ = false;  // kicked
  bool spun_ = false;      // a pause-loop exit is being handled
  bool costopped_ = false;
  bool resched_ = false;     // the guest wants to switch tasks
  bool left_halted_ = true;  // when it left its pCPU last, it was because it halted
  bool flush_pending_ = false;
  Duration overhead_{};  // to be paid before guest mode
  Duration burn_{};      // of the handling under way
  Handling handling_ = Handling::kNothing;
  SimTime phase_since_ = kTimeZero;

  Task* current_ = nullptr;
  std::deque<Task*> queue_;         // tasks that could run, in order of arrival
  Duration slice_started_{};        // time_on_pcpu when current_ was picked
  SimTime poll_sees_at_ = kNever;   // when the poll under way sees its condition
  SimTime poll_ends_at_ = kNever;   // when its budget is spent
  SimTime poll_exits_at_ = kNever;  // when its PLE window is used up
  std::int64_t ple_window_ = 0;     // in the unit of its mode
  Duration halt_poll_{};            // how long it would poll before it halts
  SimTime halt_began_ = kNever;
  std::vector<CacheLine*> lookers_;
  std::vector<GracePeriod*> grace_periods_;  // that wait for it
  std::deque<IpiCall*> ipis_;
  IpiCall* ipi_under_way_ = nullptr;
  GuestClock clock_;

  Activity activity_ = Activity::kIdle;
  SimTime activity_since_ = kTimeZero;
  SimTime stopped_at_ = kNever;  // when it left its pCPU last
  std::array<Duration, kActivities> spent_{};
  ExitCounts exits_;
};

}  // namespace vcpusim
