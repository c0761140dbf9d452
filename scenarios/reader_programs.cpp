// How a Reader reads programs: operations, what they are made of, and programs by name or file.

#include <fmt/format.h>

#include <algorithm>

#include "models/catalogue.h"
#include "models/operation.h"
#include "scenarios/files.h"
#include "scenarios/reader.h"
#include "scenarios/text_forms.h"

namespace vcpusim {
namespace {

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const OperationKind& kind : operation_kinds()) names.emplace_back(kind.name);
  return names;
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& items) {
  std::vector<std::string> names;
  for (const Named& item : items) names.push_back(item.name);
  return names;
}

}  // namespace

void Reader::program(std::string_view key, TaskConfig& task, GuestConfig& guest, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  ReadProgram program{.guest = &guest};
  program_ = &program;
  read_program(*node, at(key), task.program);
  program_ = nullptr;
  for (const std::size_t barrier : program.barriers) guest.barriers[barrier].parties += task.count;
}

void Reader::shared_programs(std::string_view key, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kObject)) return expected(*node, at(key), "an object of programs by name");
  session_.shared_programs = node;
  for (const Json::Member& member : node->members) {
    const std::string pointer = child_pointer(at(key), member.key);
    if (!is_name(member.key)) {
      session_.errors.add(
          member.place, pointer,
          "expected a name for the program (a letter or \"_\", then letters, digits, \"_\" or \"-\"; at most 64)");
    }
    ReadProgram program;
    program_ = &program;
    Program discarded;
    read_program(member.value, pointer, discarded);
    program_ = nullptr;
  }
}

void Reader::read_program(const Json& node, const std::string& pointer, Program& value) {
  if (program_->depth >= kDeepestProgram) {
    return error(node, pointer, fmt::format("programs are nested deeper than {} levels", kDeepestProgram));
  }
  ++program_->depth;
  if (node.is(Json::Type::kArray)) {
    read_operations(node, pointer, value);
  } else if (!node.is(Json::Type::kString)) {
    expected(node, pointer, "an array of operations, or the name or .json file of a program");
  } else if (node.text.ends_with(".json")) {
    if (const Json* file = program_file(node, pointer); file != nullptr) read_program(*file, "", value);
  } else {
    const Json* shared = session_.shared_programs == nullptr ? nullptr : session_.shared_programs->find(node.text);
    if (shared != nullptr) {
      read_program(*shared, child_pointer("/programs", node.text), value);
    } else {
      std::vector<std::string> names;
      if (session_.shared_programs != nullptr) {
        for (const Json::Member& member : session_.shared_programs->members) names.push_back(member.key);
      }
      error(node, pointer, fmt::format("no program {}{}", node.describe(), known_instead(node.text, names)));
    }
  }
  --program_->depth;
}

const Json* Reader::program_file(const Json& node, const std::string& pointer) {
  const std::filesystem::path path(node.text);
  const bool leaves = path.is_absolute() || std::ranges::find(path, "..") != path.end();
  if (leaves) {
    error(node, pointer, fmt::format("expected a file in the scenario's folder or below; got {}", node.describe()));
    return nullptr;
  }
  const auto [at, is_new] = session_.program_files.try_emplace(node.text);
  if (is_new) {
    const std::filesystem::path file = session_.folder / path;
    const FileText text = read_file(file, kMostJsonBytes);
    if (text.too_large) {
      error(node, pointer, fmt::format("the file {} is larger than {} MB", node.describe(), kMostJsonBytes >> 20));
    } else if (text.problem.empty()) {
      at->second = parse_json(text.text, std::make_shared<const std::string>(file.string()), session_.errors);
    } else {
      error(node, pointer, fmt::format("the file {} cannot be read: {}", node.describe(), text.problem));
    }
  }
  return at->second ? &*at->second : nullptr;
}

void Reader::read_operations(const Json& array, const std::string& pointer, Program& value) {
  if (array.items.empty()) return error(array, pointer, "expected at least one operation");
  program_->operations += array.items.size();
  session_.operations += array.items.size();
  if (program_->operations > kMostOperations) {
    return error(array, pointer, fmt::format("more than {} operations in one program", kMostOperations));
  }
  if (session_.operations > kMostOperationsInAll) {
    return error(array, pointer, fmt::format("more than {} operations in all programs together", kMostOperationsInAll));
  }
  for (std::size_t i = 0; i < array.items.size(); ++i) {
    if (auto operation = read_operation(array.items[i], child_pointer(pointer, i)); operation != nullptr) {
      value.push_back(std::move(operation));
    }
  }
}

