// The visitor that fills the structs of a scenario from JSON.
//
// One Reader reads one object: it is given to the object's description, which visits the keys, and then finish()
// refuses the keys that the description does not know. A value that is wrong is reported and left at its default,
// so that the rest can be read and all errors come out at once.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario_visitor.h"

namespace vcpusim {

// What is shared by all the readers of one document.
struct ReadSession {
  InputErrors& errors;
  const Json* shared_programs = nullptr;                          // the object at /programs, if any
  std::filesystem::path folder;                                   // where program files are
  std::map<std::string, std::optional<Json>> program_files = {};  // by path as written; none: unusable
  const Frequency* clock = nullptr;                               // of the machine being built: converts cycles
  std::size_t operations = 0;                                     // read so far
};

// What is shared by all the readers of one task's program.
struct ReadProgram {
  GuestConfig* guest = nullptr;  // null: nobody's, any lock name will do
  std::size_t operations = 0;
  std::size_t depth = 0;
  std::set<std::size_t> barriers = {};  // indexes of those that the program mentions
  std::string atomic = {};              // the innermost section in which nobody may sleep, in words; empty: none
};

class Reader final : public ScenarioVisitor {
 public:
  // Reads `node`, which should be an object, with the fields that `describe` visits.
  static void read(ReadSession& session, const Json& node, std::string pointer,
                   const std::function<void(ScenarioVisitor&)>& describe);

  // Reads a program that no task runs, for its errors alone.
  static void check_program(ReadSession& session, const Json& node, std::string pointer);

  void duration(std::string_view key, Duration& value, DurationRange range, std::string_view help) override;
  void cycles(std::string_view key, Cycles& value, IntegerRange range, std::string_view help) override;
  void integer(std::string_view key, std::int64_t& value, IntegerRange range, std::string_view help) override;
  void real(std::string_view key, double& value, RealRange range, std::string_view help) override;
  void flag(std::string_view key, bool& value, std::string_view help) override;
  void group(std::string_view key, std::string_view help,
             const std::function<void(ParamVisitor&)>& describe_fields) override;

  void distribution(std::string_view key, Distribution& value, std::string_view help) override;
  void optional_distribution(std::string_view key, Distribution& value, std::string_view help) override;
  void body(std::string_view key, Program& value, std::string_view help) override;
  void optional_body(std::string_view key, Program& value, std::string_view help) override;
  void branches(std::string_view key, std::vector<Branch>& value, std::string_view help) override;
  void repetitions(std::string_view key, std::int64_t& value, std::string_view help) override;
  void lock(std::string_view key, std::size_t& index, std::string_view help) override;
  void rcu_domain(std::string_view key, std::size_t& index, std::string_view help) override;
  void sleeps() override;
  void barrier(std::string_view key, std::size_t& index, std::string_view help) override;
  void exactly_one_of(std::span<const std::string_view> keys) override;

  void required(std::initializer_list<std::string_view> keys) override;
  void all_or_none(std::initializer_list<std::string_view> keys) override;
  void name(std::string_view key, std::string& value, std::string_view help) override;
  void text(std::string_view key, std::string& value, std::string_view help) override;
  void texts(std::string_view key, std::vector<std::string>& value, std::string_view help) override;
  void word(std::string_view key, std::string_view word, bool present, std::string_view help) override;
  void optional_duration(std::string_view key, std::optional<Duration>& value, DurationRange range,
                         std::string_view help) override;
  void optional_real(std::string_view key, std::optional<double>& value, RealRange range,
                     std::string_view help) override;
  void any_value(std::string_view key, Json& value, std::string_view help) override;
  void object(std::string_view key, std::string_view help,
              const std::function<void(ScenarioVisitor&)>& describe_fields) override;
  void machine(std::string_view key, MachineConfig& value, std::string_view help) override;
  void locks(std::string_view key, std::vector<LockConfig>& value, const KindFamily& family,
             std::string_view help) override;
  void kind(std::string_view key, Kind& value, const KindFamily& family, std::string_view help) override;
  void switches(std::string_view key, std::map<std::string, Kind>& on, const KindFamily& family,
                std::string_view help) override;
  void affinity(std::string_view key, AffinityConfig& value, std::string_view help) override;
  void program(std::string_view key, TaskConfig& task, GuestConfig& guest, std::string_view help) override;
  void shared_programs(std::string_view key, std::string_view help) override;
  void axes(std::string_view key, std::vector<Axis>& value, std::string_view help) override;
  void point(std::string_view key, Point& value, std::string_view help) override;

 protected:
  void choice_index(std::string_view key, std::size_t& index, std::span<const std::string_view> names,
                    std::string_view help) override;
  void visit_list(std::string_view key, ListRule rule, std::string_view help, const ListAccess& items) override;

 private:
  Reader(ReadSession& session, const Json& object, std::string pointer)
      : session_(session), object_(object), pointer_(std::move(pointer)) {}

  // The value of `key`, which from now on is known; null if absent.
  const Json* find(std::string_view key);
  // The same for a plain parameter, which must be there in a full description.
  const Json* parameter(std::string_view key);
  // The same for a key that must be there.
  const Json* expect(std::string_view key);
  void finish();

  std::string at(std::string_view key) const { return child_pointer(pointer_, key); }
  void error(const Json& node, std::string_view pointer, std::string_view message);
  void expected(const Json& node, std::string_view pointer, std::string_view what);  // "expected WHAT; got NODE"

  bool read_duration(const Json& node, const std::string& pointer, DurationRange range, Duration& value);
  void read_distribution(const Json& node, const std::string& pointer, Distribution& value);
  std::map<std::string, ParamValue> read_parameters(const Json& object, const std::string& pointer,
                                                    const KindFamily::Entry& entry, std::string_view name_key);
  Kind read_kind(const Json& node, const std::string& pointer, const KindFamily& family);
  void read_program(const Json& node, const std::string& pointer, Program& value);
  void read_body(const Json& node, const std::string& pointer, Program& value);
  const LockConfig* find_lock(std::string_view key, std::size_t& index);
  void read_operations(const Json& array, const std::string& pointer, Program& value);
  std::shared_ptr<const Operation> read_operation(const Json& node, const std::string& pointer);
  const Json* program_file(const Json& node, const std::string& pointer);
  Frequency clock() const { return session_.clock == nullptr ? Frequency{} : *session_.clock; }
  Duration from_cycles(Cycles c) const { return to_duration(c, clock()); }
  void capture(std::string_view key, ParamValue value);

  ReadSession& session_;
  const Json& object_;
  const std::string pointer_;
  std::vector<std::string> known_;
  bool all_required_ = false;  // a description that has no defaults to fall back on
  std::vector<std::string> missing_;
  std::vector<std::vector<std::string>> one_of_;
  std::vector<std::vector<std::string>> together_;

  ReadProgram* program_ = nullptr;                         // inside a program
  std::string section_;                                    // of an operation: ReadProgram::atomic of its body
  std::map<std::string, ParamValue>* captured_ = nullptr;  // of a kind: the parameters that were given
  std::string capture_prefix_;                             // "group." inside a group of a kind
};

}  // namespace vcpusim
