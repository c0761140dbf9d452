#include "models/machine/cache_line.h"

#include <algorithm>

#include "sim/check.h"

namespace vcpusim {

void CacheLine::forget_past_tenures(SimTime now) {
  std::size_t past = 0;
  while (past + 1 < tenures_.size() && tenures_[past].until <= now) ++past;
  if (past > 0) tenures_.erase(tenures_.begin(), tenures_.begin() + static_cast<std::ptrdiff_t>(past));
}

bool CacheLine::shared_by(PcpuId pcpu) const { return std::ranges::find(sharers_, pcpu) != sharers_.end(); }

Distance CacheLine::farthest_sharer(PcpuId from) const {
  Distance farthest = Distance::kSameCpu;
  for (const PcpuId sharer : sharers_) farthest = std::max(farthest, machine_->distance(from, sharer));
  return farthest;
}

Distance CacheLine::nearest_sharer(PcpuId from) const {
  Distance nearest = Distance::kTwoHops;
  for (const PcpuId sharer : sharers_) {
    nearest = std::min(nearest, machine_->distance(from, sharer));
    if (nearest <= Distance::kSameSocket) break;
  }
  return nearest;
}

SimTime CacheLine::own(PcpuId pcpu, Duration access) {
  const SimTime now = machine_->engine().now();
  forget_past_tenures(now);
  for (const Tenure& tenure : tenures_) {
    const SimTime start = std::max(now, tenure.from);
    if (tenure.pcpu == pcpu && start < tenure.until) return start + access;
  }
  SimTime arrives = std::max(now, free_at_);
  if (!sharers_.empty()) {
    arrives = arrival(machine_->store(farthest_sharer(pcpu)), now);
    sharers_.clear();
  } else if (!tenures_.empty()) {
    const Machine::Transfer transfer = machine_->store(machine_->distance(pcpu, tenures_.back().pcpu));
    arrives = arrival(transfer, now);
    tenures_.back().until = arrives - transfer.to_requester;
  }
  ++epoch_;
  tenures_.push_back({pcpu, arrives, kNever});
  free_at_ = arrives + access;
  return free_at_;
}

SimTime CacheLine::load(PcpuId pcpu) {
  const SimTime now = machine_->engine().now();
  forget_past_tenures(now);
  const Duration access = machine_->local_access();
  for (const Tenure& tenure : tenures_) {
    if (tenure.pcpu == pcpu && tenure.from <= now && now < tenure.until) return now + access;
  }
  if (shared_by(pcpu)) return std::max(now, free_at_) + access;
  SimTime arrives = std::max(now, free_at_);
  if (!sharers_.empty()) {
    arrives += machine_->load_shared(nearest_sharer(pcpu));
  } else if (!tenures_.empty()) {
    Tenure& last = tenures_.back();
    const Machine::Transfer transfer = machine_->load(machine_->distance(pcpu, last.pcpu));
    arrives = arrival(transfer, now);
    last.until = arrives - transfer.to_requester;
    sharers_.push_back(last.pcpu);
  }
  sharers_.push_back(pcpu);
  free_at_ = arrives;
  return arrives + access;
}

void CacheLine::read(LineWatcher& watcher, PcpuId pcpu) {
  watcher.read_ends_ = load(pcpu);
  watcher.copy_epoch_ = epoch_;
}

void CacheLine::tell(LineWatcher& watcher) {
  const bool holds = watcher.condition();
  if (holds) {
    watcher.sees_condition(watcher.read_ends_);
  } else if (watcher.promised_) {
    watcher.loses_condition();
  }
  watcher.promised_ = holds;
}

void CacheLine::written() {
  const std::size_t n = watchers_.size();
  if (n == 0) return;
  const SimTime now = machine_->engine().now();
  const std::size_t first = first_polled_ < n ? first_polled_ : 0;
  first_polled_ = first + 1;
  for (std::size_t k = 0; k < n; ++k) {
    LineWatcher& watcher = *watchers_[first + k < n ? first + k : first + k - n];
    const PcpuId pcpu = watcher.polling_pcpu();
    if (pcpu == kNoPcpu) continue;
    // A writer whose vCPU was preempted in the middle writes late: a copy made since its request is stale as well.
    if (watcher.copy_epoch_ != epoch_ || watcher.read_ends_ < now) read(watcher, pcpu);
    tell(watcher);
  }
}

void CacheLine::watch(LineWatcher& watcher) {
  watchers_.push_back(&watcher);
  resume(watcher);
}

void CacheLine::unwatch(LineWatcher& watcher) {
  const auto at = std::ranges::find(watchers_, &watcher);
  SIM_DCHECK(at != watchers_.end(), "not a watcher of this line");
  watchers_.erase(at);
}

void CacheLine::resume(LineWatcher& watcher) {
  watcher.promised_ = false;
  const PcpuId pcpu = watcher.polling_pcpu();
  if (pcpu == kNoPcpu) return;
  read(watcher, pcpu);
  tell(watcher);
}

void CacheLine::queue_atomics_of_watchers() {
  for (const LineWatcher* watcher : watchers_) {
    if (const PcpuId pcpu = watcher->polling_pcpu(); pcpu != kNoPcpu) own(pcpu, machine_->local_atomic());
  }
}

}  // namespace vcpusim
