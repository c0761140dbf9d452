// A guest task: one strand of guest code, executed by whichever vCPU its guest scheduler puts it on.
//
// What a task does is a coroutine (models/guest/co.h). The awaitable members below are all that guest code may
// wait for. Time in them passes only while the task's vCPU executes in guest mode; when the vCPU is preempted in
// the middle, the rest is done when it runs again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/guest/co.h"
#include "models/guest/vcpu.h"
#include "models/machine/cache_line.h"
#include "sim/engine.h"
#include "sim/random.h"
#include "sim/time.h"

namespace vcpusim {

class GuestLock;
class Vm;

// Memory for coroutine frames, last in first out: a bump of a pointer in a block that most programs do not outgrow,
// beyond that the heap.
class FrameStack {
 public:
  // A frame behind the address of its stack, so that whoever frees it finds it.
  void* allocate(std::size_t size) {
    const std::size_t bytes = kHeader + padded(size);
    void* memory;
    if (bytes <= static_cast<std::size_t>(end_ - top_)) [[likely]] {
      memory = std::exchange(top_, top_ + bytes);
    } else {
      memory = ::operator new(bytes);
    }
    ::new (memory) FrameStack* {this};
    return static_cast<std::byte*>(memory) + kHeader;
  }
  static void free(void* frame) noexcept {
    std::byte* const memory = static_cast<std::byte*>(frame) - kHeader;
    FrameStack& stack = **reinterpret_cast<FrameStack**>(memory);
    if (std::greater_equal<>()(memory, stack.block_.get()) && std::less<>()(memory, stack.end_)) [[likely]] {
      stack.top_ = memory;
    } else {
      ::operator delete(memory);
    }
  }

 private:
  static constexpr std::size_t kBlock = 2048;
  static constexpr std::size_t kAlignment = alignof(std::max_align_t);
  static constexpr std::size_t padded(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }
  static constexpr std::size_t kHeader = kAlignment;  // room for the address of the stack

  std::unique_ptr<std::byte[]> block_ = std::make_unique_for_overwrite<std::byte[]>(kBlock);
  std::byte* top_ = block_.get();
  std::byte* const end_ = block_.get() + kBlock;
};

class Task {
 public:
  // `path` names the task in results and random streams ("vms.web.tasks.make.3").
  Task(Vm& vm, Engine& engine, std::uint64_t seed, std::uint32_t index, std::string path);
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task();

  // ---- for guest code -------------------------------------------------------------------------------------

  // Executes for `span` of CPU time; then, as all of what a function does, calls `then`.
  auto run(Duration span) { return Run{*this, span}; }
  template <class Then>
  Co run(Duration span, Then then) {
    return Co(*this, span, then);
  }

  // Loads from, or takes exclusive ownership of, a cache line. When the line has been granted, `effect` is applied
  // to the memory on it, and what it returns is the result of the co_await.
  auto load(CacheLine& line) { return Run{*this, line.load(pcpu()) - now()}; }
  template <class Effect>
  auto store(CacheLine& line, Effect effect) {
    return Write<Effect>{{*this, line.store(pcpu()) - now()}, line, effect};
  }
  template <class Effect>
  auto atomic(CacheLine& line, Effect effect) {
    return Write<Effect>{{*this, line.atomic(pcpu()) - now()}, line, effect};
  }

  // A store that leaves through the store buffer while the task goes on. Only for memory that no one else may
  // write at the time, since the effect is applied at once; pollers see it when the line has arrived.
  template <class Effect>
  void post(CacheLine& line, Effect effect) {
    line.store(pcpu());
    effect();
    line.written();
  }

  // Spins until `condition`, a predicate over the memory on `line`, is seen to hold; with a budget, at most for so
  // long. The result of the co_await is whether it was seen.
  template <class Condition>
  auto watch(CacheLine& line, Condition condition) {
    return Watch<Condition>{*this, line, condition, std::nullopt};
  }
  template <class Condition>
  auto watch_for(std::optional<Duration> budget, CacheLine& line, Condition condition) {
    return Watch<Condition>{*this, line, condition, budget};
  }
  // What is left of the budget of the watch_for that has just ended. REQUIRES that it had one.
  Duration watch_left() const { return *op.budget; }

