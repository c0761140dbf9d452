// A virtual CPU: guest tasks on one side, a pCPU on the other.
//
// Everything a vCPU waits for is one timer. While it executes in guest mode it either runs (a known span of CPU
// time) or polls (spins on a cache line); a poll costs no event while its condition is false.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "models/machine/cache_line.h"
#include "models/machine/machine.h"
#include "sim/engine.h"
#include "sim/time.h"

namespace vcpusim {

class Task;
class Vm;

// Index of a vCPU within its VM, from 0.
enum class VcpuId : std::uint32_t {};
constexpr std::uint32_t index_of(VcpuId id) { return static_cast<std::uint32_t>(id); }

// What the time of a vCPU is spent on. Each picosecond belongs to exactly one of these.
enum class Activity : std::uint8_t {
  kUser,    // guest user mode
  kSystem,  // guest kernel, outside of lock sections
  kHold,    // guest kernel, holding a lock
  kSpin,    // waiting for a lock, executing
  kIdle,    // nothing to run
};
inline constexpr std::size_t kActivities = 5;

class Vcpu {
 public:
  Vcpu(Vm& vm, VcpuId id, const Machine& machine);
  Vcpu(const Vcpu&) = delete;
  Vcpu& operator=(const Vcpu&) = delete;

  VcpuId id() const { return id_; }
  PcpuId pcpu() const { return pcpu_; }
  Task* current() const { return current_; }

  // Puts the vCPU on `pcpu`, for good: it has no hypervisor.
  void run_natively_on(PcpuId pcpu);

  // ---- for its current task -------------------------------------------------------------------------------

  // Executes for `span` if nothing else happens in that time, at once and without an event; false if it might.
  bool run_ahead(Duration span) { return span == Duration::zero() || engine_.try_advance(engine_.now() + span); }
  // Executes for `span`, then drives the current task.
  void run_for(Duration span) { engine_.schedule(timer_, engine_.now() + span); }
  // Polls `line` until the watcher's condition holds or the budget is spent, then drives the current task.
  void poll(CacheLine& line, LineWatcher& watcher, std::optional<Duration> budget);
  void poll_succeeds(SimTime at);
  void poll_fails();
  bool poll_succeeded() const { return poll_sees_at_ <= engine_.now(); }
  PcpuId polling_pcpu(const LineWatcher&) const { return pcpu_; }
  // The current task waits for something that is not the vCPU's business, or has ended.
  void leave(Task& task);
  // `task` can run again.
  void enqueue(Task& task);
  void guest_does(Activity activity);

  // ---- accounting -----------------------------------------------------------------------------------------

  // Time spent on `activity` since reset_accounts, up to the present.
  Duration time(Activity activity) const;
  void reset_accounts();

 private:
  void on_timer();
  void pick_task();

  Vm& vm_;
  VcpuId id_;
  Engine& engine_;
  Engine::TimerId timer_;
  PcpuId pcpu_ = kNoPcpu;
  Task* current_ = nullptr;
  SimTime poll_sees_at_ = kNever;  // when the poll under way sees its condition
  SimTime poll_ends_at_ = kNever;  // when its budget is spent
  std::deque<Task*> queue_;        // tasks that could run, in order of arrival

  Activity activity_ = Activity::kIdle;
  SimTime activity_since_ = kTimeZero;
  std::array<Duration, kActivities> spent_{};
};

}  // namespace vcpusim
