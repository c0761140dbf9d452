// Computing in user mode.
#include "models/catalogue.h"
#include "models/operations/compute.h"

namespace vcpusim::operations {

OperationKind user() {
  return {
      "user", "compute in user mode", []() {
        return std::unique_ptr<Operation>(std::make_unique<Compute>("user", Activity::kUser, "CPU time in user mode"));
      }};
}

}  // namespace vcpusim::operations
