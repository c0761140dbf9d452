#include "scenarios/kind_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/catalogue.h"
#include "models/operation.h"
#include "scenarios/text_forms.h"

namespace vcpusim {
namespace {

class Lister final : public OperationVisitor {
 public:
  // Without `first_has_default`, the first key visited must be given: the name of an operation.
  explicit Lister(bool first_has_default) : defaults_(first_has_default) {}
  std::vector<ParameterLine> take() { return std::move(lines_); }

  void duration(std::string_view key, Duration& value, DurationRange range, std::string_view help) override {
    const std::string form = range.min > Duration::zero() ? "duration >= " + format_duration(range.min) : "duration";
    add(key, form, format_duration(value), help);
  }
  void cycles(std::string_view key, Cycles& value, IntegerRange range, std::string_view help) override {
    add(key, fmt::format("cycles from {} to {}, or duration", range.min, range.max), format_cycles(value), help);
  }
  void integer(std::string_view key, std::int64_t& value, IntegerRange range, std::string_view help) override {
    add(key, fmt::format("integer from {} to {}", range.min, range.max), fmt::to_string(value), help);
  }
  void real(std::string_view key, double& value, RealRange range, std::string_view help) override {
    add(key, fmt::format("number from {} to {}", range.min, range.max), fmt::to_string(value), help);
  }
  void flag(std::string_view key, bool& value, std::string_view help) override {
    add(key, "true or false", value ? "true" : "false", help);
  }
  void group(std::string_view key, std::string_view,
             const std::function<void(ParamVisitor&)>& describe_fields) override {
    const std::string outer = prefix_;
    prefix_ += std::string(key) + ".";
    describe_fields(*this);
    prefix_ = outer;
  }

  void distribution(std::string_view key, Distribution&, std::string_view help) override {
    add(key, "duration or distribution", "", help);
  }
  void optional_distribution(std::string_view key, Distribution&, std::string_view help) override {
    add(key, "duration or distribution", "", help);
  }
  void body(std::string_view key, Program&, std::string_view help) override { add(key, "operations", "", help); }
  void optional_body(std::string_view key, Program&, std::string_view help) override {
    add(key, "operations", "", help);
  }
  void branches(std::string_view key, std::vector<Branch>&, std::string_view help) override {
    add(key, "array of branches", "", help);
  }
  void repetitions(std::string_view key, std::int64_t&, std::string_view help) override {
    add(key, "integer >= 1 or \"forever\"", "", help);
  }
  void lock(std::string_view key, std::size_t&, std::string_view help) override {
    add(key, "lock of the guest", "", help);
  }
  void barrier(std::string_view key, std::size_t&, std::string_view help) override { add(key, "name", "", help); }
  void exactly_one_of(std::span<const std::string_view> keys) override {
    lines_.push_back({fmt::format("{}", fmt::join(keys, " | ")), "exactly one of these", "", ""});
  }

 protected:
  void choice_index(std::string_view key, std::size_t& index, std::span<const std::string_view> names,
                    std::string_view help) override {
    add(key, fmt::format("{}", fmt::join(names, " | ")), std::string(names[index]), help);
  }

 private:
  void add(std::string_view key, std::string form, std::string fallback, std::string_view help) {
    lines_.push_back(
        {prefix_ + std::string(key), std::move(form), defaults_ ? std::move(fallback) : "", std::string(help)});
    defaults_ = true;
  }

  bool defaults_;
  std::string prefix_;
  std::vector<ParameterLine> lines_;
};

std::vector<ParameterLine> list(bool first_has_default, const std::function<void(OperationVisitor&)>& describe) {
  Lister lister(first_has_default);
  describe(lister);
  return lister.take();
}

}  // namespace

std::vector<KindDescription> all_kinds() {
  std::vector<KindDescription> all;
  for (const LockKind& kind : lock_kinds()) {
    all.push_back({"lock", std::string(kind.name), std::string(kind.summary), std::string(kind.source),
                   list(true, [&](OperationVisitor& v) { kind.describe(v); })});
  }
  for (const SchedulerKind& kind : scheduler_kinds()) {
    all.push_back({"scheduler", std::string(kind.name), std::string(kind.summary), std::string(kind.source),
                   list(true, [&](OperationVisitor& v) { kind.describe(v); })});
  }
  for (const AssistKind& kind : assist_kinds()) {
    all.push_back({"assist", std::string(kind.name), std::string(kind.summary), std::string(kind.source),
                   list(true, [&](OperationVisitor& v) { kind.describe(v); })});
  }
  for (const MachineKind& kind : machine_kinds()) {
    MachineConfig machine = kind.make();
    all.push_back({"machine", std::string(kind.name), std::string(kind.summary), std::string(kind.source),
                   list(true, [&](OperationVisitor& v) { machine.describe(v); })});
  }
  for (const OperationKind& kind : operation_kinds()) {
    all.push_back({"operation", std::string(kind.name), std::string(kind.summary), "",
                   list(false, [&](OperationVisitor& v) { kind.make()->describe(v); })});
  }
  return all;
}

}  // namespace vcpusim
