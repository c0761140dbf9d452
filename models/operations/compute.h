// What `user` and `kernel` share: computing for a drawn time, accounted to one activity.
#pragma once

#include "models/guest/hint.h"
#include "models/guest/task.h"
#include "models/operation.h"
#include "sim/distribution.h"

namespace vcpusim {

class Compute : public Operation {
 public:
  Compute(std::string_view key, Activity activity, std::string_view help)
      : key_(key), activity_(activity), help_(help) {}

  void describe(OperationVisitor& visitor) final { visitor.distribution(key_, span_, help_); }

  Co run(Task& self) const final {
    if (activity_ == Activity::kUser) {
      const Activity before = self.set_activity(Activity::kUser);
      return self.run(span_.draw(self.random()), [&self, before] { self.set_activity(before); });
    }
    const Activity before = enter_kernel(self);
    return self.run(span_.draw(self.random()), [&self, before] { leave_kernel(self, before); });
  }

 private:
  std::string_view key_;
  Activity activity_;
  std::string_view help_;
  Distribution span_;
};

}  // namespace vcpusim
