// The guest's periodic clock interrupt on one vCPU.
//
// Source      arch/x86/kvm/lapic.c, Linux 5.x to 6.x (apic_timer_expired): one expiry can be pending; further ones
//             are lost (coalesced) until it has been delivered
// Models      expiries on a fixed grid of host time; delivery when the vCPU executes with interrupts enabled; jitter
//             as the distance between the handler and the expiry that it is for
// Leaves out  TSC-deadline guests, which rearm in the handler and so lose no tick
#pragma once

#include <cstdint>

#include "sim/engine.h"
#include "sim/stats.h"
#include "sim/time.h"

namespace vcpusim {

class GuestClock {
 public:
  class Owner {
   public:
    virtual void tick_is_due() = 0;

   protected:
    ~Owner() = default;
  };

  // Of all clocks of a guest: a histogram for each vCPU would fill the cache.
  struct Statistics {
    std::uint64_t delivered = 0;
    std::uint64_t coalesced = 0;
    LatencyHistogram jitter;

    void add(const Statistics& other) {
      delivered += other.delivered;
      coalesced += other.coalesced;
      jitter.merge(other.jitter);
    }
  };

  // `period` zero: there is no clock. The expiries are at `offset` plus multiples of the period.
  GuestClock(Duration period, Duration offset, Engine& engine, Owner& owner)
      : period_(period),
        offset_(offset),
        engine_(engine),
        timer_(period > Duration::zero() ? engine.add_timer<&GuestClock::expire>(*this) : Engine::TimerId{}),
        owner_(owner) {}

  bool exists() const { return period_ > Duration::zero(); }
  Duration period() const { return period_; }

  // Starts (again) with the next expiry of the grid; does nothing if it runs.
  void start();
  void stop();
  bool pending() const { return pending_; }
  // The handler of the pending expiry begins now; those that have passed in the meantime are lost. Returns how late
  // it is.
  Duration deliver(Statistics& statistics);

 private:
  void expire();

  Duration period_;
  Duration offset_;
  Engine& engine_;
  Engine::TimerId timer_;
  Owner& owner_;
  bool pending_ = false;
  SimTime due_ = kNever;
};

}  // namespace vcpusim
