// Xeon X3450: the single-socket Nehalem (Lynnfield), four cores with two threads each.
//
// Line costs: Molka, Hackenberg, Schoene, Mueller, "Memory performance and cache coherency effects on an Intel
// Nehalem multiprocessor system", PACT 2009, on a Xeon X5570 at 2.93 GHz: L3 38 cycles, modified in a sibling's cache
// 83 cycles, other socket about 60 ns clean and 105 ns modified. Stores are taken to cost as much as loads. Locked
// operation 20 cycles, spin iteration 16 cycles: estimates.
// VM exit 2000 cycles: KVM on a Xeon X5570 (Landau, Ben-Yehuda, Gordon, "SplitX", WIOV 2011).
#include "models/catalogue.h"
#include "models/machine/presets/transitions.h"

namespace vcpusim::machines {

MachineKind lynnfield_x3450() {
  return {"lynnfield-x3450", "Xeon X3450 (Lynnfield), 4 cores x 2 threads, 2.67 GHz", "PACT 2009 line costs of Nehalem",
          [] {
            MachineConfig m;
            m.name = "lynnfield-x3450";
            m.sockets = 1;
            m.cores_per_socket = 4;
            m.threads_per_core = 2;
            m.clock.kilohertz = 2670000;
            const auto cycles = [&](std::int64_t n) { return to_duration(Cycles{n}, m.clock); };
            m.costs.local_access = cycles(1);
            m.costs.local_atomic = cycles(20);
            m.costs.pause = cycles(16);
            m.costs.same_core = {.load = cycles(4), .load_shared = cycles(4), .store = cycles(4)};
            m.costs.same_socket = {.load = cycles(83), .load_shared = cycles(38), .store = cycles(83)};
            m.costs.one_hop = {.load = cycles(308), .load_shared = cycles(176), .store = cycles(308)};
            m.costs.two_hops = {.load = cycles(308), .load_shared = cycles(176), .store = cycles(308)};
            m.costs.smt_speed = kTypicalSmtSpeed;
            m.costs.transitions = typical_transitions(cycles(2000));
            return m;
          }};
}

}  // namespace vcpusim::machines
