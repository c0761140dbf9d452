#include "models/catalogue.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/check.h"

// The .def files are written by vcpusim_family() in models/CMakeLists.txt: one VCPUSIM_KIND(name) a kind.
#define VCPUSIM_KIND(name) LockKind name();
namespace vcpusim::locks {
#include "locks.def"
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) SchedulerKind name();
namespace vcpusim::schedulers {
#include "schedulers.def"
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) AssistKind name();
namespace vcpusim::assists {
#include "assists.def"
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) OperationKind name();
namespace vcpusim::operations {
#include "operations.def"
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) MachineKind name();
namespace vcpusim::machines {
#include "machines.def"
}
#undef VCPUSIM_KIND

namespace vcpusim {
namespace {

template <class Entry>
std::vector<Entry> sorted_by_name(std::vector<Entry> entries) {
  std::ranges::sort(entries, {}, &Entry::name);
  const auto clash = std::ranges::adjacent_find(entries, {}, &Entry::name);
  SIM_CHECK(clash == entries.end(), "two kinds are called " + std::string(clash->name));
  return entries;
}

template <class Entry>
const Entry* find(std::span<const Entry> sorted, std::string_view name) {
  const auto at = std::ranges::lower_bound(sorted, name, {}, &Entry::name);
  return at != sorted.end() && at->name == name ? &*at : nullptr;
}

// Writes the values of one Kind into the fields that a description visits.
class ParamSetter final : public ParamVisitor {
 public:
  explicit ParamSetter(const Kind& kind) : kind_(kind) {}

  void duration(std::string_view key, Duration& value, DurationRange, std::string_view) override { set(key, value); }
  void cycles(std::string_view key, Cycles& value, IntegerRange, std::string_view) override { set(key, value); }
  void integer(std::string_view key, std::int64_t& value, IntegerRange, std::string_view) override { set(key, value); }
  void real(std::string_view key, double& value, RealRange, std::string_view) override { set(key, value); }
  void flag(std::string_view key, bool& value, std::string_view) override { set(key, value); }

  void group(std::string_view key, std::string_view,
             const std::function<void(ParamVisitor&)>& describe_fields) override {
    const std::size_t outer = prefix_.size();
    prefix_.append(key).append(".");
    describe_fields(*this);
    prefix_.resize(outer);
  }

  std::size_t fields_set() const { return fields_set_; }

 protected:
  void choice_index(std::string_view key, std::size_t& index, std::span<const std::string_view> names,
                    std::string_view) override {
    std::string name(names[index]);
    set(key, name);
    index = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    SIM_CHECK(index < names.size(), kind_.name + "." + prefix_ + std::string(key) + " cannot be " + name);
  }

 private:
  template <class T>
  void set(std::string_view key, T& value) {
    const auto at = kind_.params.find(prefix_ + std::string(key));
    if (at == kind_.params.end()) return;
    const T* given = std::get_if<T>(&at->second);
    SIM_CHECK(given != nullptr, kind_.name + "." + at->first + " has a value of another type");
    value = *given;
    ++fields_set_;
  }

  const Kind& kind_;
  std::string prefix_;  // of the group being visited: "" or "outer.inner."
  std::size_t fields_set_ = 0;
};

}  // namespace

#define VCPUSIM_KIND(name) locks::name(),
std::span<const LockKind> lock_kinds() {
  static const std::vector<LockKind> kinds = sorted_by_name<LockKind>({
#include "locks.def"
  });
  return kinds;
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) schedulers::name(),
std::span<const SchedulerKind> scheduler_kinds() {
  static const std::vector<SchedulerKind> kinds = sorted_by_name<SchedulerKind>({
#include "schedulers.def"
  });
  return kinds;
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) assists::name(),
std::span<const AssistKind> assist_kinds() {
  static const std::vector<AssistKind> kinds = sorted_by_name<AssistKind>({
#include "assists.def"
  });
  return kinds;
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) operations::name(),
std::span<const OperationKind> operation_kinds() {
  static const std::vector<OperationKind> kinds = sorted_by_name<OperationKind>({
#include "operations.def"
  });
  return kinds;
}
#undef VCPUSIM_KIND

#define VCPUSIM_KIND(name) machines::name(),
std::span<const MachineKind> machine_kinds() {
  static const std::vector<MachineKind> kinds = sorted_by_name<MachineKind>({
#include "machines.def"
  });
  return kinds;
}
#undef VCPUSIM_KIND

const AssistKind* find_assist_kind(std::string_view name) { return find(assist_kinds(), name); }
const LockKind* find_lock_kind(std::string_view name) { return find(lock_kinds(), name); }
const OperationKind* find_operation_kind(std::string_view name) { return find(operation_kinds(), name); }
const SchedulerKind* find_scheduler_kind(std::string_view name) { return find(scheduler_kinds(), name); }
const MachineKind* find_machine_kind(std::string_view name) { return find(machine_kinds(), name); }

void apply_params(const Kind& kind, const std::function<void(ParamVisitor&)>& describe) {
  ParamSetter setter(kind);
  describe(setter);
  SIM_CHECK(setter.fields_set() == kind.params.size(), kind.name + " has no parameter of some name given to it");
}

}  // namespace vcpusim
