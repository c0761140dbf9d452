#include "models/machine/machine_config.h"

namespace vcpusim {

void LineCosts::describe(ParamVisitor& visitor) {
  visitor.duration("load", load, kAnyDuration, "read of a line that a core at this distance has modified");
  visitor.duration("load_shared", load_shared, kAnyDuration, "read of a line that is clean at this distance");
  visitor.duration("store", store, kAnyDuration, "exclusive ownership of a line from this distance");
}

void TransitionCosts::describe(ParamVisitor& visitor) {
  visitor.duration("vm_exit", vm_exit, kAnyDuration, "VM exit, trivial handling and entry");
  visitor.duration("context_switch", context_switch, kAnyDuration, "host switch of a pCPU from one vCPU to another");
  visitor.duration("resched_ipi", resched_ipi, kAnyDuration, "from the wish to preempt another pCPU until it decides");
  visitor.duration("idle_wake", idle_wake, kAnyDuration, "from waking an idle pCPU until it decides");
  visitor.duration("refill_same_socket", refill_same_socket, kAnyDuration,
                   "cache refill after a migration in a socket");
  visitor.duration("refill_other_socket", refill_other_socket, kAnyDuration,
                   "cache refill after a migration to another socket");
  visitor.duration("guest_switch", guest_switch, kAnyDuration, "guest switch of a vCPU from one task to another");
  visitor.duration("guest_tick", guest_tick, kAnyDuration, "the guest's clock interrupt handler");
  visitor.duration("ipi_send", ipi_send, kAnyDuration, "sending one IPI, beside the exit that it causes");
  visitor.duration("ipi_handler", ipi_handler, kAnyDuration, "taking an IPI, beside the work that it asks for");
}

void MachineCosts::describe(ParamVisitor& visitor) {
  visitor.duration("local_access", local_access, kAnyDuration, "load or plain store that hits the core's own cache");
  visitor.duration("local_atomic", local_atomic, kAnyDuration, "locked read-modify-write of a line that the core owns");
  visitor.real("snoop_share", snoop_share, {0, 1},
               "share of a line transfer that passes before its snoop reaches the holder");
  visitor.duration("pause", pause, kAnyDuration, "one turn of a spin loop: PAUSE, load, branch");
  visitor.group("same_core", "line transfers between SMT siblings", [this](ParamVisitor& v) { same_core.describe(v); });
  visitor.group("same_socket", "line transfers within a socket", [this](ParamVisitor& v) { same_socket.describe(v); });
  visitor.group("one_hop", "line transfers between linked sockets", [this](ParamVisitor& v) { one_hop.describe(v); });
  visitor.group("two_hops", "line transfers between sockets without a direct link",
                [this](ParamVisitor& v) { two_hops.describe(v); });
  visitor.real("smt_speed", smt_speed, {0.01, 1}, "speed of a thread while a sibling of its core is busy");
  visitor.group("transitions", "switches between guest, hypervisor and host",
                [this](ParamVisitor& v) { transitions.describe(v); });
}

void MachineConfig::describe(ParamVisitor& visitor) {
  visitor.integer("sockets", sockets, {1, 64}, "sockets (NUMA nodes)");
  visitor.integer("cores_per_socket", cores_per_socket, {1, 1024}, "physical cores of a socket");
  visitor.integer("threads_per_core", threads_per_core, {1, 8}, "SMT threads of a core");
  visitor.integer("directly_linked_sockets", directly_linked_sockets, {1, 64},
                  "sockets of a group whose members are one hop apart; other groups are two hops away");
  visitor.integer("clock_khz", clock.kilohertz, {1, 100'000'000}, "clock in kilohertz; converts costs given in cycles");
  visitor.group("costs", "what the hardware charges", [this](ParamVisitor& v) { costs.describe(v); });
}

}  // namespace vcpusim
