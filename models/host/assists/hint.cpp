// Critical-section hint hypercall.
//
// Source      "Enhancement for PLE handler in KVM", kvm list, March 2014: an embedded guest with one big kernel lock
// marks
//             the entry and exit of its kernel by a hypercall of about 1 us; the PLE handler then boosts marked vCPUs
//             only. The patch itself was not available: who counts as marked and what happens when nobody is marked are
//             parameters here
// Models      a counter per vCPU; two hypercalls per marked section, paid by the guest
// Leaves out  nothing known
// Shows       holder preemption that ends at the next PLE exit of any waiter, for the price of two hypercalls a section
#include "models/host/assists/assists.h"

namespace vcpusim {

void HintParams::describe(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 3> kMarks{"kernel", "request", "owner"};
  static constexpr std::array<std::string_view, 3> kFallbacks{"resume", "yield", "stock"};
  visitor.choice(
      "mark", mark, kMarks,
      "what is marked: every kernel or lock operation, lock sections from the request on, or only while owning");
  visitor.choice("fallback", fallback, kFallbacks,
                 "without any marked candidate: go on spinning, yield to anybody, or the stock algorithm");
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
