// Halt polling.
//
// Source      virt/kvm/kvm_main.c, Linux 5.10 and 6.12; maximum 200 us: arch/x86/include/asm/kvm_host.h; shrink 0 up to
//             6.8, 2 in 6.12
// Models      a vCPU that halts keeps its pCPU, polling for a wake-up, as long as it is the only one that wants it and
// at
//             most for a time that adapts to how long it has slept before
// Leaves out  the guest's own polling governor
// Shows       shorter wake-ups on an idle host, at the price of CPU time; nothing under overcommit
#include "models/host/assists/assists.h"

namespace vcpusim {

void HaltPollParams::describe(ParamVisitor& visitor) {
  visitor.duration("max", max, kAnyDuration, "longest poll; arch/x86/include/asm/kvm_host.h, Linux 6.12");
  visitor.integer("grow", grow, {1, 1'000'000}, "factor after a sleep that a longer poll would have caught");
  visitor.duration("grow_start", grow_start, kPositiveDuration, "first poll; virt/kvm/kvm_main.c, Linux 6.12");
  visitor.integer("shrink", shrink, {0, 1'000'000},
                  "divisor after a sleep longer than the maximum; 0: no poll next time");
}

namespace assists {
AssistKind halt_poll() {
  return {"halt_poll", "a halting vCPU polls for a while before it gives up its pCPU",
          "virt/kvm/kvm_main.c, Linux 5.10 to 6.12", [](ParamVisitor& visitor) { HaltPollParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
