// Pause-loop exiting.
//
// Source      arch/x86/kvm/x86.h, vmx.c and svm.c, Linux 5.10: gap 128 cycles, window 4096 cycles, grow 2, shrink 0,
//             maximum 2^32 - 1; AMD pause filter count 3000, maximum 65535. Fixed window (grow 1) before 3.18
// Models      a vCPU that spins in kernel mode exits when its window is used up; detection starts afresh at every
//             entry; each exit doubles the window, each time the vCPU is scheduled in resets it (shrink 0) or divides
//             it; AMD counts PAUSEs instead of cycles
// Leaves out  the gap: every spin loop here is tight, so that its PAUSEs are always close enough
// Shows       spinners leave the pCPU long before their timeslice ends; storms of exits when there is nobody to boost
#include <algorithm>

#include "models/host/assists/assists.h"

namespace vcpusim {

void PleParams::describe(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 2> kModes{"intel", "amd"};
  visitor.choice("mode", mode, kModes, "intel: a window in cycles; amd: a count of PAUSEs");
  visitor.cycles("window", window, {1, (std::int64_t{1} << 32) - 1},
                 "intel: time in a spin loop before the exit; arch/x86/kvm/x86.h, Linux 5.10");
  visitor.integer("count", count, {1, 65535}, "amd: PAUSEs before the exit; arch/x86/kvm/x86.h, Linux 5.10");
  visitor.integer("grow", grow, {0, 1'000'000'000},
                  "factor of the window after each exit, from the base window on an addend; 0: back to the base; 1: "
                  "fixed, as before Linux 3.18");
  visitor.integer("shrink", shrink, {0, 1'000'000'000},
                  "divisor of the window at each sched-in, from the base window on a subtrahend; 0: back to the base");
  visitor.cycles("max_window", max_window, {1, (std::int64_t{1} << 32) - 1},
                 "intel: largest window; arch/x86/kvm/x86.h, Linux 5.10");
  visitor.integer("max_count", max_count, {1, 65535}, "amd: largest count; arch/x86/kvm/x86.h, Linux 5.10");
}

// __grow_ple_window and __shrink_ple_window of arch/x86/kvm/x86.h.
std::int64_t PleParams::grown(std::int64_t now) const {
  const std::int64_t most = mode == Mode::kIntel ? max_window.count : max_count;
  if (grow == 0) return base();
  return std::min(grow < base() ? now * grow : now + grow, most);
}

std::int64_t PleParams::shrunk(std::int64_t now) const {
  if (shrink == 0) return base();
  return std::max(shrink < base() ? now / shrink : now - shrink, base());
}

namespace assists {
AssistKind ple() {
  return {"ple", "pause-loop exits: spinning vCPUs are taken out of guest mode",
          "arch/x86/kvm/x86.h, vmx.c, svm.c, Linux 5.10", [](ParamVisitor& visitor) { PleParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
