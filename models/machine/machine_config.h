// A machine as data: topology, clock and the cost of each hardware action that the models charge.
//
// Every cost is a named field, so that a scenario can override it and say so. Presets (one file each in
// models/machine/presets) cite where their numbers come from.
#pragma once

#include <cstdint>
#include <string>

#include "models/params.h"
#include "sim/time.h"

namespace vcpusim {

// How long a cache line takes to reach a pCPU over one distance, on an otherwise idle line.
struct LineCosts {
  Duration load{};         // read of a line that another core has modified
  Duration load_shared{};  // read of a line that is clean in a cache at that distance
  Duration store{};        // exclusive ownership, taken from a core (or from sharers) at that distance
  void describe(ParamVisitor& visitor);
};

// What the transitions between guest, hypervisor and host cost. All zero on the ideal machine.
struct TransitionCosts {
  Duration vm_exit{};              // a VM exit, its trivial handling and the entry that follows
  Duration context_switch{};       // the host switches a pCPU from one vCPU to another, state load included
  Duration resched_ipi{};          // from the wish to preempt another pCPU until it decides anew
  Duration idle_wake{};            // from waking an idle pCPU until it decides
  Duration refill_same_socket{};   // refilling the caches, once, after a migration within the socket ...
  Duration refill_other_socket{};  // ... and to another one
  Duration guest_switch{};         // the guest switches a vCPU from one task to another
  Duration guest_tick{};           // the guest's clock interrupt handler
  Duration ipi_send{};             // sending one IPI, beside the exit that it causes
  Duration ipi_handler{};          // taking an IPI, beside the work that it asks for
  void describe(ParamVisitor& visitor);
};

struct MachineCosts {
  Duration local_access{};  // load or plain store that hits the core's own cache
  Duration local_atomic{};  // locked read-modify-write on an owned line, on top of getting the line
  // Share of a transfer that has passed when its snoop reaches the holder of the line. Until then the holder can
  // use the line; and requests that queue up for a busy line have this part behind them when their turn comes.
  double snoop_share = 0.5;
  Duration pause{};     // one turn of a spin loop: a PAUSE, a load that hits, a branch
  LineCosts same_core;  // between SMT siblings
  LineCosts same_socket;
  LineCosts one_hop;     // neighbouring sockets
  LineCosts two_hops;    // sockets without a direct link
  double smt_speed = 1;  // speed of a thread while a sibling of its core is busy; alone it runs at 1
  TransitionCosts transitions;
  void describe(ParamVisitor& visitor);
};

struct MachineConfig {
  std::string name;
  std::int64_t sockets = 1;
  std::int64_t cores_per_socket = 1;
  std::int64_t threads_per_core = 1;
  // Sockets [0, k), [k, 2k), ... are linked directly among themselves: one hop; all others are two hops away.
  std::int64_t directly_linked_sockets = 8;
  Frequency clock;
  MachineCosts costs;
  void describe(ParamVisitor& visitor);

  std::int64_t logical_cpus() const { return sockets * cores_per_socket * threads_per_core; }
};

}  // namespace vcpusim
