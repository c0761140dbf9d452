// What a simulation is made of, as plain data. Whoever fills these structs (a scenario file, a test, a program
// of yours) answers for their ranges; Simulation checks only that what they name exists.
#pragma once

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
  std::vector<LockConfig> locks;
  std::vector<BarrierConfig> barriers;  // filled while programs are read
};

struct TaskConfig {
  std::string name;
  std::int64_t count = 1;
  Program program;
};

struct VmConfig {
  std::string name;
  std::int64_t vcpus = 1;
  bool native = false;  // no hypervisor: vCPU i is pCPU i, nothing is ever stolen
  GuestConfig guest;
  std::vector<TaskConfig> tasks;
};

struct HostConfig {
  MachineConfig machine;
  std::int64_t pcpus = 1;  // the first `pcpus` logical CPUs of the machine are used
};

struct StopConfig {
  std::optional<Duration> at;  // run until this time ...
  Duration at_most{};          // ... or until all workloads are done, at most so long
};

struct SimulationConfig {
  std::string name;
  std::uint64_t seed = 1;
  StopConfig stop;
  Duration warmup{};  // metrics cover what happens after this prefix
  HostConfig host;
  std::vector<VmConfig> vms;
};

}  // namespace vcpusim
