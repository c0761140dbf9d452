// Computing in kernel mode, without a lock.
#include "models/catalogue.h"
#include "models/operations/compute.h"

namespace vcpusim::operations {

OperationKind kernel() {
  return {"kernel", "compute in kernel mode, no lock held", []() {
            return std::unique_ptr<Operation>(
                std::make_unique<Compute>("kernel", Activity::kSystem, "CPU time in kernel mode"));
          }};
}

}  // namespace vcpusim::operations
