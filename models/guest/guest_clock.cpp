#include "models/guest/guest_clock.h"

namespace vcpusim {

void GuestClock::start() {
  if (!exists() || pending_ || engine_.pending(timer_)) return;
  const Duration since = engine_.now() - kTimeZero - offset_;
  const std::int64_t passed = since < Duration::zero() ? -1 : since / period_;
  due_ = kTimeZero + offset_ + (passed + 1) * period_;
  engine_.schedule(timer_, due_);
}

void GuestClock::stop() {
  if (!exists()) return;
  pending_ = false;
  engine_.cancel(timer_);
}

void GuestClock::expire() {
  pending_ = true;
  owner_.tick_is_due();
}

Duration GuestClock::deliver(Statistics& statistics) {
  const Duration late = engine_.now() - due_;
  const std::int64_t lost = late / period_;
  ++statistics.delivered;
  statistics.coalesced += static_cast<std::uint64_t>(lost);
  statistics.jitter.record(late);
  pending_ = false;
  due_ += (lost + 1) * period_;
  engine_.schedule(timer_, due_);
  return late;
}

}  // namespace vcpusim
