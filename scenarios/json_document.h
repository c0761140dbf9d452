// JSON text as a tree in which every value and every key knows where it stands.
//
// Strict JSON (RFC 8259) in UTF-8. Numbers are kept as they were written, so that nothing is lost before somebody
// knows what they mean. Objects keep the order of their members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/input_errors.h"

namespace vcpusim {

struct Json {
  enum class Type : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  struct Member;

  static Json string(std::string value, Place place);
  static Json object(Place place);

  bool is(Type t) const { return type == t; }
  // Null if this is no object or has no such member.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);

  std::optional<std::int64_t> as_integer() const;  // none if no number, not whole as written, or beyond 64 bits
  std::optional<double> as_real() const;           // none if no number

  // As in the text for scalars, "an object" and "an array" for the rest; long strings are cut.
  std::string describe() const;

  Type type = Type::kNull;
  bool boolean = false;
  std::string text;             // the value of a string, or a number as it was written
  std::vector<Json> items;      // of an array
  std::vector<Member> members;  // of an object
  // For an object that took the place of a bare name ("ticket" became {...} because a path led into it): the name.
  std::optional<std::string> bare_name;
  Place place;
};

struct Json::Member {
  std::string key;
  Place place;  // of the key
  Json value;
};

// Equal as values: places, order of members and ways of writing one number do not matter.
bool same_value(const Json& a, const Json& b);

inline constexpr std::size_t kMostJsonBytes = 16u << 20;
inline constexpr std::size_t kMostJsonValues = 500'000;  // about 100 MB of tree
inline constexpr std::size_t kDeepestJson = 128;         // a program of the deepest nesting allowed fits

// None if `text` is no JSON or exceeds one of the limits above; then `errors` says where and why. Duplicate keys
// are errors too, but the tree (with the first of them) is returned, so that the rest can be checked.
std::optional<Json> parse_json(std::string_view text, std::shared_ptr<const std::string> source, InputErrors& errors);

// "/vms/0" + "name" -> "/vms/0/name", with ~ and / escaped (RFC 6901).
std::string child_pointer(std::string_view pointer, std::string_view key);
std::string child_pointer(std::string_view pointer, std::size_t index);

}  // namespace vcpusim
