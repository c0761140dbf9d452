// A critical section: acquire a lock of the guest, hold it, release it.
#include <array>

#include "models/catalogue.h"
#include "models/guest/hint.h"
#include "models/guest/vm.h"
#include "models/operation.h"
#include "sim/distribution.h"

namespace vcpusim {

namespace {

class LockSection final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    static constexpr std::array<std::string_view, 2> kBodies{"hold", "do"};
    visitor.lock("lock", lock_, "the lock, by its name in guest.locks");
    visitor.exactly_one_of(kBodies);
    visitor.optional_distribution("hold", hold_, "CPU time in the critical section");
    visitor.optional_body("do", body_, "operations inside the critical section");
    visitor.flag("irqs_off", irqs_off_, "interrupts are disabled from the request to the release");
    visitor.flag("hint", hint_, "the section is marked for the host, if that takes hints of sections");
  }

  Co run(Task& self) const override {
    GuestLock& lock = self.vm().lock(lock_, self);
    const Activity before = enter_kernel(self);
    const bool marks = self.vm().hint() != nullptr && hint_;
    if (marks) mark_section(self, HintParams::Mark::kRequest, 1);
    if (irqs_off_) self.disable_interrupts();
    const bool preemptible = lock.algorithm().sleeping();
    if (!preemptible) self.disable_preemption();
    lock.requested(self);
    co_await lock.algorithm().acquire(self);
    const bool contended = self.set_activity(Activity::kHold) == Activity::kSpin;
    lock.acquired(self, contended);
    if (marks) mark_section(self, HintParams::Mark::kOwner, 1);
    if (body_.empty()) {
      co_await self.run(hold_.draw(self.random()));
    } else {
      for (const auto& operation : body_) co_await operation->run(self);
    }
    lock.releasing(self);
    co_await lock.algorithm().release(self);
    lock.released(self);
    if (marks) {
      mark_section(self, HintParams::Mark::kOwner, -1);
      mark_section(self, HintParams::Mark::kRequest, -1);
    }
    leave_kernel(self, before);
    if (!preemptible) self.enable_preemption();
    if (irqs_off_) self.enable_interrupts();
  }

 private:
  std::size_t lock_ = 0;
  Distribution hold_;
  Program body_;
  bool irqs_off_ = false;
  bool hint_ = true;
};

}  // namespace

namespace operations {
OperationKind lock() {
  return {"lock", "critical section under a lock of the guest",
          []() { return std::unique_ptr<Operation>(std::make_unique<LockSection>()); }};
}
}  // namespace operations

}  // namespace vcpusim
