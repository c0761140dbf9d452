// Pause-loop exiting.
//
// Source      arch/x86/kvm/x86.h and vmx.c, Linux 5.10: gap 128 cycles, window 4096 cycles, grow 2, shrink 0, maximum
//             2^32 - 1; AMD pause filter count 3000. Fixed window (grow 1) before 3.18
// Models      a vCPU that spins in kernel mode exits when its window is used up; detection starts afresh at every
// entry;
//             each exit doubles the window, each time the vCPU is scheduled in resets it (shrink 0) or divides it; AMD
//             counts PAUSEs instead of cycles
// Leaves out  the gap: every spin loop here is tight, so that its PAUSEs are always close enough
// Shows       spinners leave the pCPU long before their timeslice ends; storms of exits when there is nobody to boost
#include "models/host/assists/assists.h"

namespace vcpusim {

void PleParams::describe(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 2> kModes{"intel", "amd"};
  visitor.choice("mode", mode, kModes, "intel: a window in cycles; amd: a count of PAUSEs");
  visitor.cycles("window", window, {1, (std::int64_t{1} << 32) - 1},
                 "intel: time in a spin loop before the exit; arch/x86/kvm/x86.h, Linux 5.10");
  visitor.integer("count", count, {1, 65535}, "amd: PAUSEs before the exit; arch/x86/kvm/x86.h, Linux 5.10");
  visitor.integer("grow", grow, {1, 1'000'000}, "factor of the window after each exit; 1: fixed, as before Linux 3.18");
  visitor.integer("shrink", shrink, {0, 1'000'000}, "divisor of the window at each sched-in; 0: back to the base");
  visitor.cycles("max_window", max_window, {1, (std::int64_t{1} << 32) - 1},
                 "largest window; arch/x86/kvm/x86.h, Linux 5.10 (amd: 65535 PAUSEs)");
}

namespace assists {
AssistKind ple() {
  return {"ple", "pause-loop exits: spinning vCPUs are taken out of guest mode",
          "arch/x86/kvm/x86.h, vmx.c, svm.c, Linux 5.10", [](ParamVisitor& visitor) { PleParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
