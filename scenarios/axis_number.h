// The values of an axis as numbers, where it has an order.
#pragma once

#include <optional>
#include <string>

#include "scenarios/json_document.h"

namespace vcpusim {

struct AxisNumber {
  enum class Unit { kNone, kPicoseconds, kCycles };
  double number = 0;
  Unit unit = Unit::kNone;

  // 2.5, "13.5ns" or "4096cycles", with four significant digits.
  std::string text() const;
};

// Of a number, or a text that is a duration or a count of cycles; none of anything else.
std::optional<AxisNumber> axis_number(const Json& value);

}  // namespace vcpusim
