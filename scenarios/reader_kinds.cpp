// How a Reader reads what comes from the catalogue: kinds with their parameters, and machines.

#include <fmt/format.h>

#include "models/catalogue.h"
#include "scenarios/reader.h"
#include "scenarios/text_forms.h"

namespace vcpusim {
namespace {

// "no lock "tiket"; did you mean "ticket"? known: mcs, ticket"
std::string no_such(std::string_view noun, std::string_view name, const std::vector<std::string>& names) {
  return fmt::format("no {} {}{}", noun, Json::string(std::string(name), {}).describe(), known_instead(name, names));
}

}  // namespace

Kind Reader::read_kind(const Json& node, const std::string& pointer, const KindFamily& family) {
  const bool object = node.is(Json::Type::kObject);
  const Json* kind = object ? node.find("kind") : &node;
  std::string name;
  if (kind == nullptr && node.bare_name) {
    name = *node.bare_name;
  } else if (kind == nullptr) {
    error(node, pointer, "the key \"kind\" is missing");
    return {};
  } else if (!kind->is(Json::Type::kString)) {
    expected(
        *kind, object ? child_pointer(pointer, "kind") : pointer,
        fmt::format("the name of a {}{}", family.noun, object ? "" : ", or an object with \"kind\" and parameters"));
    return {};
  } else {
    name = kind->text;
  }
  const KindFamily::Entry* entry = family.find(name);
  if (entry == nullptr) {
    error(kind != nullptr ? *kind : node, object ? child_pointer(pointer, "kind") : pointer,
          no_such(family.noun, name, family.names()));
    return {};
  }
  Kind result{name, {}};
  if (object) result.params = read_parameters(node, pointer, *entry, "kind");
  return result;
}

// The parameters that `object` gives; its key `name_key`, if any, is not one of them.
std::map<std::string, ParamValue> Reader::read_parameters(const Json& object, const std::string& pointer,
                                                          const KindFamily::Entry& entry, std::string_view name_key) {
  std::map<std::string, ParamValue> params;
  Reader reader(session_, object, pointer);
  if (!name_key.empty()) reader.find(name_key);
  reader.captured_ = &params;
  entry.describe(reader);
  reader.finish();
  return params;
}

void Reader::kind(std::string_view key, Kind& value, const KindFamily& family, std::string_view) {
  if (const Json* node = find(key); node != nullptr) value = read_kind(*node, at(key), family);
}

void Reader::switches(std::string_view key, std::map<std::string, Kind>& on, const KindFamily& family,
                      std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  const std::string here = at(key);
  if (!node->is(Json::Type::kObject)) {
    return expected(*node, here, fmt::format("an object of {}s by name", family.noun));
  }
  for (const Json::Member& member : node->members) {
    const std::string pointer = child_pointer(here, member.key);
    const KindFamily::Entry* entry = family.find(member.key);
    if (entry == nullptr) {
      session_.errors.add(member.place, pointer, no_such(family.noun, member.key, family.names()));
    } else if (member.value.is(Json::Type::kObject)) {
      on[member.key] = {member.key, read_parameters(member.value, pointer, *entry, "")};
    } else if (!member.value.is(Json::Type::kBool)) {
      expected(member.value, pointer, "true, false or an object of parameters");
    } else if (member.value.boolean) {
      on[member.key] = {member.key, {}};
    }
  }
}

void Reader::affinity(std::string_view key, AffinityConfig& value, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  const std::string here = at(key);
  if (node->is(Json::Type::kString) && node->text == "any") {
    value = {};
  } else if (node->is(Json::Type::kString) && node->text == "one_to_one") {
    value = {AffinityConfig::Rule::kOneToOne, {}};
  } else if (node->is(Json::Type::kArray)) {
    value = {AffinityConfig::Rule::kLists, {}};
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const Json& set = node->items[i];
      const std::string pointer = child_pointer(here, i);
      if (!set.is(Json::Type::kArray) || set.items.empty()) {
        expected(set, pointer, "an array of at least one pCPU");
        continue;
      }
      auto& pcpus = value.lists.emplace_back();
      for (std::size_t k = 0; k < set.items.size(); ++k) {
        const auto pcpu = set.items[k].as_integer();
        if (!pcpu || *pcpu < 0 || *pcpu >= kMostPcpus) {
          expected(set.items[k], child_pointer(pointer, k), "the number of a pCPU, from 0");
        } else {
          pcpus.push_back(*pcpu);
        }
      }
    }
  } else {
    expected(*node, here, "\"any\", \"one_to_one\" or an array with one list of pCPUs per vCPU");
  }
}

void Reader::locks(std::string_view key, std::vector<LockConfig>& value, const KindFamily& family, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  if (!node->is(Json::Type::kObject)) return expected(*node, at(key), "an object of locks by name");
  if (node->members.size() > kMostLocks) {
    return error(*node, at(key), fmt::format("expected at most {} locks; got {}", kMostLocks, node->members.size()));
  }
  for (const Json::Member& member : node->members) {
    const std::string pointer = child_pointer(at(key), member.key);
    if (!is_name(member.key)) {
      session_.errors.add(
          member.place, pointer,
          "expected a name for the lock (a letter or \"_\", then letters, digits, \"_\" or \"-\"; at most 64)");
    }
    value.push_back({member.key, read_kind(member.value, pointer, family)});
  }
}

void Reader::machine(std::string_view key, MachineConfig& value, std::string_view) {
  const Json* node = find(key);
  if (node == nullptr) return;
  const std::string pointer = at(key);
  const bool object = node->is(Json::Type::kObject);
  const Json* preset = object ? node->find("preset") : node;
  if (preset == nullptr && node->bare_name) preset = node;
  if (preset != nullptr) {
    const std::string& name = preset == node && object ? *node->bare_name : preset->text;
    const std::string where = object ? child_pointer(pointer, "preset") : pointer;
    if (!preset->is(Json::Type::kString) && !(object && preset == node)) {
      return expected(*preset, where, "the name of a machine" + std::string(object ? "" : ", or an object"));
    }
    const MachineKind* kind = find_machine_kind(name);
    if (kind == nullptr) {
      std::vector<std::string> names;
      for (const MachineKind& known : machine_kinds()) names.emplace_back(known.name);
      return error(*preset, where, no_such("machine", name, names));
    }
    value = kind->make();
    value.name = name;
  } else {
    value = {};
    value.name = kCustomMachine;
  }
  session_.clock = &value.clock;
  if (!object) return;
  Reader reader(session_, *node, pointer);
  reader.find("preset");
  reader.all_required_ = preset == nullptr;
  // The costs may be given in cycles of the clock that stands beside them.
  value.describe(reader);
  reader.finish();
}

}  // namespace vcpusim
