#include "models/machine/cache_line.h"

#include <algorithm>

#include "sim/check.h"

namespace vcpusim {

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

std::optional<CacheLine::Served> CacheLine::hit(PcpuId pcpu, SimTime now) const {
  const auto in = [=](const Tenure& tenure) {
    return tenure.pcpu == pcpu && std::max(now, tenure.from) < tenure.until;
  };
  if (in(latest_)) return Served{std::max(now, latest_.from), latest_.epoch};
  for (const Tenure& tenure : earlier_) {
    if (in(tenure)) return Served{std::max(now, tenure.from), tenure.epoch};
  }
  return std::nullopt;
}

SimTime CacheLine::take(Machine::Transfer transfer, SimTime snooped) {
  latest_.until = snooped;
  return latest_.until + transfer.to_requester;
}

void CacheLine::begin_tenure(PcpuId pcpu, SimTime from, SimTime now) {
  if (latest_.until > now && latest_.pcpu != kNoPcpu) {
    std::erase_if(earlier_, [now](const Tenure& tenure) { return tenure.until <= now; });
    earlier_.push_back(latest_);
  }
  latest_ = {pcpu, from, kNever, ++epoch_};
}

SimTime CacheLine::own(PcpuId pcpu, Duration access) {
  const SimTime now = machine_->engine().now();
  if (const std::optional<Served> mine = hit(pcpu, now)) return mine->at + access;
  SimTime arrives = std::max(now, free_at_);
  if (!sharers_.empty()) {
    const Machine::Transfer transfer = machine_->store(farthest_sharer(pcpu));
    arrives += transfer.to_holder + transfer.to_requester;
    sharers_.clear();
  } else if (latest_.pcpu != kNoPcpu) {
    const Machine::Transfer transfer = machine_->store(machine_->distance(pcpu, latest_.pcpu));
    arrives = take(transfer, std::max(now + transfer.to_holder, free_at_));
  }
  begin_tenure(pcpu, arrives, now);
  free_at_ = arrives + access;
  return free_at_;
}

CacheLine::Served CacheLine::read(PcpuId pcpu) {
  const SimTime now = machine_->engine().now();
  const Duration access = machine_->local_access();
  if (const std::optional<Served> mine = hit(pcpu, now)) return {mine->at + access, mine->epoch};
  SimTime arrives = std::max(now, free_at_);
  if (sharers_.empty()) {
    if (latest_.pcpu != kNoPcpu) {
      const Machine::Transfer transfer = machine_->load(machine_->distance(pcpu, latest_.pcpu));
      arrives = take(transfer, arrives + transfer.to_holder);
      sharers_.push_back(latest_.pcpu);
    }
  } else if (shared_by(pcpu)) {
    return {(pcpu == latest_.pcpu ? now : arrives) + access, epoch_};
  } else {
    arrives += machine_->load_shared(nearest_sharer(pcpu));
  }
  sharers_.push_back(pcpu);
  free_at_ = arrives;
  return {arrives + access, epoch_};
}

void CacheLine::read_for(LineWatcher& watcher, PcpuId pcpu) {
  const Served copy = read(pcpu);
  watcher.read_ends_ = copy.at;
  watcher.copy_epoch_ = copy.epoch;
}

void CacheLine::tell(LineWatcher& watcher) {
  const bool holds = watcher.condition();
  if (holds) {
    watcher.sees_condition(std::max(watcher.read_ends_, machine_->engine().now()));
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
    if (watcher.copy_epoch_ != epoch_ || watcher.read_ends_ < now) read_for(watcher, pcpu);
    tell(watcher);
  }
}

void CacheLine::look_again() {
  for (LineWatcher* const watcher : watchers_) {
    if (watcher->polling_pcpu() != kNoPcpu) tell(*watcher);
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
  read_for(watcher, pcpu);
  tell(watcher);
}

void CacheLine::queue_atomics_of_watchers() {
  for (const LineWatcher* watcher : watchers_) {
    if (const PcpuId pcpu = watcher->polling_pcpu(); pcpu != kNoPcpu) own(pcpu, machine_->local_atomic());
  }
}

}  // namespace vcpusim
