// Paravirtual IPIs.
//
// Source      arch/x86/kernel/kvm.c, Linux 5.10: __send_ipi_mask (a bitmap of two machine words a hypercall) and
//             kvm_smp_send_call_func_ipi (yield to the first target whose vCPU is preempted); commits aaffcfd1e82d
//             (4.19) and f85f6e7bc9ff (5.3)
// Models      one exit for up to `targets` targets of a call instead of one exit for each; the yield
// Leaves out  posted interrupts and IPI virtualisation, which send without any exit
// Shows       what a guest of many vCPUs pays for a shootdown before it can begin to wait
#include "models/host/assists/assists.h"

namespace vcpusim {

void PvIpiParams::describe(ParamVisitor& visitor) {
  visitor.integer("targets", targets, {1, 16384}, "vCPUs that one hypercall reaches: two words of 64 bits");
  visitor.flag("yield", yield,
               "the sender then yields its pCPU to the first target that reads as preempted (needs steal_clock)");
}

namespace assists {
AssistKind pv_ipi() {
  return {"pv_ipi", "one hypercall sends IPIs to many vCPUs", "arch/x86/kernel/kvm.c, Linux 5.10",
          [](ParamVisitor& visitor) { PvIpiParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
