// 4-socket Westmere-EX, ten cores a socket, hyper-threading off.
//
// Line costs: David, Guerraoui, Trigonakis, "Everything you always wanted to know about synchronization but were
// afraid to ask", SOSP 2013, measured in cycles on an 8-socket Xeon E7-8867L at 2.13 GHz: a modified line in the
// same socket 109 (load) and 115 (store), one hop 289 and 320, two hops 400 and 431; a clean line 44 in the socket,
// 223 and 334 beyond. Between SMT siblings the line does not leave the L1: 5. Read from the literature, not measured
// by us. The locked operation on an owned line (20) and the spin iteration before Skylake (16, PAUSE being about
// 10 of it) are estimates.
// Clock: an assumption. The published figures for such machines do not name the processor; of the ten-core E7-4850,
// E7-4860 and E7-4870 (2.0, 2.266 and 2.4 GHz) we take the middle one, and the line costs scale with it.
// VM exit 1750 cycles: KVM on a Xeon X5570 (2000, "SplitX", WIOV 2011) less the 250 by which Westmere's hardware is
// faster (Agesen, Mattson, Rugina, Sheldon, ATC 2012).
#include "models/catalogue.h"
#include "models/machine/presets/transitions.h"

namespace vcpusim::machines {

MachineKind westmere_ex_4s() {
  return {"westmere-ex-4s", "4-socket Westmere-EX (Xeon E7), 4 x 10 cores, 2.266 GHz",
          "SOSP 2013 line costs of a Xeon E7-8867L", [] {
            MachineConfig m;
            m.name = "westmere-ex-4s";
            m.sockets = 4;
            m.cores_per_socket = 10;
            m.threads_per_core = 1;
            m.clock.kilohertz = 2266000;
            const auto cycles = [&](std::int64_t n) { return to_duration(Cycles{n}, m.clock); };
            m.costs.local_access = cycles(1);
            m.costs.local_atomic = cycles(20);
            m.costs.pause = cycles(16);
            m.costs.same_core = {.load = cycles(5), .load_shared = cycles(5), .store = cycles(5)};
            m.costs.same_socket = {.load = cycles(109), .load_shared = cycles(44), .store = cycles(115)};
            m.costs.one_hop = {.load = cycles(289), .load_shared = cycles(223), .store = cycles(320)};
            m.costs.two_hops = {.load = cycles(400), .load_shared = cycles(334), .store = cycles(431)};
            m.costs.transitions = typical_transitions(cycles(1750));
            return m;
          }};
}

}  // namespace vcpusim::machines
