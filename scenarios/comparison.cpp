#include "scenarios/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "scenarios/points.h"

namespace vcpusim {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

std::optional<double> real_of(const MetricValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return {};
}

const Json* coordinate(const Point& point, std::string_view path) {
  const auto at = std::ranges::find(point, path, &Coordinate::path);
  return at == point.end() ? nullptr : &at->value;
}

Point without(Point point, const Point& part) {
  std::erase_if(point, [&](const Coordinate& c) { return coordinate(part, c.path) != nullptr; });
  return point;
}

// The same for points with the same coordinates, in any order and however their numbers are written.
std::string key_of(const Point& point) {
  std::vector<std::string> parts;
  for (const Coordinate& c : point) {
    const auto real = c.value.as_real();
    parts.push_back(real ? fmt::format("{}={}", c.path, *real) : point_text({c}));
  }
  std::ranges::sort(parts);
  return fmt::format("{}", fmt::join(parts, "\n"));
}

bool is_wanted(std::string_view path, std::span<const std::string> wanted) {
  return wanted.empty() || std::ranges::any_of(wanted, [&](std::string_view beginning) {
           return path.starts_with(beginning) && (path.size() == beginning.size() || path[beginning.size()] == '.');
         });
}

// Puts runs where they belong. Most have the point and the metrics of the one before.
class Collector {
 public:
  Collector(RunSet& set, const Point& part, std::span<const std::string> wanted)
      : set_(set), part_(part), wanted_(wanted) {}

  void add(const RunRecord& record) {
    if (!agrees(record.point, part_)) return;
    RunSet::AtPoint& at = place_of(record.point);
    const std::size_t run = at.seeds.size();
    at.seeds.push_back(record.seed);
    const Metrics& metrics = record.result.metrics;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      const auto value = real_of(metrics[i].second);
      const auto metric = value ? index_of(i, metrics[i].first) : std::nullopt;
      if (!metric || !std::isfinite(*value)) continue;
      if (at.values.size() <= *metric) at.values.resize(set_.metrics.size());
      at.values[*metric].resize(run, kMissing);
      at.values[*metric].push_back(*value);
    }
  }

 private:
  RunSet::AtPoint& place_of(const Point& point) {
    std::string key = key_of(point);
    if (set_.points.empty() || key != last_key_) {
      const auto [at, fresh] = places_.try_emplace(key, set_.points.size());
      if (fresh) set_.points.push_back({without(point, part_), {}, {}});
      last_ = at->second;
      last_key_ = std::move(key);
    }
    return set_.points[last_];
  }

  std::optional<std::size_t> index_of(std::size_t position, const std::string& path) {
    if (position < at_position_.size() && at_position_[position].first == path) return at_position_[position].second;
    std::optional<std::size_t> index;
    if (is_wanted(path, wanted_)) {
      const auto [at, fresh] = indices_.try_emplace(path, set_.metrics.size());
      if (fresh) set_.metrics.push_back(path);
      index = at->second;
    }
    at_position_.resize(std::max(at_position_.size(), position + 1));
    at_position_[position] = {path, index};
    return index;
  }

  RunSet& set_;
  const Point& part_;
  const std::span<const std::string> wanted_;
  std::unordered_map<std::string, std::size_t> places_;
  std::string last_key_;
  std::size_t last_ = 0;
  std::unordered_map<std::string, std::size_t> indices_;
  std::vector<std::pair<std::string, std::optional<std::size_t>>> at_position_;  // of a run's metrics
};

// The coordinates that all points of the set have.
Point constant_part(const RunSet& set) {
  if (set.points.empty()) return {};
  Point part = set.points.front().point;
  for (const RunSet::AtPoint& at : set.points) {
    std::erase_if(part, [&](const Coordinate& c) { return !agrees(at.point, {c}); });
  }
  return part;
}

// Those of `part` that vary nowhere in the other set.
Point constant_in(const RunSet& other, const Point& other_part, Point part) {
  std::erase_if(part, [&](const Coordinate& c) {
    return coordinate(other_part, c.path) == nullptr &&
           std::ranges::any_of(other.points,
                               [&](const RunSet::AtPoint& at) { return coordinate(at.point, c.path) != nullptr; });
  });
  return part;
}

std::span<const double> values_of(const RunSet::AtPoint& at, std::size_t metric) {
  return metric < at.values.size() ? std::span<const double>(at.values[metric]) : std::span<const double>();
}

std::vector<double> numbers_of(std::span<const double> values) {
  std::vector<double> numbers(values.begin(), values.end());
  std::erase_if(numbers, [](double value) { return std::isnan(value); });
  return numbers;
}

