// 4-socket Xeon L7555 (Nehalem-EX), eight cores of two threads each: the 64 CPUs of the posix-timers report.
//
// Line costs: those of Westmere-EX in cycles (SOSP 2013), the shrink of the same uncore: a guess for this part.
// Locked operation and spin iteration: estimates.
// VM exit 2000 cycles: KVM on a Xeon X5570 (Landau, Ben-Yehuda, Gordon, "SplitX", WIOV 2011).
#include "models/catalogue.h"
#include "models/machine/presets/transitions.h"

namespace vcpusim::machines {

MachineKind nehalem_ex_l7555_4s() {
  return {"nehalem-ex-l7555-4s", "4-socket Nehalem-EX (Xeon L7555), 4 x 8 cores x 2 threads, 1.87 GHz",
          "SOSP 2013 line costs of the closely related Westmere-EX", [] {
            MachineConfig m;
            m.name = "nehalem-ex-l7555-4s";
            m.sockets = 4;
            m.cores_per_socket = 8;
            m.threads_per_core = 2;
            m.clock.kilohertz = 1870000;
            const auto cycles = [&](std::int64_t n) { return to_duration(Cycles{n}, m.clock); };
            m.costs.local_access = cycles(1);
            m.costs.local_atomic = cycles(20);
            m.costs.pause = cycles(16);
            m.costs.same_core = {.load = cycles(5), .load_shared = cycles(5), .store = cycles(5)};
            m.costs.same_socket = {.load = cycles(109), .load_shared = cycles(44), .store = cycles(115)};
            m.costs.one_hop = {.load = cycles(289), .load_shared = cycles(223), .store = cycles(320)};
            m.costs.two_hops = {.load = cycles(400), .load_shared = cycles(334), .store = cycles(431)};
            m.costs.smt_speed = kTypicalSmtSpeed;
            m.costs.transitions = typical_transitions(cycles(2000));
            return m;
          }};
}

}  // namespace vcpusim::machines