std::shared_ptr<const Operation> Reader::read_operation(const Json& node, const std::string& pointer) {
  if (!node.is(Json::Type::kObject)) {
    expected(node, pointer, "an operation, such as {\"user\": \"10us\"}");
    return nullptr;
  }
  const OperationKind* kind = nullptr;
  for (const Json::Member& member : node.members) {
    if (kind = find_operation_kind(member.key); kind != nullptr) break;
  }
  if (kind == nullptr) {
    const std::vector<std::string> names = operation_names();
    const auto known = [&](const Json::Member& member) { return nearest_name(member.key, names).has_value(); };
    const auto slip = std::ranges::find_if(node.members, known);
    const Place& place = node.members.empty() ? node.place : node.members.front().place;
    session_.errors.add(place, pointer,
                        "no operation here" + known_instead(slip == node.members.end() ? "" : slip->key, names));
    return nullptr;
  }
  std::shared_ptr<Operation> operation = kind->make();
  Reader reader(session_, node, pointer);
  reader.program_ = program_;
  operation->describe(reader);
  reader.finish();
  return operation;
}

// ---- what operations are made of ---------------------------------------------------------------------------

void Reader::body(std::string_view key, Program& value, std::string_view) {
  if (const Json* node = expect(key); node != nullptr) read_body(*node, at(key), value);
}

void Reader::optional_body(std::string_view key, Program& value, std::string_view) {
  if (const Json* node = find(key); node != nullptr) read_body(*node, at(key), value);
}

void Reader::read_body(const Json& node, const std::string& pointer, Program& value) {
  const std::string outer = program_->atomic;
  if (!section_.empty()) program_->atomic = section_;
  read_program(node, pointer, value);
  program_->atomic = outer;
}

// Spinners would wait for whoever has been switched out in their section: kernels call it a bug to sleep there.
void Reader::sleeps() {
  if (program_->atomic.empty()) return;
  error(object_, pointer_, fmt::format("nobody may sleep in {} (expected it elsewhere)", program_->atomic));
}

void Reader::branches(std::string_view key, std::vector<Branch>& value, std::string_view) {
  const Json* node = expect(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kArray) || node->items.empty()) {
    return expected(*node, at(key), "an array of at least one branch {\"weight\": 1, \"do\": [...]}");
  }
  program_->operations += node->items.size();
  session_.operations += node->items.size();
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const std::string pointer = child_pointer(at(key), i);
    const Json& item = node->items[i];
    if (!item.is(Json::Type::kObject)) {
      expected(item, pointer, "a branch {\"weight\": 1, \"do\": [...]}");
      continue;
    }
    Reader reader(session_, item, pointer);
    reader.program_ = program_;
    Branch& branch = value.emplace_back();
    reader.integer("weight", branch.weight, kBranchWeights, "");
    reader.body("do", branch.body, "");
    reader.finish();
  }
}

void Reader::repetitions(std::string_view key, std::int64_t& value, std::string_view) {
  const Json* node = expect(key);
  if (node == nullptr) return;
  if (node->is(Json::Type::kString) && node->text == "forever") {
    value = kForever;
    return;
  }
  const auto given = node->as_integer();
  if (!given || *given < 1 || *given > kMostRepetitions) {
    return expected(*node, at(key), fmt::format("an integer from 1 to {}, or \"forever\"", kMostRepetitions));
  }
  value = *given;
}

const LockConfig* Reader::find_lock(std::string_view key, std::size_t& index) {
  const Json* node = expect(key);
  if (node == nullptr) return nullptr;
  if (!node->is(Json::Type::kString)) {
    expected(*node, at(key), "the name of a lock of the guest");
    return nullptr;
  }
  if (program_->guest == nullptr) return nullptr;
  const auto& locks = program_->guest->locks;
  const auto found = std::ranges::find(locks, node->text, &LockConfig::name);
  if (found == locks.end()) {
    const std::vector<std::string> names = names_of(locks);
    error(*node, at(key),
          fmt::format("the guest has no lock {}{}", node->describe(), known_instead(node->text, names, "its locks")));
    return nullptr;
  }
  index = static_cast<std::size_t>(found - locks.begin());
  return &*found;
}

void Reader::lock(std::string_view key, std::size_t& index, std::string_view) {
  const LockConfig* const lock = find_lock(key, index);
  const LockKind* const kind = lock == nullptr ? nullptr : find_lock_kind(lock->kind.name);
  if (kind == nullptr) return;
  const LockTraits traits = kind->traits(lock->kind);
  if (traits.sleeps) sleeps();
  if (traits.atomic_section) section_ = fmt::format("a section of \"{}\", a lock of kind {}", lock->name, kind->name);
}

void Reader::rcu_domain(std::string_view key, std::size_t& index, std::string_view) {
  const LockConfig* const lock = find_lock(key, index);
  const LockKind* const kind = lock == nullptr ? nullptr : find_lock_kind(lock->kind.name);
  if (kind == nullptr) return;
  section_ = fmt::format("a read-side section of \"{}\"", lock->name);
  if (kind->traits(lock->kind).rcu_domain) return;
  std::vector<std::string> names;
  for (const LockKind& other : lock_kinds()) {
    if (other.traits({std::string(other.name), {}}).rcu_domain) names.emplace_back(other.name);
  }
  error(*object_.find(key), at(key),
        fmt::format("lock \"{}\" is of kind {} (expected one of kind {})", lock->name, kind->name, comma_list(names)));
}

