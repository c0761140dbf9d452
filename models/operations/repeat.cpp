// Repetition. One pass of a task's outermost repeat body is what the metrics call an operation.
#include "models/catalogue.h"
#include "models/guest/task.h"
#include "models/operation.h"

namespace vcpusim {

namespace {

class Repeat final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    visitor.repetitions("repeat", count_, "how often, or \"forever\": until the simulation stops");
    visitor.body("do", body_, "operations of one pass");
  }

  Co run(Task& self) const override {
    const bool outermost = self.repeat_depth++ == 0;
    for (std::int64_t pass = 0; pass < count_; ++pass) {
      for (const auto& operation : body_) co_await operation->run(self);
      if (outermost) ++self.operations;
    }
    --self.repeat_depth;
  }

 private:
  std::int64_t count_ = 1;
  Program body_;
};

}  // namespace

namespace operations {
OperationKind repeat() {
  return {"repeat", "run a body a number of times, or forever",
          []() { return std::unique_ptr<Operation>(std::make_unique<Repeat>()); }};
}
}  // namespace operations

}  // namespace vcpusim
