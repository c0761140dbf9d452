#include "scenarios/points.h"

#include <algorithm>

namespace vcpusim {

std::vector<Point> all_points(std::span<const Axis> axes) {
  std::vector<Point> points{{}};
  for (const Axis& axis : axes) {
    std::vector<Point> longer;
    longer.reserve(points.size() * axis.values.size());
    for (const Point& point : points) {
      for (const Json& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back({axis.path, value});
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<Setting> settings_at(std::span<const Setting> settings, const Point& point) {
  std::vector<Setting> all(settings.begin(), settings.end());
  for (const Coordinate& coordinate : point) all.push_back({coordinate.path, coordinate.value});
  return all;
}

bool check_points(const ScenarioDocument& document, std::span<const Setting> settings, std::span<const Point> points,
                  InputErrors& errors) {
  bool good = true;
  for (const Point& point : points) {
    if (!document.load(settings_at(settings, point), errors)) good = false;
  }
  return good;
}

bool agrees(const Point& point, const Point& part) {
  return std::ranges::all_of(part, [&](const Coordinate& wanted) {
    const auto has = std::ranges::find(point, wanted.path, &Coordinate::path);
    return has != point.end() && same_value(has->value, wanted.value);
  });
}

std::string describe_point(const Point& point) {
  std::string text;
  for (const Coordinate& coordinate : point) {
    if (!text.empty()) text += ' ';
    text += coordinate.path + "=" + value_text(coordinate.value);
  }
  return text;
}

}  // namespace vcpusim
