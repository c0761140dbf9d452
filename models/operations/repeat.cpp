// Repetition. One pass of a task's outermost repeat body is what the metrics call an operation.
//
// A body that takes no time would be repeated forever at one instant. That cannot be told from the program alone
// (locks cost nothing on some machines, branches are random), so it is found out: the run ends there.
#include "models/catalogue.h"
#include "models/guest/vm.h"
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
    constexpr std::int64_t kMostPassesAtOnce = 1'000'000;
    SimTime began = self.now();
    std::int64_t passes_at_once = 0;
    const bool outermost = self.repeat_depth++ == 0;
    for (std::int64_t pass = 0; pass < count_; ++pass) {
      for (const auto& operation : body_) co_await operation->run(self);
      if (outermost) ++self.operations;
      if (count_ != kForever || self.now() != std::exchange(began, self.now())) {
        passes_at_once = 0;
      } else if (++passes_at_once == kMostPassesAtOnce) {
        self.vm().cannot_go_on(self, "repeats a body forever that takes no time");
        co_await self.block();
      }
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
