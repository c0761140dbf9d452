// What the models write into a trace.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/engine.h"
#include "sim/trace.h"

namespace vcpusim {

// Subjects and objects are host-wide numbers: pCPUs, vCPUs, locks and tasks are each counted from 0 in the order of the
// scenario. What a record means stands behind its kind as (subject, object, value).
enum class TraceKind : std::uint16_t {
  kDispatch,      // a vCPU begins to run            (vCPU, pCPU, -)
  kDeschedule,    // it leaves its pCPU              (vCPU, pCPU, its HostState then)
  kWake,          // a halted vCPU becomes ready     (vCPU, pCPU whose queue it joins, -)
  kTick,          // the clock handler begins        (vCPU, -, lateness in ps)
  kLockAcquired,  // a task becomes owner            (task, lock, wait in ps)
  kLockReleased,  // its unlocking store begins      (task, lock, hold in ps)
  kTaskFinished,  // a task's program has ended      (task, -, -)
};
inline constexpr std::size_t kTraceKinds = 7;

std::string_view name_of(TraceKind kind);

// Writes records, if anybody watches: one branch if not.
class Tracer {
 public:
  Tracer(const Engine& engine, TraceSink* sink) : engine_(engine), sink_(sink) {}
  void operator()(TraceKind kind, std::uint32_t subject, std::uint32_t object = 0, std::int64_t value = 0) const {
    if (sink_ != nullptr) sink_->record({engine_.now(), static_cast<std::uint16_t>(kind), subject, object, value});
  }

 private:
  const Engine& engine_;
  TraceSink* sink_;
};

}  // namespace vcpusim
