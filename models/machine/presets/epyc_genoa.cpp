// One EPYC (Genoa) socket. What the other presets call a socket is here a core complex with an L3 of its own: twelve of
// eight cores with two threads each, all one hop apart through the I/O die.
//
// Same complex 25 ns (middle of 20-30), other complex 105 ns (middle of 90-120): common measurements, unverified. PAUSE
// of Zen about 50 cycles (40-65), unverified. Locked operation 20 cycles: an estimate.
// VM exit 1360 cycles: VMRUN to exit on AMD processors of 2020 (published measurements).
#include "models/catalogue.h"
#include "models/machine/presets/transitions.h"

namespace vcpusim::machines {

MachineKind epyc_genoa() {
  return {"epyc-genoa", "1-socket EPYC Genoa: 12 core complexes x 8 cores x 2 threads, 2.4 GHz",
          "published L3 latency; transfer costs unverified", [] {
            MachineConfig m;
            m.name = "epyc-genoa";
            m.sockets = 12;
            m.cores_per_socket = 8;
            m.threads_per_core = 2;
            m.directly_linked_sockets = 12;
            m.clock.kilohertz = 2400000;
            using namespace std::chrono_literals;
            const auto cycles = [&](std::int64_t n) { return to_duration(Cycles{n}, m.clock); };
            m.costs.local_access = cycles(1);
            m.costs.local_atomic = cycles(20);
            m.costs.pause = cycles(55);
            m.costs.same_core = {.load = 2ns, .load_shared = 2ns, .store = 2ns};
            m.costs.same_socket = {.load = 25ns, .load_shared = 14ns, .store = 25ns};
            m.costs.one_hop = {.load = 105ns, .load_shared = 90ns, .store = 105ns};
            m.costs.two_hops = {.load = 105ns, .load_shared = 90ns, .store = 105ns};
            m.costs.smt_speed = kTypicalSmtSpeed;
            m.costs.transitions = typical_transitions(cycles(1360));
            return m;
          }};
}

}  // namespace vcpusim::machines