void Reader::barrier(std::string_view key, std::size_t& index, std::string_view) {
  const Json* node = expect(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kString) || !is_name(node->text)) {
    return expected(*node, at(key), "a name (a letter or \"_\", then letters, digits, \"_\" or \"-\"; at most 64)");
  }
  if (program_->guest == nullptr) return;
  auto& barriers = program_->guest->barriers;
  const auto found = std::ranges::find(barriers, node->text, &BarrierConfig::name);
  index = static_cast<std::size_t>(found - barriers.begin());
  if (found == barriers.end()) barriers.push_back({node->text, 0});
  program_->barriers.insert(index);
}

// ---- distributions -----------------------------------------------------------------------------------------

void Reader::distribution(std::string_view key, Distribution& value, std::string_view) {
  if (const Json* node = expect(key); node != nullptr) read_distribution(*node, at(key), value);
}

void Reader::optional_distribution(std::string_view key, Distribution& value, std::string_view) {
  if (const Json* node = find(key); node != nullptr) read_distribution(*node, at(key), value);
}

void Reader::read_distribution(const Json& node, const std::string& pointer, Distribution& value) {
  static const std::vector<std::string> kShapes{"exponential", "uniform", "normal", "lognormal", "pareto", "empirical"};
  if (node.is(Json::Type::kString)) {
    if (Duration constant{}; read_duration(node, pointer, kAnyDuration, constant))
      value = Distribution::constant(constant);
    return;
  }
  if (!node.is(Json::Type::kObject) || node.members.size() != 1) {
    return expected(node, pointer,
                    "a duration with a unit, such as \"2ms\", or a distribution, such as {\"exponential\": \"2ms\"}");
  }
  const Json::Member& member = node.members.front();
  const std::string& shape = member.key;
  const Json& of = member.value;
  const std::string inner = child_pointer(pointer, shape);

  const auto two = [&](std::string_view first, std::string_view second, const auto& read_second) {
    Duration location{};
    bool good = false;
    read(session_, of, inner, [&](ScenarioVisitor& v) {
      v.required({first, second});
      v.duration(first, location, kAnyDuration, "");
      read_second(v, second);
      good = true;
    });
    return good ? location : Duration::zero();
  };

  if (shape == "exponential") {
    if (Duration mean{}; read_duration(of, inner, kAnyDuration, mean)) value = Distribution::exponential(mean);
  } else if (shape == "uniform") {
    Duration low{};
    Duration high{};
    if (!of.is(Json::Type::kArray) || of.items.size() != 2) {
      return expected(of, inner, "two durations, such as [\"1us\", \"3us\"]");
    }
    const bool good = read_duration(of.items[0], child_pointer(inner, 0), kAnyDuration, low);
    if (!read_duration(of.items[1], child_pointer(inner, 1), kAnyDuration, high) || !good) return;
    if (low > high) return error(of, inner, "expected the smaller duration first");
    value = Distribution::uniform(low, high);
  } else if (shape == "normal") {
    Duration stddev{};
    const Duration mean = two(
        "mean", "stddev", [&](ScenarioVisitor& v, std::string_view key) { v.duration(key, stddev, kAnyDuration, ""); });
    value = Distribution::normal(mean, stddev);
  } else if (shape == "lognormal") {
    double sigma = 1;
    const Duration median = two(
        "median", "sigma", [&](ScenarioVisitor& v, std::string_view key) { v.real(key, sigma, kLognormalSigmas, ""); });
    value = Distribution::lognormal(median, sigma);
  } else if (shape == "pareto") {
    double form = 1;
    const Duration scale =
        two("scale", "shape", [&](ScenarioVisitor& v, std::string_view key) { v.real(key, form, kParetoShapes, ""); });
    value = Distribution::pareto(scale, form);
  } else if (shape == "empirical") {
    if (!of.is(Json::Type::kArray) || of.items.empty() || of.items.size() > kMostEmpiricalValues) {
      return expected(of, inner, fmt::format("an array of 1 to {} durations", kMostEmpiricalValues));
    }
    std::vector<Duration> values(of.items.size());
    bool good = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      good = read_duration(of.items[i], child_pointer(inner, i), kAnyDuration, values[i]) && good;
    }
    if (good) value = Distribution::empirical(std::move(values));
  } else {
    session_.errors.add(member.place, inner,
                        fmt::format("no distribution \"{}\"{}", shape, known_instead(shape, kShapes)));
  }
}

}  // namespace vcpusim
