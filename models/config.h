// What a simulation is made of, as plain data. Whoever fills these structs (a scenario file, a test, a program
// of yours) answers for their ranges; Simulation checks only that what they name exists.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/machine/machine_config.h"
#include "models/params.h"
#include "sim/time.h"

namespace vcpusim {

// A kind from a catalogue with the parameters that differ from its defaults, by dotted key.
using ParamValue = std::variant<bool, std::int64_t, double, Duration, Cycles, std::string>;
struct Kind {
  std::string name;
  std::map<std::string, ParamValue> params;
};

struct LockConfig {
  std::string name;
  Kind kind;
};

struct BarrierConfig {
  std::string name;
  std::int64_t parties = 0;  // tasks whose program mentions it: each arrival of so many opens it once
};

struct GuestConfig {
  // The guest's clock interrupt on each vCPU. Zero: it has none.
  Duration tick{};
  bool tickless_idle = true;  // no tick while a vCPU is idle (NO_HZ); an embedded guest's clock ticks on
  Duration timeslice = std::chrono::milliseconds(4);  // of a task when others wait for its vCPU
  std::vector<LockConfig> locks;
  std::vector<BarrierConfig> barriers;  // filled while programs are read
};

struct TaskConfig {
  std::string name;
  std::int64_t count = 1;
  Program program;
};

// Which pCPUs each vCPU may run on.
struct AffinityConfig {
  enum class Rule { kAny, kOneToOne, kLists };
  Rule rule = Rule::kAny;
  std::vector<std::vector<std::int64_t>> lists;  // kLists: pCPU numbers of each vCPU
};

// A hard limit on the CPU time of a VM (CFS bandwidth): `cpus` pCPUs' worth in each period.
struct QuotaConfig {
  double cpus = 0;  // 0: no limit
  Duration period = std::chrono::milliseconds(100);
  Duration slice = std::chrono::milliseconds(5);  // what a pCPU takes from the VM's pool at a time
};

struct VmConfig {
  std::string name;
  std::int64_t vcpus = 1;
  std::int64_t copies = 1;  // more than one: NAME-0, NAME-1, ... all alike
  bool native = false;      // no hypervisor: each vCPU is a pCPU of its own, nothing is ever stolen
  AffinityConfig affinity;
  std::int64_t weight = 1024;  // of each vCPU in the host's scheduler; 1024 is nice 0
  QuotaConfig quota;
  double cap = 0;  // limit of the scheduler's own, for those that have one (credit): pCPUs' worth; 0: none
  GuestConfig guest;
  std::vector<TaskConfig> tasks;
};

struct HostConfig {
  MachineConfig machine;
  std::int64_t pcpus = 1;  // the first `pcpus` logical CPUs of the machine are used
  Kind scheduler{"eevdf", {}};
  std::map<std::string, Kind> assists;  // those that are on, by name
};

struct StopConfig {
  std::optional<Duration> at;  // run until this time ...
  Duration at_most{};          // ... or until all workloads are done, at most so long
};

struct SimulationConfig {
  std::string name;
  std::uint64_t seed = 1;
  StopConfig stop;
  // Tasks of different VMs are first queued in random order. In the order of the scenario, the vCPUs of a VM would get
  // their first turns together, and go on so: guests would be scheduled like gangs.
  bool random_start = true;
  Duration warmup{};  // metrics cover what happens after this prefix
  HostConfig host;
  std::vector<VmConfig> vms;
};

}  // namespace vcpusim
