// Paravirtual TLB flush.
//
// Source      arch/x86/kernel/kvm.c, Linux 5.10 (needs the steal clock's preempted flag)
// Models      a shootdown sends no IPI to a vCPU whose flag says that it is not running: the host flushes for it when
//             it enters the guest again, once for all shootdowns in between; a vCPU that is halted is covered only by
//             hosts that flag it (steal_clock)
// Leaves out  the race of a target that begins to run in the very moment: the flag and the flush are one atomic; the
//             transfer of the flags; the misses that follow a flush
// Shows       shootdowns that no longer wait for the scheduling delay of the slowest target
#include "models/host/assists/assists.h"

namespace vcpusim {

void PvTlbFlushParams::describe(ParamVisitor& visitor) {
  visitor.duration("flush", flush, kAnyDuration, "cost of the flush on the next entry; an estimate");
}

namespace assists {
AssistKind pv_tlb_flush() {
  return {"pv_tlb_flush", "shootdowns skip vCPUs that are not running", "arch/x86/kernel/kvm.c, Linux 5.10",
          [](ParamVisitor& visitor) { PvTlbFlushParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
