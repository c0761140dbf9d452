// A lock of a guest: the algorithm and what has happened to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/locks/lock.h"
#include "sim/stats.h"
#include "sim/time.h"

namespace vcpusim {

class GuestLock {
 public:
  GuestLock(const LockConfig& config, LockSite site);

  const std::string& name() const { return name_; }
  const std::string& kind() const { return kind_; }
  Lock& algorithm() { return *algorithm_; }

  // Called around the algorithm. Mutual exclusion is checked here, always.
  void acquired(const Task& owner, SimTime asked, bool spun);
  void releasing(const Task& owner);

  struct Statistics {
    std::uint64_t acquisitions = 0;
    std::uint64_t contended = 0;  // acquisitions that had to spin
    LatencyHistogram wait;        // from the request to ownership, uncontended ones included
    LatencyHistogram hold;        // from ownership to the unlocking store
    Duration spin{};              // wait of the contended acquisitions
  };
  const Statistics& statistics() const { return statistics_; }
  void reset_statistics() { statistics_ = {}; }

 private:
  std::string name_;
  std::string kind_;
  std::unique_ptr<Lock> algorithm_;
  const Task* owner_ = nullptr;
  SimTime acquired_at_{};
  Statistics statistics_;
};

}  // namespace vcpusim
