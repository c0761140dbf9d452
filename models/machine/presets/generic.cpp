// A machine that is nobody's in particular: round numbers between those of the cited presets, for scenarios in which
// the machine does not matter much.
// VM exit 1500 cycles: between those of the cited presets.
#include "models/catalogue.h"
#include "models/machine/presets/transitions.h"

namespace vcpusim::machines {

MachineKind generic() {
  return {"generic", "a plain 2-socket server, 2 x 16 cores, 2.5 GHz", "round numbers between the cited presets", [] {
            MachineConfig m;
            m.name = "generic";
            m.sockets = 2;
            m.cores_per_socket = 16;
            m.threads_per_core = 1;
            m.clock.kilohertz = 2500000;
            using namespace std::chrono_literals;
            const auto cycles = [&](std::int64_t n) { return to_duration(Cycles{n}, m.clock); };
            m.costs.local_access = cycles(1);
            m.costs.local_atomic = cycles(20);
            m.costs.pause = cycles(40);
            m.costs.same_core = {.load = 2ns, .load_shared = 2ns, .store = 2ns};
            m.costs.same_socket = {.load = 50ns, .load_shared = 20ns, .store = 50ns};
            m.costs.one_hop = {.load = 120ns, .load_shared = 90ns, .store = 120ns};
            m.costs.two_hops = {.load = 160ns, .load_shared = 120ns, .store = 160ns};
            m.costs.transitions = typical_transitions(cycles(1500));
            return m;
          }};
}

}  // namespace vcpusim::machines
