#include "scenarios/axis_number.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "scenarios/text_forms.h"

namespace vcpusim {

std::string AxisNumber::text() const {
  const std::string digits = fmt::format("{:.4g}", number);
  const double short_number = std::strtod(digits.c_str(), nullptr);
  switch (unit) {
    case Unit::kPicoseconds:
      return format_duration(Duration(std::llround(short_number)));
    case Unit::kCycles:
      return format_cycles(Cycles{std::llround(short_number)});
    case Unit::kNone:
      break;
  }
  return digits;
}

std::optional<AxisNumber> axis_number(const Json& value) {
  using Unit = AxisNumber::Unit;
  if (const auto real = value.as_real()) return AxisNumber{*real, Unit::kNone};
  if (!value.is(Json::Type::kString)) return {};
  const auto span = parse_span(value.text).value;
  if (!span) return {};
  if (const auto* duration = std::get_if<Duration>(&*span)) {
    return AxisNumber{static_cast<double>(duration->count()), Unit::kPicoseconds};
  }
  return AxisNumber{static_cast<double>(std::get<Cycles>(*span).count), Unit::kCycles};
}

}  // namespace vcpusim
