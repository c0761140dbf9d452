// A meeting point: tasks block until every task of the VM whose program mentions it has arrived.
#include "models/catalogue.h"
#include "models/guest/vm.h"
#include "models/operation.h"

namespace vcpusim {

namespace {

class Barrier final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    visitor.sleeps();
    visitor.barrier("barrier", barrier_, "name of the meeting point, of your choice");
  }
  Co run(Task& self) const override {
    if (!self.vm().barrier(barrier_).arrive(self)) co_await self.block();
  }

 private:
  std::size_t barrier_ = 0;
};

}  // namespace

namespace operations {
OperationKind barrier() {
  return {"barrier", "block until all tasks that use the barrier have arrived",
          []() { return std::unique_ptr<Operation>(std::make_unique<Barrier>()); }};
}
}  // namespace operations

}  // namespace vcpusim
