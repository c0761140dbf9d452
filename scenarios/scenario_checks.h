// What makes a scenario wrong although each of its values, taken alone, is right.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "scenarios/scenario.h"

namespace vcpusim {

// `report(pointer, message)` is called for each error; the pointer names a value or where it would be. `written` are
// the axes as the file has them, before settings reduced any.
using Report = std::function<void(const std::string& pointer, const std::string& message)>;
void check(const Scenario& scenario, const std::vector<Axis>& written, const Report& report);

// Only for a scenario as its file has it: a setting may change what was fitted.
void check_calibrations(const Scenario& scenario, const Report& report);

// How many of `unit` ("ms") are one of the metric's own unit, which its path tells ("..._s", "..._us.mean"); for an
// empty unit 1. None if the metric has no unit of time or `unit` is none.
std::optional<double> units_per_metric_unit(std::string_view metric, std::string_view unit);

}  // namespace vcpusim
