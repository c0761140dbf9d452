// A request to a device: the task blocks, then the device's interrupt makes it runnable and costs its handler.
#include "models/catalogue.h"
#include "models/guest/task.h"
#include "models/guest/vm.h"
#include "models/operation.h"
#include "sim/distribution.h"

namespace vcpusim {

namespace {

class Io final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    visitor.sleeps();
    visitor.distribution("io", service_, "time that the device takes");
  }
  Co run(Task& self) const override {
    co_await self.sleep(service_.draw(self.random()));
    const Activity before = self.set_activity(Activity::kSystem);
    co_await self.run(self.vm().machine().transitions().ipi_handler);
    self.set_activity(before);
  }

 private:
  Distribution service_;
};

}  // namespace

namespace operations {
OperationKind io() {
  return {"io", "block for a device, then handle its interrupt",
          []() { return std::unique_ptr<Operation>(std::make_unique<Io>()); }};
}
}  // namespace operations

}  // namespace vcpusim
