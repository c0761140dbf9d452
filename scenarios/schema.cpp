#include "scenarios/schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/catalogue.h"
#include "models/operation.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario_visitor.h"
#include "scenarios/text_forms.h"

namespace vcpusim {
namespace {

using Output = nlohmann::ordered_json;

Output reference(std::string_view definition) { return {{"$ref", "#/definitions/" + std::string(definition)}}; }

Output name_schema() { return {{"type", "string"}, {"pattern", kNamePattern}}; }

class SchemaWriter final : public ScenarioVisitor {
 public:
  static Output object(bool all_required, const std::function<void(SchemaWriter&)>& describe) {
    SchemaWriter writer;
    writer.all_required_ = all_required;
    describe(writer);
    return writer.finish();
  }

  void duration(std::string_view key, Duration&, DurationRange, std::string_view help) override {
    put_parameter(key, reference("duration"), help);
  }
  void cycles(std::string_view key, Cycles&, IntegerRange, std::string_view help) override {
    put_parameter(key, reference("duration"), help);
  }
  void integer(std::string_view key, std::int64_t&, IntegerRange range, std::string_view help) override {
    put_parameter(key, {{"type", "integer"}, {"minimum", range.min}, {"maximum", range.max}}, help);
  }
  void real(std::string_view key, double&, RealRange range, std::string_view help) override {
    put_parameter(key, {{"type", "number"}, {"minimum", range.min}, {"maximum", range.max}}, help);
  }
  void flag(std::string_view key, bool&, std::string_view help) override {
    put_parameter(key, {{"type", "boolean"}}, help);
  }
  void group(std::string_view key, std::string_view help,
             const std::function<void(ParamVisitor&)>& describe_fields) override {
    put_parameter(key, object(all_required_, [&](SchemaWriter& w) { describe_fields(w); }), help);
  }

  void distribution(std::string_view key, Distribution&, std::string_view help) override {
    put(key, reference("distribution"), help);
  }
  void optional_distribution(std::string_view key, Distribution&, std::string_view help) override {
    put_optional(key, reference("distribution"), help);
  }
  void body(std::string_view key, Program&, std::string_view help) override { put(key, reference("program"), help); }
  void optional_body(std::string_view key, Program&, std::string_view help) override {
    put_optional(key, reference("program"), help);
  }
  void branches(std::string_view key, std::vector<Branch>&, std::string_view help) override {
    const Output branch = object(false, [](SchemaWriter& w) {
      std::int64_t weight = 1;
      Program body;
      w.integer("weight", weight, kBranchWeights, "relative to the sum of the weights");
      w.body("do", body, "operations of the branch");
    });
    put(key, {{"type", "array"}, {"minItems", 1}, {"items", branch}}, help);
  }
  void repetitions(std::string_view key, std::int64_t&, std::string_view help) override {
    put(key,
        {{"oneOf", {{{"type", "integer"}, {"minimum", 1}, {"maximum", kMostRepetitions}}, {{"const", "forever"}}}}},
        help);
  }
  void lock(std::string_view key, std::size_t&, std::string_view help) override {
    put(key, {{"type", "string"}}, help);
  }
  void barrier(std::string_view key, std::size_t&, std::string_view help) override { put(key, name_schema(), help); }

  void exactly_one_of(std::span<const std::string_view> keys) override {
    Output one = Output::array();
    for (const std::string_view key : keys) one.push_back({{"required", {key}}});
    constraints_["oneOf"] = std::move(one);
  }
  void required(std::initializer_list<std::string_view> keys) override {
    required_.insert(required_.end(), keys.begin(), keys.end());
  }
  void all_or_none(std::initializer_list<std::string_view> keys) override {
    for (const std::string_view key : keys) {
      Output others = Output::array();
      for (const std::string_view other : keys) {
        if (other != key) others.push_back(other);
      }
      constraints_["dependencies"][std::string(key)] = std::move(others);
    }
  }

