// Critical-section hint hypercall.
//
// Source      "Enhancement for PLE handler in KVM", kvm list, March 2014: an embedded guest with one big kernel lock
//             marks the entry and exit of its kernel by a hypercall of about 1 us; the PLE handler then boosts marked
//             vCPUs only. The patch itself was not available: who counts as marked and what happens when nobody is
//             marked are parameters here
// Models      two hypercalls per marked section, paid by the guest where it makes them (models/guest/hint.h); marks of
//             nested sections are counted; a mark is its task's: a vCPU is marked while it has that task current. The
//             eligibility of directed_yield does not apply to marked vCPUs
// Leaves out  interrupts and blocking system calls as entries of the kernel
// Shows       holder preemption that ends at the next PLE exit of any waiter, for the price of two hypercalls a section
#include "models/host/assists/assists.h"

namespace vcpusim {

void HintParams::describe(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 3> kMarks{"kernel", "request", "owner"};
  static constexpr std::array<std::string_view, 3> kFallbacks{"resume", "yield", "stock"};
  visitor.choice(
      "mark", mark, kMarks,
      "what is marked: kernel mode (kernel, lock, rcu_read and ipi operations, once if nested), lock sections from the "
      "request on, or only while owning. A lock operation with \"hint\": false marks no section");
  visitor.choice("fallback", fallback, kFallbacks,
                 "without any marked vCPU that waits for a pCPU: go on spinning, yield to anybody, or the stock "
                 "algorithm");
  visitor.duration("hypercall", hypercall, kAnyDuration,
                   "cost of one hint: under 1 us on an i7 at 3.0 GHz (the source)");
}

namespace assists {
AssistKind hint() {
  return {"hint", "guests mark critical sections; spinners boost marked vCPUs only", "kvm list, March 2014",
          [](ParamVisitor& visitor) { HintParams{}.describe(visitor); }};
}
}  // namespace assists

}  // namespace vcpusim
