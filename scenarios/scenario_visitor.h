// The vocabulary in which the structure of a scenario is described: once, for all who need it.
//
// models/params.h has the words for parameters and for operations; a scenario file has some structure around
// them. describe(Scenario&, ScenarioVisitor&) in structure.cpp says all of it, and the reader, the printer of the
// resolved scenario and the writer of the JSON Schema are visitors of that one description.
//
// Presence: a key is optional and keeps its default, unless required() or one of its siblings says otherwise.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/config.h"
#include "models/params.h"
#include "scenarios/json_document.h"

namespace vcpusim {

// The kinds of one family of the catalogue, as far as scenarios need to know them.
struct KindFamily {
  struct Entry {
    std::string_view name;
    std::string_view summary;
    std::function<void(ParamVisitor&)> describe;
  };
  std::string_view noun;  // "lock"
  std::vector<Entry> entries;

  const Entry* find(std::string_view name) const;
  std::vector<std::string> names() const;
};
KindFamily lock_family();
KindFamily scheduler_family();
KindFamily assist_family();

// A value that `vary` gives in turn to what `path` names, or that a point of the cross product has.
struct Axis {
  std::string path;
  std::vector<Json> values;
};
struct Coordinate {
  std::string path;
  Json value;
};
using Point = std::vector<Coordinate>;

struct ListRule {
  std::size_t most;    // items
  bool named = false;  // items have a key "name", unique in the list
  std::size_t least = 0;
};

class ScenarioVisitor : public OperationVisitor {
 public:
  // ---- which keys must be there -------------------------------------------------------------------------
  virtual void required(std::initializer_list<std::string_view> keys) = 0;
  virtual void all_or_none(std::initializer_list<std::string_view> keys) = 0;

  // ---- texts --------------------------------------------------------------------------------------------
  virtual void name(std::string_view key, std::string& value, std::string_view help) = 0;  // see is_name
  virtual void text(std::string_view key, std::string& value, std::string_view help) = 0;
  virtual void texts(std::string_view key, std::vector<std::string>& value, std::string_view help) = 0;
  // A key that can only have this value; printed if `present`.
  virtual void word(std::string_view key, std::string_view word, bool present, std::string_view help) = 0;

  // ---- values that may be absent ------------------------------------------------------------------------
  virtual void optional_duration(std::string_view key, std::optional<Duration>& value, DurationRange range,
                                 std::string_view help) = 0;
  virtual void optional_real(std::string_view key, std::optional<double>& value, RealRange range,
                             std::string_view help) = 0;
  virtual void any_value(std::string_view key, Json& value, std::string_view help) = 0;

  // ---- structure ----------------------------------------------------------------------------------------
  virtual void object(std::string_view key, std::string_view help,
                      const std::function<void(ScenarioVisitor&)>& describe_fields) = 0;

  template <class Item, class Describe>
  void list(std::string_view key, std::vector<Item>& items, ListRule rule, std::string_view help, Describe describe) {
    visit_list(key, rule, help,
               {.size = [&] { return items.size(); },
                .resize = [&](std::size_t size) { items.resize(size); },
                .describe = [&](std::size_t i, ScenarioVisitor& v) { describe(items[i], v); }});
  }

  // ---- the domain ---------------------------------------------------------------------------------------
  virtual void machine(std::string_view key, MachineConfig& value, std::string_view help) = 0;
  // An object whose keys name the locks and whose values are kinds.
  virtual void locks(std::string_view key, std::vector<LockConfig>& value, const KindFamily& family,
                     std::string_view help) = 0;
  // A bare name, or an object with "kind" and parameters.
  virtual void kind(std::string_view key, Kind& value, const KindFamily& family, std::string_view help) = 0;
  // An object whose keys are names of the family: true, false, or an object of parameters (which is as good as true).
  virtual void switches(std::string_view key, std::map<std::string, Kind>& on, const KindFamily& family,
                        std::string_view help) = 0;
  // "any", "one_to_one", or one list of pCPUs per vCPU.
  virtual void affinity(std::string_view key, AffinityConfig& value, std::string_view help) = 0;
  // The program of `task`, which uses the locks and meeting points of `guest`.
  virtual void program(std::string_view key, TaskConfig& task, GuestConfig& guest, std::string_view help) = 0;
  // Programs that others name. They are read where they are used, and printed there.
  virtual void shared_programs(std::string_view key, std::string_view help) = 0;
  virtual void axes(std::string_view key, std::vector<Axis>& value, std::string_view help) = 0;
  virtual void point(std::string_view key, Point& value, std::string_view help) = 0;

 protected:
  struct ListAccess {
    std::function<std::size_t()> size;
    std::function<void(std::size_t)> resize;
    std::function<void(std::size_t, ScenarioVisitor&)> describe;
  };
  virtual void visit_list(std::string_view key, ListRule rule, std::string_view help, const ListAccess& items) = 0;
};

// MachineConfig::name of a machine that is described in full.
inline constexpr std::string_view kCustomMachine = "custom";

// Limits of what a scenario may ask for; beyond them it is an error, not an hour of swapping.
inline constexpr std::int64_t kMostVcpus = 16'384;  // of all VMs together
inline constexpr std::int64_t kMostPcpus = 1'024;
inline constexpr std::int64_t kMostCopies = 4'096;
inline constexpr std::int64_t kMostTasks = 65'536;  // of all VMs together
inline constexpr std::size_t kMostVms = 16'384;
inline constexpr std::size_t kMostTaskGroups = 65'536;
inline constexpr std::size_t kMostLocks = 4'096;                // of one guest
inline constexpr std::size_t kMostOperations = 10'000;          // of one program, nested ones included
inline constexpr std::size_t kMostOperationsInAll = 1'000'000;  // shared programs count wherever they are used
inline constexpr std::size_t kDeepestProgram = 32;
inline constexpr std::int64_t kMostRepetitions = 1'000'000'000'000'000;
inline constexpr IntegerRange kBranchWeights{1, 1'000'000};
inline constexpr RealRange kLognormalSigmas{0.0001, 4};
inline constexpr RealRange kParetoShapes{0.1, 100};
inline constexpr std::size_t kMostEmpiricalValues = 100'000;
inline constexpr std::size_t kMostAxes = 16;
inline constexpr std::size_t kMostPoints = 100'000;  // the product of the axes' lengths
inline constexpr std::size_t kMostFigures = 10'000;  // expectations, or published figures

}  // namespace vcpusim
