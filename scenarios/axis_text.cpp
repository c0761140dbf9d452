#include "scenarios/axis_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

namespace vcpusim {
namespace {

constexpr std::size_t kMostValues = 100'000;

// "12.50ms" as 1250 hundredths of "ms": steps of decimal fractions add up exactly.
struct Decimal {
  std::int64_t digits = 0;
  std::size_t decimals = 0;
  std::string unit;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  const std::size_t unit = std::min(text.find_first_not_of("+-0123456789."), text.size());
  Decimal number{0, 0, std::string(text.substr(unit))};
  std::string digits(text.substr(0, unit));
  if (const std::size_t dot = digits.find('.'); dot != std::string::npos) {
    number.decimals = digits.size() - dot - 1;
    digits.erase(dot, 1);
  }
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number.digits);
  if (problem != std::errc() || end != digits.data() + digits.size()) return {};
  constexpr std::int64_t kMost = 1'000'000'000'000'000;  // so that sums of two do not overflow
  if (number.digits > kMost || number.digits < -kMost) return {};
  return number;
}

bool add_decimals(Decimal& number, std::size_t decimals) {
  for (; number.decimals < decimals; ++number.decimals) {
    if (__builtin_mul_overflow(number.digits, 10, &number.digits)) return false;
  }
  return true;
}

std::string decimal_text(Decimal number) {
  for (; number.decimals > 0 && number.digits % 10 == 0; --number.decimals) number.digits /= 10;
  std::string digits = fmt::format("{:0{}}", std::abs(number.digits), number.decimals + 1);
  if (number.decimals > 0) digits.insert(digits.size() - number.decimals, ".");
  return (number.digits < 0 ? "-" : "") + digits + number.unit;
}

// The values of LO:HI:STEP as texts. None if it is no range; empty if it is one that cannot be.
std::optional<std::vector<std::string>> range_values(std::string_view text) {
  std::vector<Decimal> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    const auto part = parse_decimal(text.substr(start, end - start));
    if (!part) return {};
    parts.push_back(*part);
    start = end + 1;
  }
  if (parts.size() != 3) return {};
  const std::size_t decimals = std::ranges::max(parts, {}, &Decimal::decimals).decimals;
  for (Decimal& part : parts) {
    if (part.unit != parts[0].unit || !add_decimals(part, decimals)) return std::vector<std::string>{};
  }
  const auto& [low, high, step] = std::tie(parts[0], parts[1], parts[2]);
  if (step.digits <= 0 || low.digits > high.digits) return std::vector<std::string>{};
  if ((high.digits - low.digits) / step.digits >= static_cast<std::int64_t>(kMostValues)) {
    return std::vector<std::string>{};
  }
  std::vector<std::string> values;
  for (Decimal value = low; value.digits <= high.digits; value.digits += step.digits) {
    values.push_back(decimal_text(value));
  }
  return values;
}

std::vector<std::string> list_values(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      values.back() += c;
      if (++i < text.size()) values.back() += text[i];
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

}  // namespace

std::optional<Axis> parse_axis(std::string_view option, std::string_view text, InputErrors& errors) {
  const std::string origin = fmt::format("{} {}", option, text);
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    errors.add(origin, "expected PATH=VALUE,VALUE... or PATH=LO:HI:STEP");
    return {};
  }
  const std::string_view path = text.substr(0, equals);
  const std::string_view written = text.substr(equals + 1);
  const auto range = range_values(written);
  if (range && range->empty()) {
    errors.add(origin,
               fmt::format("expected LO:HI:STEP with LO <= HI, STEP > 0, one unit and at most {} values", kMostValues));
    return {};
  }
  Axis axis{std::string(path), {}};
  for (const std::string& value : range ? *range : list_values(written)) {
    axis.values.push_back(make_setting(origin, path, value).value);
    const Json& last = axis.values.back();
    if (value.empty()) errors.add(origin, "an empty value (expected PATH=VALUE,VALUE...)");
    const auto same = [&](const Json& other) { return same_value(other, last); };
    if (!range && std::ranges::count_if(axis.values, same) > 1) {
      errors.add(origin, fmt::format("the value {} twice", last.describe()));
    }
  }
  return axis;
}

}  // namespace vcpusim
