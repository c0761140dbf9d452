#include "scenarios/comparison.h"
#include "scenarios/printer.h"
#include "scenarios/version.h"

namespace vcpusim {
namespace {

using Tree = nlohmann::ordered_json;

Tree set_json(const RunSet& set, const Point& part) {
  return {{"scenario", set.scenario}, {"digest", set.digest}, {"point", point_json(part)}};
}

Tree sample_json(const Summary& s) {
  return {{"n", s.count}, {"mean", s.mean},     {"stddev", s.stddev()},
          {"min", s.min}, {"median", s.median}, {"max", s.max}};
}

std::string_view name_of(DifferenceTest test) {
  switch (test) {
    case DifferenceTest::kWelch:
      return "welch";
    case DifferenceTest::kPooled:
      return "pooled";
    case DifferenceTest::kPaired:
      break;
  }
  return "paired";
}

Tree metric_json(const Point& point, const MetricComparison& metric) {
  Tree output{{"point", point_json(point)},
              {"metric", metric.metric},
              {"a", sample_json(metric.a)},
              {"b", sample_json(metric.b)}};
  if (!metric.difference) {
    output["verdict"] = "too_few_runs";
    return output;
  }
  const MeanDifference& d = *metric.difference;
  output["verdict"] = d.proven ? "difference" : "no_difference_proven";
  output["test"] = name_of(d.test);
  output["degrees_of_freedom"] = d.degrees;
  output["difference"] = d.difference;
  output["interval"] = Tree::array({d.difference - d.half_width, d.difference + d.half_width});
  output["relative"] = d.relative ? Tree(*d.relative) : Tree();
  output["relative_interval"] =
      d.relative_interval ? Tree::array({d.relative_interval->first, d.relative_interval->second}) : Tree();
  return output;
}

Tree number_json(const std::optional<AxisNumber>& value) {
  if (!value) return {};
  return value->unit == AxisNumber::Unit::kNone ? Tree(value->number) : Tree(value->text());
}

Tree crossover_json(const NamedCrossovers& of, const Crossover& c) {
  Tree output{{"point", point_json(c.point)}, {"metric", of.metric}, {"axis", of.axis}, {"winner", nullptr}};
  if (c.winner == Crossover::Winner::kNone) return output;
  output["winner"] = c.winner == Crossover::Winner::kA ? "a" : "b";
  output["everywhere"] = c.everywhere;
  output["from"] = number_json(c.from);
  output["interval"] = Tree::array({number_json(c.low), number_json(c.high)});
  output["last_of_several"] = c.again;
  return output;
}

}  // namespace

std::string comparison_text(const RunSet& a, const RunSet& b, const Comparison& comparison,
                            std::span<const NamedCrossovers> crossovers) {
  Tree metrics = Tree::array();
  for (const PointComparison& point : comparison.points) {
    for (const MetricComparison& metric : point.metrics) metrics.push_back(metric_json(point.point, metric));
  }
  Tree output{{"schema", "vcpusim.comparison/1"},      {"vcpusim", version()},
              {"confidence", comparison.confidence},   {"a", set_json(a, comparison.a)},
              {"b", set_json(b, comparison.b)},        {"points_only_in_a", comparison.only_a},
              {"points_only_in_b", comparison.only_b}, {"comparisons", std::move(metrics)}};
  if (!crossovers.empty()) {
    Tree list = Tree::array();
    for (const NamedCrossovers& of : crossovers) {
      for (const Crossover& c : of.crossovers) list.push_back(crossover_json(of, c));
    }
    output["crossovers"] = std::move(list);
  }
  return output.dump(1) + "\n";
}

}  // namespace vcpusim