// For each run of `a`, which run of `b` has its seed. None unless they have the same, each once.
std::optional<std::vector<std::size_t>> pairs_of(const RunSet::AtPoint& a, const RunSet::AtPoint& b) {
  if (a.seeds.size() != b.seeds.size()) return {};
  std::unordered_map<std::uint64_t, std::size_t> run_of;
  for (std::size_t i = 0; i < b.seeds.size(); ++i) {
    if (!run_of.try_emplace(b.seeds[i], i).second) return {};
  }
  std::vector<std::size_t> pairs;
  for (const std::uint64_t seed : a.seeds) {
    const auto at = run_of.find(seed);
    if (at == run_of.end()) return {};
    pairs.push_back(at->second);
    run_of.erase(at);
  }
  return pairs;
}

// `in_b` has the index in b of each of a's metrics.
std::vector<MetricComparison> compare_metrics(const RunSet& a, const RunSet::AtPoint& at_a, const RunSet::AtPoint& at_b,
                                              std::span<const std::optional<std::size_t>> in_b,
                                              const ComparisonOptions& options) {
  std::vector<MetricComparison> metrics;
  const auto pairs = options.unpaired || options.pooled ? std::nullopt : pairs_of(at_a, at_b);
  for (std::size_t metric = 0; metric < a.metrics.size(); ++metric) {
    if (!in_b[metric]) continue;
    const auto of_a = values_of(at_a, metric);
    const auto of_b = values_of(at_b, *in_b[metric]);
    std::vector<double> x = numbers_of(of_a);
    std::vector<double> y = numbers_of(of_b);
    if (x.empty() || y.empty()) continue;
    DifferenceTest test = options.pooled ? DifferenceTest::kPooled : DifferenceTest::kWelch;
    if (pairs && x.size() == at_a.seeds.size() && y.size() == at_b.seeds.size()) {
      test = DifferenceTest::kPaired;
      for (std::size_t run = 0; run < pairs->size(); ++run) y[run] = of_b[(*pairs)[run]];
    }
    metrics.push_back({a.metrics[metric], summarise(x), summarise(y), compare_means(x, y, test, options.confidence)});
  }
  return metrics;
}

// How much better A is than B at a value of the axis: the mean and the ends of its confidence interval.
struct Advantage {
  AxisNumber at;
  double mean;
  double low;
  double high;
};

// Where the line through the last point that is not above zero and its successor meets zero. None if all are above.
std::optional<AxisNumber> last_rise(std::span<const Advantage> line, double Advantage::*value) {
  for (std::size_t i = line.size(); i-- > 0;) {
    if (line[i].*value > 0) continue;
    if (i + 1 == line.size()) return line[i].at;
    const Advantage& below = line[i];
    const Advantage& above = line[i + 1];
    const double share = -(below.*value) / (above.*value - below.*value);
    return AxisNumber{below.at.number + share * (above.at.number - below.at.number), below.at.unit};
  }
  return {};
}

Crossover crossover_of(std::vector<Advantage> line) {
  Crossover result;
  std::ranges::sort(line, {}, [](const Advantage& a) { return a.at.number; });
  const Advantage& last = line.back();
  if (last.low <= 0 && last.high >= 0) return result;
  result.winner = last.low > 0 ? Crossover::Winner::kA : Crossover::Winner::kB;
  if (result.winner == Crossover::Winner::kB) {
    for (Advantage& a : line) a = {a.at, -a.mean, -a.high, -a.low};
  }
  result.everywhere = std::ranges::all_of(line, [](const Advantage& a) { return a.low > 0; });
  result.from = last_rise(line, &Advantage::mean);
  result.low = last_rise(line, &Advantage::high);
  result.high = last_rise(line, &Advantage::low);
  const auto better = std::ranges::find_if(line, [](const Advantage& a) { return a.low > 0; });
  result.again = std::any_of(better, line.end(), [](const Advantage& a) { return a.high < 0; });
  return result;
}

}  // namespace

std::optional<RunSet> RunSet::read(const std::filesystem::path& file, const Point& part,
                                   std::span<const std::string> wanted, InputErrors& errors) {
  RunSet set;
  Collector collector(set, part, wanted);
  const ResultsVisitor visitor{.header =
                                   [&](const ResultsHeader& header) {
                                     set.scenario = header.scenario;
                                     set.digest = header.digest;
                                   },
                               .run = [&](const RunRecord& record, std::string_view) { collector.add(record); }};
  if (!read_results(file, visitor, errors)) return {};
  return set;
}

std::optional<std::vector<Json>> axis_values(const std::filesystem::path& file, std::string_view axis,
                                             InputErrors& errors) {
  std::vector<Json> values;
  const auto add = [&](const RunRecord& record, std::string_view) {
    const Json* value = coordinate(record.point, axis);
    const auto same = [&](const Json& other) { return same_value(other, *value); };
    if (value != nullptr && std::ranges::none_of(values, same)) values.push_back(*value);
  };
  if (!read_results(file, {.header = {}, .run = add}, errors)) return {};
  return values;
}