  void name(std::string_view key, std::string&, std::string_view help) override {
    put_optional(key, name_schema(), help);
  }
  void text(std::string_view key, std::string&, std::string_view help) override {
    put_optional(key, {{"type", "string"}}, help);
  }
  void texts(std::string_view key, std::vector<std::string>&, std::string_view help) override {
    put_optional(key, {{"type", "array"}, {"items", {{"type", "string"}}}}, help);
  }
  void word(std::string_view key, std::string_view word, bool, std::string_view help) override {
    put_optional(key, {{"const", word}}, help);
  }
  void optional_duration(std::string_view key, std::optional<Duration>&, DurationRange,
                         std::string_view help) override {
    put_optional(key, reference("duration"), help);
  }
  void optional_real(std::string_view key, std::optional<double>&, RealRange range, std::string_view help) override {
    put_optional(key, {{"type", "number"}, {"minimum", range.min}, {"maximum", range.max}}, help);
  }
  void any_value(std::string_view key, Json&, std::string_view help) override {
    put_optional(key, Output::object(), help);
  }
  void object(std::string_view key, std::string_view help,
              const std::function<void(ScenarioVisitor&)>& describe_fields) override {
    put_optional(key, object(false, [&](SchemaWriter& w) { describe_fields(w); }), help);
  }
  void machine(std::string_view key, MachineConfig&, std::string_view help) override {
    put_optional(key, reference("machine"), help);
  }
  void locks(std::string_view key, std::vector<LockConfig>&, const KindFamily& family, std::string_view help) override {
    put_optional(key,
                 {{"type", "object"},
                  {"maxProperties", kMostLocks},
                  {"propertyNames", name_schema()},
                  {"additionalProperties", kind(family)}},
                 help);
  }
  void kind(std::string_view key, Kind&, const KindFamily& family, std::string_view help) override {
    put_optional(key, kind(family), help);
  }
  void switches(std::string_view key, std::map<std::string, Kind>&, const KindFamily& family,
                std::string_view help) override {
    Output properties = Output::object();
    for (const KindFamily::Entry& entry : family.entries) {
      const Output parameters = object(false, [&](SchemaWriter& w) { entry.describe(w); });
      properties[std::string(entry.name)] = {{"description", entry.summary},
                                             {"oneOf", {{{"type", "boolean"}}, parameters}}};
    }
    put_optional(key, {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}},
                 help);
  }
  void affinity(std::string_view key, AffinityConfig&, std::string_view help) override {
    const Output pcpus{{"type", "array"},
                       {"minItems", 1},
                       {"items", {{"type", "integer"}, {"minimum", 0}, {"maximum", kMostPcpus - 1}}}};
    put_optional(key, {{"oneOf", {{{"enum", {"any", "one_to_one"}}}, {{"type", "array"}, {"items", pcpus}}}}}, help);
  }
  void program(std::string_view key, TaskConfig&, GuestConfig&, std::string_view help) override {
    put_optional(key, reference("program"), help);
  }
  void shared_programs(std::string_view key, std::string_view help) override {
    put_optional(key,
                 {{"type", "object"}, {"propertyNames", name_schema()}, {"additionalProperties", reference("program")}},
                 help);
  }
  void axes(std::string_view key, std::vector<Axis>&, std::string_view help) override {
    put_optional(key,
                 {{"type", "object"},
                  {"maxProperties", kMostAxes},
                  {"additionalProperties", {{"type", "array"}, {"minItems", 1}}}},
                 help);
  }
  void point(std::string_view key, Point&, std::string_view help) override {
    put_optional(key, {{"type", "object"}}, help);
  }

  Output finish() {
    Output schema{{"type", "object"}, {"properties", std::move(properties_)}, {"additionalProperties", false}};
    if (!required_.empty()) schema["required"] = required_;
    schema.update(constraints_);
    return schema;
  }

 protected:
  void choice_index(std::string_view key, std::size_t&, std::span<const std::string_view> names,
                    std::string_view help) override {
    put_parameter(key, {{"enum", std::vector<std::string>(names.begin(), names.end())}}, help);
  }
  void visit_list(std::string_view key, ListRule rule, std::string_view help, const ListAccess& items) override {
    items.resize(1);
    const Output item = object(false, [&](SchemaWriter& w) { items.describe(0, w); });
    put_optional(key, {{"type", "array"}, {"minItems", rule.least}, {"maxItems", rule.most}, {"items", item}}, help);
  }

 private:
  void put_optional(std::string_view key, Output schema, std::string_view help) {
    // Draft-07 ignores what stands beside a $ref, so the help goes around it.
    if (schema.contains("$ref")) schema = {{"allOf", Output::array({std::move(schema)})}};
    if (!help.empty()) schema["description"] = help;
    properties_[std::string(key)] = std::move(schema);
  }
  void put(std::string_view key, Output schema, std::string_view help) {
    required_.emplace_back(key);
    put_optional(key, std::move(schema), help);
  }
  void put_parameter(std::string_view key, Output schema, std::string_view help) {
    if (all_required_) required_.emplace_back(key);
    put_optional(key, std::move(schema), help);
  }

