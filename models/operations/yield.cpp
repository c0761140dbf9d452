// Giving way to the other tasks of the vCPU, as sched_yield does.
#include "models/catalogue.h"
#include "models/guest/task.h"
#include "models/operation.h"

namespace vcpusim {

namespace {

class Yield final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    visitor.integer("yield", times_, {1, 1'000'000}, "how often in a row");
  }
  Co run(Task& self) const override {
    for (std::int64_t i = 0; i < times_; ++i) co_await self.yield();
  }

 private:
  std::int64_t times_ = 1;
};

}  // namespace

namespace operations {
OperationKind yield() {
  return {"yield", "let the other tasks of the vCPU run",
          []() { return std::unique_ptr<Operation>(std::make_unique<Yield>()); }};
}
}  // namespace operations

}  // namespace vcpusim
