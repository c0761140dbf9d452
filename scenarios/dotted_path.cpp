#include "scenarios/dotted_path.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "scenarios/text_forms.h"

namespace vcpusim {
namespace {

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t dot = path.find('.');
    parts.push_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

// The item that `part` means, by name first.
std::optional<std::size_t> item_index(const Json& array, std::string_view part) {
  for (std::size_t i = 0; i < array.items.size(); ++i) {
    const Json* name = array.items[i].find("name");
    if (name != nullptr && name->is(Json::Type::kString) && name->text == part) return i;
  }
  std::size_t index = 0;
  const auto [stop, problem] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool whole = problem == std::errc() && stop == part.data() + part.size();
  return whole && index < array.items.size() ? std::optional(index) : std::nullopt;
}

std::vector<std::string> item_names(const Json& array) {
  std::vector<std::string> names;
  for (const Json& item : array.items) {
    const Json* name = item.find("name");
    names.push_back(name != nullptr && name->is(Json::Type::kString) ? name->text : std::to_string(names.size()));
  }
  return names;
}

std::string shown(std::string_view pointer) { return pointer.empty() ? "/" : std::string(pointer); }

}  // namespace

const Json* find_path(const Json& root, std::string_view path) {
  const Json* at = &root;
  for (const std::string_view part : components(path)) {
    if (at->is(Json::Type::kArray)) {
      const auto index = item_index(*at, part);
      at = index ? &at->items[*index] : nullptr;
    } else {
      at = at->find(part);
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

bool set_path(Json& root, std::string_view path, Json value, InputErrors& errors) {
  const Place place = value.place;
  Json* at = &root;
  std::string pointer;
  for (const std::string_view part : components(path)) {
    if (part.empty()) {
      errors.add(place, pointer, fmt::format("\"{}\" is no dotted path", path));
      return false;
    }
    switch (at->type) {
      case Json::Type::kArray: {
        const auto index = item_index(*at, part);
        if (!index) {
          const std::vector<std::string> names = item_names(*at);
          errors.add(place, pointer,
                     fmt::format("no item \"{}\" in {}{}", part, shown(pointer), known_instead(part, names, "items")));
          return false;
        }
        at = &at->items[*index];
        pointer = child_pointer(pointer, *index);
        continue;
      }
      case Json::Type::kObject:
        break;
      case Json::Type::kString: {
        Json object = Json::object(at->place);
        object.bare_name = std::move(at->text);
        *at = std::move(object);
        break;
      }
      default:
        errors.add(place, pointer, fmt::format("\"{}\" leads into {}, which has no parts", path, at->describe()));
        return false;
    }
    Json* member = at->find(part);
    if (member == nullptr) {
      at->members.push_back({std::string(part), place, Json::object(place)});
      member = &at->members.back().value;
    }
    at = member;
    pointer = child_pointer(pointer, part);
  }
  *at = std::move(value);
  return true;
}

}  // namespace vcpusim
