// 2-socket Xeon E5-2620 (Sandy Bridge-EP), six cores a socket, 2.0 GHz, hyper-threading off.
//
// Line costs: no published table was read for this part. Those of Haswell-EP (ICPP 2015) are used, whose ring and
// inclusive L3 are of the same design: a guess. Locked operation and spin iteration: estimates.
// VM exit 1300 cycles: null hypercall of KVM on a Xeon E5-2450 (Dall et al., ISCA 2016).
#include "models/catalogue.h"
#include "models/machine/presets/transitions.h"

namespace vcpusim::machines {

MachineKind sandy_bridge_e5_2620() {
  return {"sandy-bridge-e5-2620", "2-socket Xeon E5-2620 (Sandy Bridge-EP), 2 x 6 cores, 2.0 GHz",
          "line costs of Haswell-EP as a stand-in", [] {
            MachineConfig m;
            m.name = "sandy-bridge-e5-2620";
            m.sockets = 2;
            m.cores_per_socket = 6;
            m.threads_per_core = 1;
            m.clock.kilohertz = 2000000;
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
