// A synchronous call to sibling vCPUs, as a TLB shootdown makes: send an IPI to each, then spin until all have
// answered.
//
// Source      kernel/smp.c and arch/x86/mm/tlb.c, Linux: the initiator waits, executing, for each target
// Models      one IPI per target, paid by the sender; a target answers when it runs with interrupts enabled; one that
//             is halted is woken
//             With pv_ipi one hypercall sends to many; with pv_tlb_flush a shootdown leaves out those that do not run
// Leaves out  posted interrupts
// Shows       the slowest target decides: a target that waits for a pCPU adds its whole scheduling delay
#include "models/guest/ipi.h"

#include <algorithm>

#include "models/catalogue.h"
#include "models/guest/hint.h"
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
    visitor.flag("flush", flush_, "a TLB shootdown, which pv_tlb_flush may defer; false: a function call");
  }

  Co run(Task& self) const override {
    const auto& vcpus = self.vm().vcpus();
    const std::size_t n = std::min(static_cast<std::size_t>(targets_), vcpus.size() - 1);
    if (n == 0) co_return;
    const Activity before = enter_kernel(self);
    self.disable_preemption();
    IpiCall call(self.vm().machine(), work_.draw(self.random()));
    const Assists& assists = self.vm().assists();
    Vcpu* preempted = nullptr;
    for (std::size_t i = 1; i <= n; ++i) {
      Vcpu& target = *vcpus[(index_of(self.vcpu().id()) + i) % vcpus.size()];
      if (assists.steal_clock && target.reads_preempted()) {
        if (flush_ && assists.pv_tlb_flush) {
          target.flush_on_entry(assists.pv_tlb_flush->flush);
          ++self.vm().counts.deferred_flushes;
          continue;
        }
        if (preempted == nullptr) preempted = &target;
      }
      if (assists.pv_ipi && call.sent++ % assists.pv_ipi->targets == 0) self.vcpu().hypercall(Duration::zero());
      target.send_ipi(call, self.vcpu(), !assists.pv_ipi);
    }
    if (preempted != nullptr && assists.pv_ipi && assists.pv_ipi->yield) {
      co_await self.hypercall();
      co_await self.yield_to(*preempted);
    }
    if (call.outstanding > 0) co_await self.watch(call.line, [&call] { return call.outstanding == 0; });
    leave_kernel(self, before);
    self.enable_preemption();
  }

 private:
  std::int64_t targets_ = 1;
  Distribution work_;
  bool flush_ = true;
};

}  // namespace

namespace operations {
OperationKind ipi() {
  return {"ipi", "call sibling vCPUs and spin until they have answered",
          []() { return std::unique_ptr<Operation>(std::make_unique<Ipi>()); }};
}
}  // namespace operations

}  // namespace vcpusim
