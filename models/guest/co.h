// Coroutines in which guest code is written.
//
// A lock algorithm or a program operation is a function that returns Co. Inside it, `co_await self.store(line)`
// and the like let simulated time pass; `co_await other(self)` calls another such function. Nothing runs until
// the result is awaited or given to Task::start.
//
// Every function that returns Co takes the Task that executes it as its first parameter (after `this`). Frames
// come from that task's own stack: coroutines of one task nest strictly, so a frame costs a pointer bump and no
// heap allocation. A task drives its innermost coroutine in a loop (no symmetric transfer), so a long program
// of operations that never suspend uses no stack, in any build type.
//
// A function that does a single thing need not be a coroutine. It returns what it would await, which is converted:
// `return self.store(line, effect);`.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "sim/time.h"

namespace vcpusim {

class Task;

namespace detail {
void* allocate_frame(Task& task, std::size_t size);
void free_frame(void* frame) noexcept;
}  // namespace detail

class [[nodiscard]] Co {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  // One step: executes for `span`, then calls `then`, which may hold two pointers.
  template <class Then>
  Co(Task& self, Duration span, Then then) : step_{&self, span, [](void* t) { (*static_cast<Then*>(t))(); }, {}} {
    static_assert(std::is_trivially_copyable_v<Then> && sizeof(Then) <= sizeof(step_.closure));
    ::new (step_.closure) Then(then);
  }

  Co(Co&& other) noexcept : handle_(std::exchange(other.handle_, {})), step_(other.step_) {}
  Co& operator=(Co&&) = delete;
  ~Co() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const;
  void await_suspend(Handle caller) const;
  void await_resume() {
    if (!handle_) step_.then(step_.closure);
  }

  Handle handle() const { return handle_; }  // null if it is one step

 private:
  struct Step {
    Task* self;
    Duration span;
    void (*then)(void*);
    alignas(void*) std::byte closure[2 * sizeof(void*)];
  };

  explicit Co(Handle handle) : handle_(handle) {}

  Handle handle_;
  Step step_;  // unless there is a coroutine
};

// Makes `innermost` the coroutine that its task continues with.
void set_innermost(Task& task, Co::Handle innermost) noexcept;

struct Co::promise_type {
  // The task is the first argument of a free function and the second of a member function.
  template <class... Rest>
  explicit promise_type(Task& self, Rest&...) : task(self) {}
  template <class Object, class... Rest>
  promise_type(Object&, Task& self, Rest&...) : task(self) {}

  template <class... Rest>
  static void* operator new(std::size_t size, Task& self, Rest&...) {
    return detail::allocate_frame(self, size);
  }
  template <class Object, class... Rest>
  static void* operator new(std::size_t size, Object&, Task& self, Rest&...) {
    return detail::allocate_frame(self, size);
  }
  static void operator delete(void* frame) noexcept { detail::free_frame(frame); }

  struct FinalAwait {
    bool await_ready() const noexcept { return false; }
    void await_suspend(Handle self) const noexcept { set_innermost(self.promise().task, self.promise().caller); }
    void await_resume() const noexcept {}
  };

  Co get_return_object() { return Co(Handle::from_promise(*this)); }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwait final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  void unhandled_exception() { throw; }  // a broken invariant: it leaves through Task's driver

  Task& task;
  Handle caller{};
};

}  // namespace vcpusim
