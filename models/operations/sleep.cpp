// Sleeping: the task gives up its vCPU for a time that passes whether or not the vCPU runs.
#include "models/catalogue.h"
#include "models/guest/task.h"
#include "models/operation.h"
#include "sim/distribution.h"

namespace vcpusim {

namespace {

class Sleep final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    visitor.sleeps();
    visitor.distribution("sleep", span_, "time until the task can run again");
  }
  Co run(Task& self) const override { co_await self.sleep(span_.draw(self.random())); }

 private:
  Distribution span_;
};

}  // namespace

namespace operations {
OperationKind sleep() {
  return {"sleep", "give up the vCPU for a time",
          []() { return std::unique_ptr<Operation>(std::make_unique<Sleep>()); }};
}
}  // namespace operations

}  // namespace vcpusim
