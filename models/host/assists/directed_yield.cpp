// Directed yield: to whom a spinning vCPU gives its pCPU.
//
// Source      virt/kvm/kvm_main.c, Linux 5.10 (kvm_vcpu_on_spin); candidates by generation: 3.7 preempted vCPUs only,
//             from 4.14 only those preempted in kernel mode, from 5.3 also woken ones (commit d73eb57b80b), from about
//             5.13 also those preempted in user mode for which an interrupt is pending; last_boosted bug: about 6.12
//             to 6.18 (fixed by 32bd348be3fa)
// Models      one round over the siblings from the last boosted one on; a vCPU that is itself in the handler is skipped
//             the first time it is looked at and taken the second time; three refusals end the round
// Leaves out  the transfer of the siblings' flags; candidates are looked at at no cost but per_candidate
// Shows       boosts that go to a spinner instead of the holder, and boosts that the scheduler does not honour
#include "models/host/assists/assists.h"

namespace vcpusim {

void DirectedYieldParams::describe(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 6> kGenerations{"3.7", "4.14", "5.3", "5.13", "6.12", "6.19"};
  static constexpr std::array<std::string_view, 3> kRules{"auto", "off", "on"};
  visitor.flag("directed", directed, "false: a plain yield to whomever the scheduler prefers, as in Xen");
  visitor.choice("generation", generation, kGenerations, "kernel whose candidates hold, where they are auto");
  visitor.choice("woken", woken, kRules, "boost vCPUs that were woken, not only preempted ones; from 5.3");
  visitor.choice("kernel_mode_only", kernel_mode_only, kRules, "skip vCPUs preempted in user mode; from 4.14");
  visitor.choice("interrupted", interrupted, kRules,
                 "... unless an interrupt is pending for them, which counts as kernel mode; from about 5.13");
  visitor.choice("last_boosted_bug", last_boosted_bug, kRules,
                 "the round starts from how far the last one went, not from whom it boosted; about 6.12 to 6.18");
  visitor.flag("eligibility", eligibility, "skip vCPUs that are in the handler themselves every other time");
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
