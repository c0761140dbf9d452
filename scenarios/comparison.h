// Two sets of runs, metric by metric and point by point: are they different, and which is better?
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/axis_number.h"
#include "scenarios/input_errors.h"
#include "scenarios/mean_difference.h"
#include "scenarios/results_file.h"
#include "sim/stats.h"

namespace vcpusim {

// The runs of a file, or some of them.
struct RunSet {
  struct AtPoint {
    Point point;
    std::vector<std::uint64_t> seeds;         // of the runs
    std::vector<std::vector<double>> values;  // by metric, then by run; NaN where a run lacks it; may be too short
  };

  std::string scenario;  // its name
  std::string digest;
  std::vector<std::string> metrics;  // those that are numbers, in the order in which they first appeared
  std::vector<AtPoint> points;       // likewise

  // Only the runs at points that agree with `part`, whose coordinates are left out of the points; only the metrics of
  // which `wanted` has the path or the beginning of it ("vms.web" for all of that VM), or all if it is empty.
  static std::optional<RunSet> read(const std::filesystem::path& file, const Point& part,
                                    std::span<const std::string> wanted, InputErrors& errors);
};

// The values of an axis among the runs of a file, in the order in which they first appear.
std::optional<std::vector<Json>> axis_values(const std::filesystem::path& file, std::string_view axis,
                                             InputErrors& errors);

enum class Better : std::uint8_t { kLess, kMore };
// Of a metric, as far as its name tells: operations per second should be more, waits less; of events nobody knows.
std::optional<Better> better_of(std::string_view metric);

struct MetricComparison {
  std::string metric;
  Summary a;
  Summary b;
  std::optional<MeanDifference> difference;  // none with fewer than two runs of either
};

struct PointComparison {
  Point point;
  std::vector<MetricComparison> metrics;
};

struct Comparison {
  double confidence = kConfidence;
  // What is the same at all points of a set need not be so in the other: it is no part of the points below.
  Point a;
  Point b;
  std::vector<PointComparison> points;  // in the order of a
  std::size_t only_a = 0;               // points that the other has not got
  std::size_t only_b = 0;

  // The metric's, or null.
  static const MetricComparison* find(const PointComparison& point, std::string_view metric);
};

struct ComparisonOptions {
  double confidence = kConfidence;
  bool pooled = false;    // never Welch's test
  bool unpaired = false;  // never pairs
};

// Pairs, where both sets have the same seeds at a point; Welch's test otherwise.
Comparison compare(const RunSet& a, const RunSet& b, const ComparisonOptions& options);

// From which value of an axis on one of the two is better.
struct Crossover {
  enum class Winner : std::uint8_t { kNone, kA, kB };
  Point point;                     // without the axis
  Winner winner = Winner::kNone;   // at the largest value, if a difference is proven there
  bool everywhere = false;         // proven at each value
  std::optional<AxisNumber> from;  // where the difference changes its sign; none if it never does
  // Its confidence interval; no lower end if it may be below the smallest value.
  std::optional<AxisNumber> low;
  std::optional<AxisNumber> high;
  bool again = false;  // at a value below, the winner is proven better than at one between: this is the last crossover
};

// Between values, differences and the ends of their intervals are taken to run straight. Points where the axis has no
// number (or one of another unit), or the metric no difference, are left out.
std::vector<Crossover> crossovers(const Comparison& comparison, std::string_view axis, std::string_view metric,
                                  Better better);

struct NamedCrossovers {
  std::string metric;
  std::string axis;
  std::vector<Crossover> crossovers;
};
// Schema vcpusim.comparison/1.
std::string comparison_text(const RunSet& a, const RunSet& b, const Comparison& comparison,
                            std::span<const NamedCrossovers> crossovers);

}  // namespace vcpusim
