// Where guest code marks its critical sections by hint hypercalls (models/host/assists/hint.cpp).
#pragma once

#include "models/guest/task.h"
#include "models/guest/vm.h"

namespace vcpusim {

// A section of this kind begins (change 1) or ends (-1). The hypercall's time passes when the task waits next.
inline void mark_section(Task& self, HintParams::Mark kind, int change) {
  const HintParams* const hint = self.vm().hint();
  if (hint == nullptr || hint->mark != kind) return;
  self.marks += change;
  ++self.vm().counts.hints;
  self.vcpu().hypercall(hint->hypercall);
}

// The task enters its kernel, or was in it; leave_kernel with the result puts back what it was in.
inline Activity enter_kernel(Task& self) {
  const Activity before = self.set_activity(Activity::kSystem);
  if (self.vm().hint() != nullptr && before == Activity::kUser) mark_section(self, HintParams::Mark::kKernel, 1);
  return before;
}
inline void leave_kernel(Task& self, Activity before) {
  self.set_activity(before);
  if (self.vm().hint() != nullptr && before == Activity::kUser) mark_section(self, HintParams::Mark::kKernel, -1);
}

}  // namespace vcpusim
