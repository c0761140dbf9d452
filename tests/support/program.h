// Builds programs for tests without a scenario file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "models/catalogue.h"
#include "models/operation.h"

namespace vcpusim::testing {

// Answers an operation's description from a few named values; what is not named keeps its default.
class Fill final : public OperationVisitor {
 public:
  std::map<std::string, Distribution, std::less<>> distributions;
  std::map<std::string, Program, std::less<>> bodies;
  std::map<std::string, std::size_t, std::less<>> indices;
  std::map<std::string, std::int64_t, std::less<>> integers;
  std::map<std::string, bool, std::less<>> flags;
  std::int64_t count = 1;
  std::vector<Branch> choices;

  void duration(std::string_view, Duration&, DurationRange, std::string_view) override {}
  void cycles(std::string_view, Cycles&, IntegerRange, std::string_view) override {}
  void integer(std::string_view key, std::int64_t& value, IntegerRange, std::string_view) override {
    set(integers, key, value);
  }
  void real(std::string_view, double&, RealRange, std::string_view) override {}
  void flag(std::string_view key, bool& value, std::string_view) override { set(flags, key, value); }
  void group(std::string_view, std::string_view, const std::function<void(ParamVisitor&)>&) override {}
  void distribution(std::string_view key, Distribution& value, std::string_view) override {
    set(distributions, key, value);
  }
  void optional_distribution(std::string_view key, Distribution& value, std::string_view) override {
    set(distributions, key, value);
  }
  void body(std::string_view key, Program& value, std::string_view) override { set(bodies, key, value); }
  void optional_body(std::string_view key, Program& value, std::string_view) override { set(bodies, key, value); }
  void branches(std::string_view, std::vector<Branch>& value, std::string_view) override { value = choices; }
  void repetitions(std::string_view, std::int64_t& value, std::string_view) override { value = count; }
  void lock(std::string_view key, std::size_t& index, std::string_view) override { set(indices, key, index); }
  void barrier(std::string_view key, std::size_t& index, std::string_view) override { set(indices, key, index); }
  void exactly_one_of(std::span<const std::string_view>) override {}

 protected:
  void choice_index(std::string_view, std::size_t&, std::span<const std::string_view>, std::string_view) override {}

 private:
  template <class Map, class Value>
  static void set(const Map& map, std::string_view key, Value& value) {
    if (const auto at = map.find(key); at != map.end()) value = at->second;
  }
};

inline std::shared_ptr<const Operation> operation(std::string_view name, Fill fill) {
  std::shared_ptr<Operation> made = find_operation_kind(name)->make();
  made->describe(fill);
  return made;
}

inline std::shared_ptr<const Operation> user(Distribution span) {
  Fill fill;
  fill.distributions["user"] = std::move(span);
  return operation("user", std::move(fill));
}

inline std::shared_ptr<const Operation> kernel(Distribution span) {
  Fill fill;
  fill.distributions["kernel"] = std::move(span);
  return operation("kernel", std::move(fill));
}

inline std::shared_ptr<const Operation> sleep(Distribution span) {
  Fill fill;
  fill.distributions["sleep"] = std::move(span);
  return operation("sleep", std::move(fill));
}

inline std::shared_ptr<const Operation> hold(std::size_t lock, Distribution span) {
  Fill fill;
  fill.indices["lock"] = lock;
  fill.distributions["hold"] = std::move(span);
  return operation("lock", std::move(fill));
}

inline std::shared_ptr<const Operation> hold(std::size_t lock, Program body) {
  Fill fill;
  fill.indices["lock"] = lock;
  fill.bodies["do"] = std::move(body);
  return operation("lock", std::move(fill));
}

// As hold, with interrupts disabled from the request to the release.
inline std::shared_ptr<const Operation> hold_irqs_off(std::size_t lock, Distribution span) {
  Fill fill;
  fill.indices["lock"] = lock;
  fill.distributions["hold"] = std::move(span);
  fill.flags["irqs_off"] = true;
  return operation("lock", std::move(fill));
}

inline std::shared_ptr<const Operation> io(Distribution service) {
  Fill fill;
  fill.distributions["io"] = std::move(service);
  return operation("io", std::move(fill));
}

inline std::shared_ptr<const Operation> ipi(std::int64_t targets, Distribution work) {
  Fill fill;
  fill.integers["ipi"] = targets;
  fill.distributions["work"] = std::move(work);
  return operation("ipi", std::move(fill));
}

inline std::shared_ptr<const Operation> yield() { return operation("yield", {}); }

inline std::shared_ptr<const Operation> choose(std::vector<Branch> branches) {
  Fill fill;
  fill.choices = std::move(branches);
  return operation("choose", std::move(fill));
}

inline std::shared_ptr<const Operation> barrier(std::size_t index) {
  Fill fill;
  fill.indices["barrier"] = index;
  return operation("barrier", std::move(fill));
}

inline std::shared_ptr<const Operation> repeat(std::int64_t count, Program body) {
  Fill fill;
  fill.count = count;
  fill.bodies["do"] = std::move(body);
  return operation("repeat", std::move(fill));
}

}  // namespace vcpusim::testing
