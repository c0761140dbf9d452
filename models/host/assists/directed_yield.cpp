// Directed yield: to whom a spinning vCPU gives its pCPU.
//
// Source      virt/kvm/kvm_main.c, Linux 5.10 (kvm_vcpu_on_spin); candidates by generation: 3.x and 4.x preempted vCPUs
//             only, from 5.3 also woken ones, from 4.14 only those preempted in kernel mode; last_boosted bug: about
//             6.12 to 6.18
// Models      one round over the siblings from the last boosted one on; a vCPU that is itself in the handler is skipped
//             the first time it is looked at and taken the second time; three refusals end the round
// Leaves out  the transfer of the siblings' flags; candidates are looked at at no cost but per_candidate
// Shows       boosts that go to a spinner instead of the holder, and boosts that the scheduler does not honour
#include "models/host/assists/assists.h"

namespace vcpusim {

void DirectedYieldParams::describe(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 2> kCandidates{"preempted", "ready"};
  visitor.flag("directed", directed, "false: a plain yield to whomever the scheduler prefers, as in Xen");
  visitor.choice("candidates", candidates, kCandidates, "preempted: before Linux 5.3; ready: woken ones too, since");
  visitor.flag("kernel_mode_only", kernel_mode_only, "skip vCPUs preempted in user mode; since Linux 4.14");
  visitor.flag("eligibility", eligibility, "skip vCPUs that are in the handler themselves every other time");
  visitor.flag("last_boosted_bug", last_boosted_bug,
               "the round starts from how far the last one went, not from whom it boosted; about Linux 6.12 to 6.18");
  visitor.duration("handler", handler, kAnyDuration, "cost of the handler with its first candidate; an estimate");
  visitor.duration("per_candidate", per_candidate, kAnyDuration, "cost of each further candidate; an estimate");
}

namespace assists {
AssistKind directed_yield() {
  return {"directed_yield", "what a pause-loop exit leads to: yield to a sibling", "virt/kvm/kvm_main.c, Linux 5.10",
          [](ParamVisitor& visitor) { DirectedYieldParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
