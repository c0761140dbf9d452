// A random choice between bodies, each with a weight.

#include "models/catalogue.h"
#include "models/guest/task.h"
#include "models/operation.h"

namespace vcpusim {

namespace {

class Choose final : public Operation {
 public:
  void describe(OperationVisitor& visitor) override {
    visitor.branches("choose", branches_, "branches, each {\"weight\": w, \"do\": [...]}");
  }

  Co run(Task& self) const override {
    for (const auto& operation : draw(self.random()).body) co_await operation->run(self);
  }

 private:
  const Branch& draw(RandomStream& random) const {
    std::int64_t total = 0;
    for (const Branch& branch : branches_) total += branch.weight;
    auto ticket = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(total)));
    std::size_t i = 0;
    while (ticket >= branches_[i].weight) ticket -= branches_[i++].weight;
    return branches_[i];
  }

  std::vector<Branch> branches_;
};

}  // namespace

namespace operations {
OperationKind choose() {
  return {"choose", "run one of several bodies, drawn by weight",
          []() { return std::unique_ptr<Operation>(std::make_unique<Choose>()); }};
}
}  // namespace operations

}  // namespace vcpusim
