#include "models/host/quota.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vcpusim {

namespace {
constexpr Duration kKeptOnIdle = std::chrono::milliseconds(1);  // kernel/sched/fair.c: min_cfs_rq_runtime
}

Quota::Quota(const QuotaConfig& config, std::uint32_t pcpus, Engine& engine, std::function<void(VcpuIndex)> release)
    : config_(config),
      quota_(std::llround(config.cpus * static_cast<double>(config.period.count()))),
      engine_(engine),
      timer_(engine.add_timer<&Quota::refill>(*this)),
      release_(std::move(release)),
      pool_(quota_),
      local_(pcpus) {
  engine_.schedule(timer_, engine_.now() + config_.period);
}

Duration Quota::available(PcpuId pcpu) {
  Duration& local = local_[index_of(pcpu)];
  if (local <= Duration::zero()) {
    const Duration taken = std::min(pool_, config_.slice - local);
    pool_ -= taken;
    local += taken;
  }
  return std::max(local, Duration::zero());
}

void Quota::give_back(PcpuId pcpu) {
  Duration& local = local_[index_of(pcpu)];
  if (local <= kKeptOnIdle) return;
  pool_ += local - kKeptOnIdle;
  local = kKeptOnIdle;
}

void Quota::refill() {
  pool_ = quota_;
  engine_.schedule(timer_, engine_.now() + config_.period);
  std::vector<VcpuIndex> released = std::exchange(waiters_, {});
  released.insert(released.end(), spenders_.begin(), spenders_.end());
  spenders_.clear();
  for (const VcpuIndex vcpu : released) release_(vcpu);
}

}  // namespace vcpusim
