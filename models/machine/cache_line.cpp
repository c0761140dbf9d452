#include "models/machine/cache_line.h"

#include <algorithm>

#include "sim/check.h"

namespace vcpusim {

inline bool CacheLine::shared_by(PcpuId pcpu) const { return std::ranges::find(sharers_, pcpu) != sharers_.end(); }

inline Distance CacheLine::farthest_sharer(PcpuId from) const {
  Distance farthest = Distance::kSameCpu;
  for (const PcpuId sharer : sharers_) {
    farthest = std::max(farthest, machine_->distance(from, sharer));
    if (farthest == machine_->diameter()) break;
  }
  return farthest;
}

inline Distance CacheLine::nearest_sharer(PcpuId from) const {
  if (machine_->uniform()) return machine_->diameter();
  Distance nearest = Distance::kTwoHops;
  for (const PcpuId sharer : sharers_) {
    nearest = std::min(nearest, machine_->distance(from, sharer));
    if (nearest <= Distance::kSameSocket) break;
  }
  return nearest;
}

inline const CacheLine::Tenure* CacheLine::tenure_of(PcpuId pcpu, SimTime now) const {
  if (latest_.serves(pcpu, now)) return &latest_;
  for (const Tenure& tenure : earlier_) {
    if (tenure.serves(pcpu, now)) return &tenure;
  }
  return nullptr;
}

inline SimTime CacheLine::take(Machine::Transfer transfer, SimTime snooped) {
  latest_.until = snooped;
  return latest_.until + transfer.to_requester;
}

inline void CacheLine::begin_tenure(PcpuId pcpu, SimTime from, SimTime now) {
  if (!earlier_.empty()) std::erase_if(earlier_, [now](const Tenure& tenure) { return tenure.until <= now; });
  if (latest_.until > now && latest_.pcpu != kNoPcpu) earlier_.push_back(latest_);
  latest_ = {pcpu, from, kNever, ++epoch_};
}

SimTime CacheLine::own(PcpuId pcpu, Duration access) {
  const SimTime now = machine_->engine().now();
  if (const Tenure* const mine = tenure_of(pcpu, now)) return mine->start(now) + access;
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
  if (const Tenure* const mine = tenure_of(pcpu, now)) return {mine->start(now) + access, mine->epoch};
  if (shared_by(pcpu)) return {(pcpu == latest_.pcpu ? now : std::max(now, free_at_)) + access, epoch_};
  return fetch(pcpu, now);
}

// Queues the read of a core that has no copy.
[[gnu::always_inline]] inline CacheLine::Served CacheLine::fetch(PcpuId pcpu, SimTime now) {
  SimTime arrives = std::max(now, free_at_);
  if (!sharers_.empty()) [[likely]] {
    arrives += machine_->load_shared(nearest_sharer(pcpu));
  } else if (latest_.pcpu != kNoPcpu) {
    const Machine::Transfer transfer = machine_->load(machine_->distance(pcpu, latest_.pcpu));
    arrives = take(transfer, arrives + transfer.to_holder);
    sharers_.push_back(latest_.pcpu);
  }
  sharers_.push_back(pcpu);
  free_at_ = arrives;
  return {arrives + machine_->local_access(), epoch_};
}

inline void CacheLine::tell(Watching& w) {
  const bool holds = w.watcher->condition();
  if (!holds && !w.promised) [[likely]]
    return;
  if (holds) {
    w.watcher->sees_condition(w.copy.at);
  } else {
    w.watcher->loses_condition();
  }
  w.promised = holds;
}

void CacheLine::tell_watchers() {
  const SimTime now = machine_->engine().now();
  const std::size_t n = watchers_.size();
  std::size_t i = first_polled_ < n ? first_polled_ : 0;
  first_polled_ = i + 1;
  for (std::size_t told = 0; told < n; ++told) {
    Watching& w = watchers_[i];
    if (++i == n) i = 0;
    if (w.pcpu == kNoPcpu) continue;
    if (w.copy.epoch != epoch_) w.copy = fetch(w.pcpu, now);
    tell(w);
  }
}

void CacheLine::look_again() {
  for (Watching& w : watchers_) {
    if (w.pcpu != kNoPcpu) tell(w);
  }
}

inline void CacheLine::begin_polling(Watching& w, PcpuId pcpu) {
  w.pcpu = pcpu;
  w.copy = read(pcpu);
  w.promised = false;
  tell(w);
}

inline CacheLine::Watching& CacheLine::find(const LineWatcher& watcher) {
  const auto at = std::ranges::find(watchers_, &watcher, &Watching::watcher);
  SIM_DCHECK(at != watchers_.end(), "not a watcher of this line");
  return *at;
}

void CacheLine::watch(LineWatcher& watcher, PcpuId pcpu) {
  watchers_.push_back({&watcher, kNoPcpu, {}, false});
  begin_polling(watchers_.back(), pcpu);
}

void CacheLine::unwatch(LineWatcher& watcher) {
  watchers_.erase(watchers_.begin() + (&find(watcher) - watchers_.data()));
}

void CacheLine::pause(LineWatcher& watcher) { find(watcher).pcpu = kNoPcpu; }
void CacheLine::resume(LineWatcher& watcher, PcpuId pcpu) { begin_polling(find(watcher), pcpu); }

void CacheLine::queue_atomics_of_watchers() {
  for (const Watching& w : watchers_) {
    if (w.pcpu != kNoPcpu) own(w.pcpu, machine_->local_atomic());
  }
}

}  // namespace vcpusim
