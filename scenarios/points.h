// The points of a scenario's `vary`: all combinations of its axes' values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace vcpusim {

// The first axis varies slowest. One empty point if there are no axes.
std::vector<Point> all_points(std::span<const Axis> axes);

// The settings that make a point out of the scenario that `settings` make.
std::vector<Setting> settings_at(std::span<const Setting> settings, const Point& point);

// Loads the scenario at every point, for its errors. False if there are any.
bool check_points(const ScenarioDocument& document, std::span<const Setting> settings, std::span<const Point> points,
                  InputErrors& errors);

// Whether `point` has all the coordinates of `part`.
bool agrees(const Point& point, const Point& part);

std::string point_text(const Point& point);  // as JSON on one line

// A text as it is, anything else as JSON.
std::string value_text(const Json& value);

// "threads=4 lock=ticket": for messages. Empty for the empty point.
std::string describe_point(const Point& point);

}  // namespace vcpusim
