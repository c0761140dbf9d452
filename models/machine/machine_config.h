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

struct MachineCosts {
  Duration local_access{};  // load or plain store that hits the core's own cache
  Duration local_atomic{};  // locked read-modify-write on an owned line, on top of getting the line
  // Share of a transfer that has passed when its snoop reaches the holder of the line. Until then the holder can
  // use the line; and requests that queue up for a busy line have this part behind them when their turn comes.
  double snoop_share = 0.5;
  Duration pause{};     // one turn of a spin loop: a PAUSE, a load that hits, a branch
  LineCosts same_core;  // between SMT siblings
  LineCosts same_socket;
  LineCosts one_hop;   // neighbouring sockets
  LineCosts two_hops;  // sockets without a direct link
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
