#include "scenarios/text_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace vcpusim {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t picoseconds;  // 0: cycles
};

constexpr std::array<Unit, 8> kUnits{{{"ps", 1},
                                      {"ns", 1'000},
                                      {"us", 1'000'000},
                                      {"ms", 1'000'000'000},
                                      {"s", 1'000'000'000'000},
                                      {"min", 60'000'000'000'000},
                                      {"h", 3'600'000'000'000'000},
                                      {"cycles", 0}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

SpanResult parse_span(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view rest = text.substr(negative ? 1 : 0);

  const auto take_digits = [&rest] {
    const auto count = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_digit) - rest.begin());
    const std::string_view digits = rest.substr(0, count);
    rest.remove_prefix(count);
    return digits;
  };
  const std::string_view whole = take_digits();
  std::string_view fraction;
  if (whole.empty()) return {};
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = take_digits();
    if (fraction.empty()) return {};
  }
  if (rest.empty()) return {};
  const auto unit = std::ranges::find(kUnits, rest, &Unit::name);
  if (unit == kUnits.end()) {
    const bool word =
        std::ranges::all_of(rest, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (!word) return {};
    return {{}, fmt::format("no unit \"{}\" (units: ps, ns, us, ms, s, min, h, cycles)", rest)};
  }
  if (unit->picoseconds == 0 && !fraction.empty()) return {{}, "cycles are whole numbers"};
  while (fraction.ends_with('0')) fraction.remove_suffix(1);

  // value = whole.fraction * scale, digit by digit: exact, or refused.
  constexpr detail::Int128 kMost = std::numeric_limits<std::int64_t>::max();
  const detail::Int128 scale = unit->picoseconds == 0 ? 1 : unit->picoseconds;
  detail::Int128 value = 0;
  for (const char digit : whole) {
    value = value * 10 + (digit - '0') * scale;
    if (value > kMost) return {{}, "longer than any duration here"};
  }
  detail::Int128 step = scale;
  for (const char digit : fraction) {
    if (step % 10 != 0 && (step * (digit - '0')) % 10 != 0) step = 0;
    if (step == 0) return {{}, "finer than a picosecond"};
    value += step * (digit - '0') / 10;
    step /= 10;
  }
  const auto signed_value = static_cast<std::int64_t>(negative ? -value : value);
  if (unit->picoseconds == 0) return {SpanText(Cycles{signed_value}), {}};
  return {SpanText(Duration{signed_value}), {}};
}

std::string format_duration(Duration d) {
  const std::int64_t picoseconds = d.count();
  if (picoseconds == 0) return "0s";
  for (const std::string_view name : {"h", "min"}) {
    const Unit& unit = *std::ranges::find(kUnits, name, &Unit::name);
    if (picoseconds % unit.picoseconds == 0) return fmt::format("{}{}", picoseconds / unit.picoseconds, name);
  }
  const Unit* unit = &kUnits[4];  // seconds
  const std::int64_t magnitude = picoseconds < 0 ? -picoseconds : picoseconds;
  while (magnitude < unit->picoseconds) --unit;
  std::string fraction;
  if (const std::int64_t rest = magnitude % unit->picoseconds; rest != 0) {
    fraction = fmt::format("{}", unit->picoseconds + rest).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    fraction.insert(0, ".");
  }
  return fmt::format("{}{}{}{}", picoseconds < 0 ? "-" : "", magnitude / unit->picoseconds, fraction, unit->name);
}

std::string format_cycles(Cycles c) { return fmt::format("{}cycles", c.count); }

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= 64 && letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || is_digit(c) || c == '-'; });
}

std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestWord = 100;  // nobody mistypes more; bounds the work
  if (word.size() > kLongestWord) return {};
  const std::string* nearest = nullptr;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    // Optimal string alignment: rows are prefixes of `word`, and only the last three are needed.
    std::vector<std::size_t> before;
    std::vector<std::size_t> above(candidate.size() + 1);
    std::iota(above.begin(), above.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::vector<std::size_t> row(candidate.size() + 1, i);
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (word[i - 1] == candidate[j - 1] ? 0u : 1u)});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1]) {
          row[j] = std::min(row[j], before[j - 2] + 1);
        }
      }
      before = std::exchange(above, std::move(row));
    }
    if (above.back() < fewest) {
      fewest = above.back();
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? std::nullopt : std::optional(*nearest);
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const auto nearest = nearest_name(word, candidates);
  return nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : "";
}

std::string comma_list(std::span<const std::string> names) {
  constexpr std::size_t kMost = 40;
  if (names.empty()) return "none";
  if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, ... ({} in all)", fmt::join(names.first(kMost), ", "), names.size());
}

std::string known_instead(std::string_view word, std::span<const std::string> known, std::string_view label) {
  const std::string near = suggestion(word, known);
  return fmt::format("{} {}: {}", near.empty() ? ";" : near, label, comma_list(known));
}

}  // namespace vcpusim
