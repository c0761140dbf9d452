// What kinds of locks, host schedulers, assists, operations and machines there are.
//
// Each kind is one function in one file (for a lock: `LockKind ticket()` in models/locks/ticket.cpp) and one name
// in models/CMakeLists.txt, from which the tables here are generated. There are no static initialisers: nothing
// that a linker could drop from a static library, and no start-up order.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "models/config.h"
#include "models/operation.h"
#include "models/params.h"

namespace vcpusim {

class HostScheduler;
class HostView;
class Lock;
struct LockSite;

// What those who use a lock have to know of it.
struct LockTraits {
  bool sleeps = false;         // whoever asks for it, or releases it, may sleep
  bool atomic_section = true;  // nobody may sleep in its sections
  bool rcu_domain = false;     // it has readers (the operation rcu_read)
};

struct LockKind {
  std::string_view name;
  std::string_view summary;
  std::string_view source;                                // where the algorithm and its constants come from
  void (*describe)(ParamVisitor&);                        // visits the parameters, holding their defaults
  std::unique_ptr<Lock> (*make)(const Kind&, LockSite&);  // REQUIRES kind.name == name
  LockTraits (*traits)(const Kind&);                      // the same
};

struct SchedulerKind {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  void (*describe)(ParamVisitor&);
  std::unique_ptr<HostScheduler> (*make)(const Kind&, HostView&);  // REQUIRES kind.name == name
};

struct AssistKind {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  void (*describe)(ParamVisitor&);
};

struct OperationKind {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Operation> (*make)();
};

struct MachineKind {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  MachineConfig (*make)();
};

// Sorted by name.
std::span<const AssistKind> assist_kinds();
std::span<const LockKind> lock_kinds();
std::span<const OperationKind> operation_kinds();
std::span<const MachineKind> machine_kinds();
std::span<const SchedulerKind> scheduler_kinds();

// Null if there is no such kind.
const AssistKind* find_assist_kind(std::string_view name);
const LockKind* find_lock_kind(std::string_view name);
const OperationKind* find_operation_kind(std::string_view name);
const MachineKind* find_machine_kind(std::string_view name);
const SchedulerKind* find_scheduler_kind(std::string_view name);

// Sets the fields that `kind` names; the others keep what they hold. REQUIRES that the values were accepted by a
// visitor of the same description.
void apply_params(const Kind& kind, const std::function<void(ParamVisitor&)>& describe);

}  // namespace vcpusim
