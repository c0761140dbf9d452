// The visitor that turns the structs of a scenario back into JSON, every default filled in.
//
// Internal to this layer: it shows the JSON library. Descriptions take their structs by non-const reference because
// readers fill them; a Printer never writes to what it visits.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/results.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario_visitor.h"

namespace vcpusim {

nlohmann::ordered_json resolved_json(const Scenario& scenario);

nlohmann::ordered_json to_library_json(const Json& json);
nlohmann::ordered_json point_json(const Point& point);  // {path: value, ...}
nlohmann::ordered_json summary_json(const MetricSummary& summary);

class Printer final : public ScenarioVisitor {
 public:
  using Output = nlohmann::ordered_json;

  static Output print(const std::function<void(ScenarioVisitor&)>& describe);

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
  void barrier(std::string_view key, std::size_t& index, std::string_view help) override;
  void exactly_one_of(std::span<const std::string_view> keys) override;

  void required(std::initializer_list<std::string_view>) override {}
  void all_or_none(std::initializer_list<std::string_view>) override {}
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
  void shared_programs(std::string_view, std::string_view) override {}
  void axes(std::string_view key, std::vector<Axis>& value, std::string_view help) override;
  void point(std::string_view key, Point& value, std::string_view help) override;

 protected:
  void choice_index(std::string_view key, std::size_t& index, std::span<const std::string_view> names,
                    std::string_view help) override;
  void visit_list(std::string_view key, ListRule rule, std::string_view help, const ListAccess& items) override;

 private:
  Printer() = default;

  void put(std::string_view key, Output value) { out_[std::string(key)] = std::move(value); }
  Output finish();
  Output print_kind(const Kind& kind, const KindFamily& family);
  Output print_program(const Program& program);
  template <class T>
  T effective(std::string_view key, const T& fallback) const;

  Output out_ = Output::object();
  const GuestConfig* guest_ = nullptr;                 // whose locks and meeting points the program names
  const Kind* kind_ = nullptr;                         // whose parameters take the place of the visited defaults
  std::string prefix_;                                 // "group." inside a group of a kind
  std::vector<std::pair<std::string, Output>> unset_;  // optional keys that hold their default
  std::vector<std::vector<std::string>> one_of_;
};

}  // namespace vcpusim