  // A bare name, or an object with the parameters of that kind.
  static Output kind(const KindFamily& family) {
    Output one = Output::array();
    one.push_back({{"enum", family.names()}});
    for (const KindFamily::Entry& entry : family.entries) {
      Output parameters = object(false, [&](SchemaWriter& w) {
        w.required({"kind"});
        w.put_optional("kind", {{"const", entry.name}}, entry.summary);
        entry.describe(w);
      });
      one.push_back(std::move(parameters));
    }
    return {{"oneOf", std::move(one)}};
  }

  Output properties_ = Output::object();
  std::vector<std::string> required_;
  Output constraints_ = Output::object();
  bool all_required_ = false;
};

Output one_key(std::string_view key, Output value) {
  return {{"type", "object"},
          {"properties", {{std::string(key), std::move(value)}}},
          {"required", {key}},
          {"additionalProperties", false}};
}

Output two_keys(std::string_view first, Output one, std::string_view second, Output two) {
  return {{"type", "object"},
          {"properties", {{std::string(first), std::move(one)}, {std::string(second), std::move(two)}}},
          {"required", {first, second}},
          {"additionalProperties", false}};
}

Output distribution_schema() {
  const Output duration = reference("duration");
  const auto real = [](RealRange range) {
    return Output{{"type", "number"}, {"minimum", range.min}, {"maximum", range.max}};
  };
  return {{"oneOf",
           {duration, one_key("exponential", duration),
            one_key("uniform", {{"type", "array"}, {"items", duration}, {"minItems", 2}, {"maxItems", 2}}),
            one_key("normal", two_keys("mean", duration, "stddev", duration)),
            one_key("lognormal", two_keys("median", duration, "sigma", real(kLognormalSigmas))),
            one_key("pareto", two_keys("scale", duration, "shape", real(kParetoShapes))),
            one_key("empirical",
                    {{"type", "array"}, {"items", duration}, {"minItems", 1}, {"maxItems", kMostEmpiricalValues}})}}};
}

Output program_schema() {
  // By if and then, not as alternatives to be tried: those would double the work with each level of nesting.
  Output any = Output::array();
  Output each = Output::array();
  for (const OperationKind& kind : operation_kinds()) {
    Output operation = SchemaWriter::object(false, [&](SchemaWriter& w) { kind.make()->describe(w); });
    operation["description"] = kind.summary;
    const Output named{{"required", Output::array({kind.name})}};
    any.push_back(named);
    each.push_back({{"if", named}, {"then", std::move(operation)}});
  }
  return {{"oneOf",
           {{{"type", "array"},
             {"minItems", 1},
             {"maxItems", kMostOperations},
             {"items", {{"type", "object"}, {"anyOf", std::move(any)}, {"allOf", std::move(each)}}}},
            {{"type", "string"}}}}};
}

Output machine_schema() {
  std::vector<std::string> names;
  for (const MachineKind& kind : machine_kinds()) names.emplace_back(kind.name);
  const Output preset{{"enum", names}};
  MachineConfig machine;
  Output changed = SchemaWriter::object(false, [&](SchemaWriter& w) { machine.describe(w); });
  changed["properties"]["preset"] = preset;
  changed["required"] = {"preset"};
  Output full = SchemaWriter::object(true, [&](SchemaWriter& w) { machine.describe(w); });
  return {{"oneOf", {preset, std::move(changed), std::move(full)}}};
}

}  // namespace

std::string schema_text() {
  Scenario scenario;
  Output schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "vcpusim scenario"}};
  schema.update(SchemaWriter::object(false, [&](SchemaWriter& w) { describe(scenario, w); }));
  schema["definitions"] = {
      {"duration",
       {{"type", "string"},
        {"pattern", kSpanPattern},
        {"description", "a number and a unit: ps ns us ms s min h, or cycles of the host's clock"}}},
      {"distribution", distribution_schema()},
      {"machine", machine_schema()},
      {"program", program_schema()}};
  return schema.dump(1) + "\n";
}

}  // namespace vcpusim