  // Gives up the vCPU for `span`, or until wake().
  auto sleep(Duration span) { return Sleep{*this, span}; }
  auto block() { return Sleep{*this, std::nullopt}; }
  // Lets a task that sleeps or blocks go on. `from` is the task that does it; null: a timer or a device.
  void wake(Task* from);

  // Halts the vCPU until it is kicked or, with interrupts enabled, interrupted. May return for no reason.
  auto halt() { return Halt{*this}; }
  // Leaves guest mode for a hypercall that costs `cost` beside the exit.
  auto hypercall(Duration cost = {}) {
    vcpu_->hypercall(cost);
    return run(Duration::zero());
  }
  // Asks the host to let `target` run in place of this vCPU.
  auto yield_to(Vcpu& target) { return YieldTo{*this, target}; }

  // Lets other tasks of the vCPU have their turn, if there are any.
  auto yield() {
    vcpu_->yield_task();
    return run(Duration::zero());
  }

  // Sections in which the guest does not switch tasks, and in which interrupts wait. They nest.
  void disable_preemption() { ++preemption_off; }
  void enable_preemption() {
    if (--preemption_off == 0) vcpu_->look_up();
  }
  void disable_interrupts() { ++interrupts_off; }
  void enable_interrupts() {
    if (--interrupts_off == 0) vcpu_->look_up();
  }

  SimTime now() const { return engine_.now(); }
  Vm& vm() const { return vm_; }
  Vcpu& vcpu() const { return *vcpu_; }
  PcpuId pcpu() const { return vcpu_->pcpu(); }
  RandomStream& random() { return random_; }

  // What the time of this task is accounted to from now on. Returns what it was.
  Activity set_activity(Activity activity) {
    const Activity before = std::exchange(activity_, activity);
    vcpu_->guest_does(activity);
    return before;
  }
  Activity activity() const { return activity_; }

  // ---- progress, for operations and metrics ---------------------------------------------------------------

  std::uint64_t operations = 0;        // passes of the outermost repeat body
  int repeat_depth = 0;                // repeat bodies that it is inside of
  std::optional<SimTime> finished_at;  // when its program ended

  const std::string& path() const { return path_; }
  std::uint32_t index() const { return index_; }  // among all tasks of the host
  // Why it cannot go on unless another task does something; empty if it can.
  std::optional<std::string> stuck() const;

  // ---- locks, for GuestLock ------------------------------------------------------------------------------

  struct Wait {
    SimTime since;
    Duration spin_before;  // what its vCPU had spent on spinning then; moves along when it sleeps in between
  };
  Wait wait{};  // of the lock that it waits for
  void waits_for(GuestLock* lock) { waiting_for_ = lock; }
  void holds(GuestLock& lock) { held_.push_back(&lock); }
  bool holds_lock() const { return !held_.empty(); }
  void no_longer_holds(GuestLock& lock) {
    if (held_.back() == &lock) [[likely]] {
      held_.pop_back();
    } else {
      std::erase(held_, &lock);
    }
  }

  // ---- for the vCPU and the VM ----------------------------------------------------------------------------

  GuestOp op;
  int marks = 0;  // critical sections that it has marked by hint hypercalls and not left
  int preemption_off = 0;
  int interrupts_off = 0;
  // The vCPU has lost its pCPU; it is back on one after having been away since `stopped_at`.
  void vcpu_stopped();
  void vcpu_resumed(SimTime stopped_at);

  void start(Co program);  // REQUIRES that vcpu is set
  void place_on(Vcpu& vcpu) { vcpu_ = &vcpu; }
  // Executes guest code until it has to wait. REQUIRES that the vCPU is in guest mode and the wait is over.
  void drive();
  bool finished() const { return finished_at.has_value(); }

 private:
  void alarm() { wake(nullptr); }
  void wake_after(Duration span);
  friend class Co;
  friend void set_innermost(Task& task, Co::Handle innermost) noexcept;
  friend void* detail::allocate_frame(Task& task, std::size_t size);

