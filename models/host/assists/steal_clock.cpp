// The steal clock: memory in which the host tells each vCPU how long it was kept from a pCPU, and whether it is on one.
//
// Source      arch/x86/kernel/kvm.c, Linux 5.10; commit 54aa83c90198 (5.19) for the flag of halted vCPUs
// Models      guests with a clock interrupt charge what was stolen to nobody; mutex spinners and shootdowns look at the
//             preempted flag of other vCPUs
// Leaves out  the transfer of the shared line
// Shows       the difference between what a guest believes it has used and what it got
#include "models/host/assists/assists.h"

namespace vcpusim {

void StealClockParams::describe(ParamVisitor& visitor) {
  visitor.flag("halted_reads_preempted", halted_reads_preempted,
               "a halted vCPU reads as preempted too: hosts up to Linux 5.18");
}

namespace assists {
AssistKind steal_clock() {
  return {"steal_clock", "guests see stolen time and which vCPUs are preempted",
          "arch/x86/kernel/kvm.c, Linux 5.10; commit 54aa83c90198",
          [](ParamVisitor& visitor) { StealClockParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
