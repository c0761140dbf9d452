// A synchronous call to sibling vCPUs, as a TLB shootdown makes: send an IPI to each, then spin until all have
// answered.
//
// Source      kernel/smp.c and arch/x86/mm/tlb.c, Linux: the initiator waits, executing, for each target
// Models      one IPI per target, paid by the sender; a target answers when it runs with interrupts enabled; one that
//             is halted is woken
// Leaves out  multicast and posted interrupts
// Shows       the slowest target decides: a target that waits for a pCPU adds its whole scheduling delay
#include "models/guest/ipi.h"

#include <algorithm>

#include "models/catalogue.h"
#include "models/guest/vm.h"
#include "models/operation.h"
#include "sim/distribution.h"

namespace vcpusim {

namespace {

class Ipi final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    visitor.integer("ipi", targets_, {1, 16384}, "how many sibling vCPUs are called, at most all of them");
    visitor.distribution("work", work_, "CPU time that each target spends on the call");
  }

  Co run(Task& self) const override {
    const auto& vcpus = self.vm().vcpus();
    const std::size_t n = std::min(static_cast<std::size_t>(targets_), vcpus.size() - 1);
    if (n == 0) co_return;
    const Activity before = self.set_activity(Activity::kSystem);
    self.disable_preemption();
    IpiCall call(self.vm().machine(), work_.draw(self.random()));
    for (std::size_t i = 1; i <= n; ++i) {
      vcpus[(index_of(self.vcpu().id()) + i) % vcpus.size()]->send_ipi(call, self.vcpu());
    }
    co_await self.watch(call.line, [&call] { return call.outstanding == 0; });
    self.set_activity(before);
    self.enable_preemption();
  }

 private:
  std::int64_t targets_ = 1;
  Distribution work_;
};

}  // namespace

namespace operations {
OperationKind ipi() {
  return {"ipi", "call sibling vCPUs and spin until they have answered",
          []() { return std::unique_ptr<Operation>(std::make_unique<Ipi>()); }};
}
}  // namespace operations

}  // namespace vcpusim
