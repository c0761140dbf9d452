// What transitions cost on the real machines, as far as is known: only the VM exit differs between the presets.
//
// Source      exit: see each preset. Host switch between VMs about 4800 cycles, 2 us (Dall et al., "ARM virtualization:
//             performance and architectural implications", ISCA 2016, on a Xeon E5-2450). All others are estimates:
//             reschedule IPI 1 to 2 us; wake-up of a shallow idle pCPU until guest code runs 5 us (of which the
//             switch is 2); refill of caches after a migration 10 to 50 us; guest switch 1 to 2 us; clock handler
//             2 us. IPIs: about 5200 cycles sent and received (ISCA 2016), of which the exits are charged apart.
// Change for  a host with deep idle states (idle_wake 50 to 100 us), mitigations that flush on entry (vm_exit)
#pragma once

#include "models/machine/machine_config.h"

namespace vcpusim::machines {

inline TransitionCosts typical_transitions(Duration vm_exit) {
  using namespace std::chrono_literals;
  return {
      .vm_exit = vm_exit,
      .context_switch = 2us,
      .resched_ipi = 1500ns,
      .idle_wake = 3us,
      .refill_same_socket = 10us,
      .refill_other_socket = 30us,
      .guest_switch = 1500ns,
      .guest_tick = 2us,
      .ipi_send = 200ns,
      .ipi_handler = 500ns,
  };
}

// Speed of each of two busy threads of a core: together 1.24 of one, in the usual range of 1.2 to 1.3; an estimate.
inline constexpr double kTypicalSmtSpeed = 0.62;

}  // namespace vcpusim::machines
