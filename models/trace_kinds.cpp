#include "models/trace_kinds.h"

#include <array>

namespace vcpusim {

std::string_view name_of(TraceKind kind) {
  static constexpr std::array<std::string_view, kTraceKinds> kNames{
      "dispatch", "deschedule", "wake", "tick", "lock_acquired", "lock_released", "task_finished"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace vcpusim
