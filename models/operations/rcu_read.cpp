// An RCU read-side section: it costs nothing and never waits, but no grace period ends inside of it.
//
// With CONFIG_PREEMPT=n its two ends are directives to the compiler. What it must not contain is a sleep or user time.
#include <array>

#include "models/catalogue.h"
#include "models/guest/hint.h"
#include "models/guest/vm.h"
#include "models/operation.h"
#include "sim/check.h"
#include "sim/distribution.h"

namespace vcpusim {

namespace {

class RcuRead final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    static constexpr std::array<std::string_view, 2> kBodies{"hold", "do"};
    visitor.rcu_domain("rcu_read", domain_, "a lock of kind rcu, by its name in guest.locks");
    visitor.exactly_one_of(kBodies);
    visitor.optional_distribution("hold", hold_, "CPU time in the section");
    visitor.optional_body("do", body_, "operations inside the section");
  }

  Co run(Task& self) const override {
    GuestLock& lock = self.vm().lock(domain_, self);
    RcuDomain* const domain = lock.algorithm().rcu();
    SIM_CHECK(domain != nullptr, "rcu_read of lock \"" + lock.name() + "\", whose kind is not rcu");
    ++domain->statistics.reads;
    const Activity before = enter_kernel(self);
    self.disable_preemption();
    if (body_.empty()) {
      co_await self.run(hold_.draw(self.random()));
    } else {
      for (const auto& operation : body_) co_await operation->run(self);
    }
    self.enable_preemption();
    leave_kernel(self, before);
  }

 private:
  std::size_t domain_ = 0;
  Distribution hold_;
  Program body_;
};

}  // namespace

namespace operations {
OperationKind rcu_read() {
  return {"rcu_read", "read-side section of RCU: never waits",
          []() { return std::unique_ptr<Operation>(std::make_unique<RcuRead>()); }};
}
}  // namespace operations

}  // namespace vcpusim