std::optional<Better> better_of(std::string_view metric) {
  constexpr std::array<std::string_view, 6> kMore{"operations",         "operations_per_s", "acquisitions",
                                                  "acquisitions_per_s", "jain_fairness",    "delivered"};
  constexpr std::array<std::string_view, 20> kLess{"elapsed_s",
                                                   "per_task_s",
                                                   "wait_us",
                                                   "jitter_us",
                                                   "spin_s",
                                                   "idle_reserved_s",
                                                   "spin",
                                                   "overhead",
                                                   "steal",
                                                   "ready",
                                                   "costop",
                                                   "limited",
                                                   "holder_preemptions",
                                                   "holder_preempted_s",
                                                   "holder_preempted_us",
                                                   "waiter_preemptions",
                                                   "coalesced",
                                                   "spurious_wakeups",
                                                   "stacked",
                                                   "hold_us"};
  // Names of VMs, tasks and locks say nothing.
  bool is_name = false;
  for (std::size_t start = 0; start < metric.size();) {
    const std::size_t end = std::min(metric.find('.', start), metric.size());
    const std::string_view part = metric.substr(start, end - start);
    if (!is_name && std::ranges::find(kMore, part) != kMore.end()) return Better::kMore;
    if (!is_name && std::ranges::find(kLess, part) != kLess.end()) return Better::kLess;
    is_name = !is_name && (part == "vms" || part == "tasks" || part == "locks");
    start = end + 1;
  }
  return {};
}

const MetricComparison* Comparison::find(const PointComparison& point, std::string_view metric) {
  const auto at = std::ranges::find(point.metrics, metric, &MetricComparison::metric);
  return at == point.metrics.end() ? nullptr : &*at;
}

Comparison compare(const RunSet& a, const RunSet& b, const ComparisonOptions& options) {
  Comparison result{.confidence = options.confidence, .a = {}, .b = {}, .points = {}};
  const Point constant_a = constant_part(a);
  const Point constant_b = constant_part(b);
  result.a = constant_in(b, constant_b, constant_a);
  result.b = constant_in(a, constant_a, constant_b);

  std::unordered_map<std::string, const RunSet::AtPoint*> others;
  for (const RunSet::AtPoint& at : b.points) others.emplace(key_of(without(at.point, result.b)), &at);
  std::unordered_map<std::string_view, std::size_t> indices;
  for (std::size_t i = 0; i < b.metrics.size(); ++i) indices.emplace(b.metrics[i], i);
  std::vector<std::optional<std::size_t>> in_b;
  for (const std::string& metric : a.metrics) {
    const auto at = indices.find(metric);
    in_b.push_back(at == indices.end() ? std::nullopt : std::optional(at->second));
  }
  for (const RunSet::AtPoint& at : a.points) {
    const Point point = without(at.point, result.a);
    const auto other = others.find(key_of(point));
    if (other == others.end()) {
      ++result.only_a;
      continue;
    }
    result.points.push_back({point, compare_metrics(a, at, *other->second, in_b, options)});
    others.erase(other);
  }
  result.only_b = others.size();
  return result;
}

std::vector<Crossover> crossovers(const Comparison& comparison, std::string_view axis, std::string_view metric,
                                  Better better) {
  std::vector<std::pair<Point, std::vector<Advantage>>> lines;
  std::unordered_map<std::string, std::size_t> places;
  for (const PointComparison& point : comparison.points) {
    const Json* value = coordinate(point.point, axis);
    const auto at = value == nullptr ? std::nullopt : axis_number(*value);
    const MetricComparison* found = Comparison::find(point, metric);
    if (!at || found == nullptr || !found->difference) continue;
    const Point rest = without(point.point, {{std::string(axis), {}}});
    const auto [place, fresh] = places.try_emplace(key_of(rest), lines.size());
    if (fresh) lines.push_back({rest, {}});
    std::vector<Advantage>& line = lines[place->second].second;
    if (!line.empty() && line.front().at.unit != at->unit) continue;
    const MeanDifference& d = *found->difference;
    const double mean = better == Better::kLess ? d.difference : -d.difference;
    // What is within the rounding of sums is nothing.
    const bool nothing = !d.proven && std::abs(mean) > d.half_width;
    line.push_back(nothing ? Advantage{*at, 0, 0, 0} : Advantage{*at, mean, mean - d.half_width, mean + d.half_width});
  }
  std::vector<Crossover> results;
  for (auto& [rest, line] : lines) {
    results.push_back(crossover_of(std::move(line)));
    results.back().point = rest;
  }
  return results;
}

}  // namespace vcpusim
