// 4-socket Haswell-EX, eight cores a socket in use, as in the kick-ahead measurements of July 2015.
//
// Line costs: Molka, Hackenberg, Schoene, Nagel, "Cache coherence protocol and memory performance of the Intel
// Haswell-EP architecture", ICPP 2015 (approximate, quoted from the literature): L3 about 21 ns, modified in another
// core about 50 ns, other socket 86 ns clean and 110 ns modified. Stores are taken to cost as much as loads.
// Locked operation 20 cycles, spin iteration 16 cycles: estimates, as for all processors before Skylake.
// VM exit 1300 cycles: null hypercall of KVM on a Xeon E5-2450 (Dall et al., ISCA 2016).
#include "models/catalogue.h"
#include "models/machine/presets/transitions.h"

namespace vcpusim::machines {

MachineKind haswell_ex_4s() {
  return {"haswell-ex-4s", "4-socket Haswell-EX, 4 x 8 cores in use, 2.5 GHz",
          "ICPP 2015 line costs of Haswell-EP (approximate)", [] {
            MachineConfig m;
            m.name = "haswell-ex-4s";
            m.sockets = 4;
            m.cores_per_socket = 8;
            m.threads_per_core = 1;
            m.clock.kilohertz = 2500000;
            using namespace std::chrono_literals;
            const auto cycles = [&](std::int64_t n) { return to_duration(Cycles{n}, m.clock); };
            m.costs.local_access = cycles(1);
            m.costs.local_atomic = cycles(20);
            m.costs.pause = cycles(16);
            m.costs.same_core = {.load = 2ns, .load_shared = 2ns, .store = 2ns};
            m.costs.same_socket = {.load = 50ns, .load_shared = 21ns, .store = 50ns};
            m.costs.one_hop = {.load = 110ns, .load_shared = 86ns, .store = 110ns};
            m.costs.two_hops = {.load = 150ns, .load_shared = 116ns, .store = 150ns};
            m.costs.transitions = typical_transitions(cycles(1300));
            return m;
          }};
}

}  // namespace vcpusim::machines