  void run_for(Duration span) {
    suspended_ = true;
    vcpu_->run_for(span);
  }

  struct Run {
    Task& task;
    Duration span;
    bool await_ready() const { return task.vcpu_->run_ahead(span); }
    void await_suspend(Co::Handle) const { task.run_for(span); }
    void await_resume() const {}
  };

  template <class Effect>
  struct Write : Run {
    CacheLine& line;
    Effect effect;
    operator Co() const {
      return Co(this->task, this->span, [to = &line, effect = effect] {
        effect();
        to->written();
      });
    }
    auto await_resume() {
      if constexpr (std::is_void_v<std::invoke_result_t<Effect>>) {
        effect();
        line.written();
      } else {
        const auto result = effect();
        line.written();
        return result;
      }
    }
  };

  template <class Condition>
  struct Watch final : LineWatcher {
    Task& task;
    CacheLine& line;
    Condition holds;
    std::optional<Duration> budget;

    Watch(Task& t, CacheLine& l, Condition c, std::optional<Duration> b) : task(t), line(l), holds(c), budget(b) {}
    ~Watch() = default;

    bool await_ready() const { return false; }
    void await_suspend(Co::Handle) {
      task.suspended_ = true;
      task.vcpu_->poll(line, *this, budget);
    }
    bool await_resume() {
      line.unwatch(*this);
      return task.vcpu_->poll_succeeded();
    }

    bool condition() const override { return holds(); }
    void sees_condition(SimTime at) override { task.vcpu_->poll_succeeds(at); }
    void loses_condition() override { task.vcpu_->poll_fails(); }
  };

  struct Sleep {
    Task& task;
    std::optional<Duration> span;
    bool await_ready() const { return false; }
    void await_suspend(Co::Handle) const {
      task.suspended_ = true;
      task.off_vcpu_ = true;
      if (span) task.wake_after(*span);
      task.wait.spin_before -= task.vcpu_->time(Activity::kSpin);
      task.vcpu_->leave(task);
    }
    void await_resume() const { task.wait.spin_before += task.vcpu_->time(Activity::kSpin); }
  };

  struct Halt {
    Task& task;
    bool await_ready() const { return false; }
    void await_suspend(Co::Handle) const {
      task.suspended_ = true;
      task.vcpu_->halt_current();
    }
    void await_resume() const {}
  };

  struct YieldTo {
    Task& task;
    Vcpu& target;
    bool await_ready() const { return false; }
    void await_suspend(Co::Handle) const {
      task.suspended_ = true;
      task.vcpu_->yield_to(target);
    }
    void await_resume() const {}
  };

  Vm& vm_;
  Engine& engine_;
  std::uint32_t index_;
  std::string path_;
  std::optional<Engine::TimerId> alarm_;  // once it has slept
  RandomStream random_;
  Vcpu* vcpu_ = nullptr;
  Activity activity_ = Activity::kUser;
  bool suspended_ = false;
  bool off_vcpu_ = false;   // sleeps or blocks
  bool preempted_ = false;  // the vCPU has lost its pCPU against its will
  GuestLock* waiting_for_ = nullptr;
  std::vector<GuestLock*> held_;
  FrameStack frames_;
  std::optional<Co> program_;
  Co::Handle innermost_{};
};

inline void set_innermost(Task& task, Co::Handle innermost) noexcept { task.innermost_ = innermost; }

inline bool Co::await_ready() const { return !handle_ && step_.self->vcpu_->run_ahead(step_.span); }
inline void Co::await_suspend(Handle caller) const {
  if (handle_) {
    handle_.promise().caller = caller;
    set_innermost(handle_.promise().task, handle_);
  } else {
    step_.self->run_for(step_.span);
  }
}

inline void* detail::allocate_frame(Task& task, std::size_t size) { return task.frames_.allocate(size); }
inline void detail::free_frame(void* frame) noexcept { FrameStack::free(frame); }

}  // namespace vcpusim
