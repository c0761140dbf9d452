// How scenario values are written as text: durations, cycle counts, names; and what to say when they are not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/time.h"

namespace vcpusim {

// "13.5ns", "2ms", "4096cycles": digits, optionally a fraction, and one of the units ps ns us ms s min h cycles,
// without a space. A sign is read, so that a negative value can be told apart from nonsense. Conversion is exact:
// what is finer than a picosecond or a cycle, or beyond 64 bits, is refused.
using SpanText = std::variant<Duration, Cycles>;
struct SpanResult {
  std::optional<SpanText> value;
  std::string problem;  // if there is no value: continues "... ; got TEXT", or "" for "not of this form at all"
};
SpanResult parse_span(std::string_view text);

// The regular expression (ECMA) that parse_span's form without a sign amounts to.
inline constexpr std::string_view kSpanPattern = R"(^([0-9]+(\.[0-9]+)?(ps|ns|us|ms|s|min|h)|[0-9]+cycles)$)";

// The shortest exact form: 13500 ps is "13.5ns", 3600 s is "1h", zero is "0s". parse_span reads it back.
std::string format_duration(Duration d);
std::string format_cycles(Cycles c);

// Names that can stand in a dotted path: a letter or underscore, then letters, digits, "_" and "-"; 64 at most.
bool is_name(std::string_view text);
inline constexpr std::string_view kNamePattern = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$";

// The candidate that differs from `word` by the fewest inserted, removed, changed or swapped letters, if they are
// few enough to be a slip; the first of several.
std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> candidates);

// `; did you mean "x"?` or nothing.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

// "a, b, c", cut after 40; "none" for none.
std::string comma_list(std::span<const std::string> names);

// What to add to "no such thing as WORD": `; did you mean "x"? known: a, b, x`. `label` takes the place of "known".
std::string known_instead(std::string_view word, std::span<const std::string> known, std::string_view label = "known");

}  // namespace vcpusim
