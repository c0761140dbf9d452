#include "scenarios/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <variant>

#include "scenarios/points.h"
#include "scenarios/printer.h"
#include "scenarios/scenario_checks.h"
#include "scenarios/version.h"
#include "sim/stats.h"

namespace vcpusim {
namespace {

using Output = nlohmann::ordered_json;

bool same_point(const Point& a, const Point& b) { return a.size() == b.size() && agrees(a, b); }

// `point` with other values of some of its coordinates.
Point moved(Point point, const Point& values) {
  for (Coordinate& coordinate : point) {
    const auto value = std::ranges::find(values, coordinate.path, &Coordinate::path);
    if (value != values.end()) coordinate.value = value->value;
  }
  return point;
}

std::optional<double> number(const MetricValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return {};
}

std::optional<double> metric_sum(std::string_view sum, const Metrics& metrics) {
  double total = 0;
  const auto terms = metric_terms(sum);
  if (!terms) return {};  // the checks of a scenario refuse it
  for (const MetricTerm& term : *terms) {
    const auto value = number_at(metrics, term.path);
    if (!value) return {};
    total += term.factor * *value;
  }
  return total;
}

std::optional<double> ratio(std::optional<double> value, std::optional<double> unit) {
  if (!value || !unit || *unit == 0) return {};
  return *value / *unit;
}

// Of one run, in the metric's unit.
std::optional<double> figure_value(const PublishedFigure& figure, const Metrics& metrics) {
  const auto value = metric_sum(figure.metric, metrics);
  return figure.over.empty() ? value : ratio(value, metric_sum(figure.over, metrics));
}

// One for each replication of which all that the figure needs was run and is there. None if nothing of it was run.
std::optional<std::vector<double>> figure_values(const PublishedFigure& figure, std::span<const RunRecord> records,
                                                 const Point& point) {
  std::vector<double> values;
  bool run = false;
  const Point base_point = moved(point, figure.relative_to);
  for (const RunRecord& record : records) {
    if (!same_point(record.point, point)) continue;
    const auto base = std::ranges::find_if(records, [&](const RunRecord& other) {
      return other.replication == record.replication && same_point(other.point, base_point);
    });
    if (base == records.end()) continue;
    run = true;
    auto value = figure_value(figure, record.result.metrics);
    if (!figure.relative_to.empty()) value = ratio(value, figure_value(figure, base->result.metrics));
    if (value) values.push_back(*value);
  }
  if (!run) return {};
  return values;
}

// "a.b.c" to {"a": {"b": {"c": ...}}}.
Output nested(const Metrics& metrics) {
  Output root = Output::object();
  for (const auto& [path, value] : metrics) {
    Output* at = &root;
    std::string_view rest = path;
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      at = &(*at)[std::string(rest.substr(0, dot))];
      rest.remove_prefix(dot + 1);
    }
    std::visit([&](const auto& v) { (*at)[std::string(rest)] = v; }, value);
  }
  return root;
}

// As it stands inside a document that is dumped with an indentation of 1.
std::string dump_at(const Output& value, std::size_t depth) {
  std::string text = value.dump(1);
  const std::string indentation = "\n" + std::string(depth, ' ');
  std::string indented;
  indented.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    if (c == '\n') {
      indented += indentation;  // no string has one that is not escaped
    } else {
      indented += c;
    }
  }
  return indented;
}

constexpr std::size_t kItemDepth = 2;  // of a run or a point's summary

}  // namespace

MetricSummary summarise_metric(std::span<const double> values) {
  const Summary s = summarise(values);
  MetricSummary metric{s.count, s.mean, s.stddev(), {}, s.min, s.median, s.max};
  if (s.count > 1) {
    // Not through long double, of which there is less under valgrind and on some machines.
    using Double = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
    const boost::math::students_t_distribution<double, Double> student(static_cast<double>(s.count - 1));
    // Six decimals of the quantile are the same with every maths library, its last bits are not.
    const double t = std::round(boost::math::quantile(boost::math::complement(student, 0.025)) * 1e6) / 1e6;
    const double half_width = t * s.standard_error();
    metric.ci95 = {s.mean - half_width, s.mean + half_width};
  }
  return metric;
}

std::optional<double> number_at(const Metrics& metrics, std::string_view path) {
  const auto metric = std::ranges::find(metrics, path, &std::pair<std::string, MetricValue>::first);
  return metric == metrics.end() ? std::nullopt : number(metric->second);
}

nlohmann::ordered_json summary_json(const MetricSummary& s) {
  const Output ci95 = s.ci95 ? Output::array({s.ci95->first, s.ci95->second}) : Output();
  return {{"n", s.n},     {"mean", s.mean},     {"stddev", s.stddev}, {"ci95", ci95},
          {"min", s.min}, {"median", s.median}, {"max", s.max}};
}

const MetricSummary* PointSummary::find(std::string_view metric) const {
  const auto at = std::ranges::find(metrics, metric, &std::pair<std::string, MetricSummary>::first);
  return at == metrics.end() ? nullptr : &at->second;
}

std::vector<PointSummary> summarise_points(std::span<const RunRecord> records) {
  std::vector<PointSummary> summary;
  for (std::size_t first = 0; first < records.size();) {
    std::size_t end = first + 1;
    while (end < records.size() && same_point(records[end].point, records[first].point)) ++end;
    const auto group = records.subspan(first, end - first);

    PointSummary& point = summary.emplace_back();
    point.point = group.front().point;
    std::map<std::string_view, std::vector<double>> values;
    for (const RunRecord& record : group) {
      for (const auto& [path, value] : record.result.metrics) {
        if (const auto real = number(value)) values[path].push_back(*real);
      }
    }
    for (const auto& [path, value] : group.front().result.metrics) {
      if (number(value)) point.metrics.emplace_back(path, summarise_metric(values[path]));
    }
    first = end;
  }
  return summary;
}

std::string run_text(const RunRecord& record) {
  Output run{{"point", point_json(record.point)},     {"seed", record.seed},
             {"replication", record.replication},     {"config", record.config},
             {"ended", name_of(record.result.ended)}, {"sim_time_s", to_seconds(record.result.sim_time)}};
  if (!record.result.why.empty()) run["why"] = record.result.why;
  run["metrics"] = nested(record.result.metrics);
  return dump_at(run, kItemDepth);
}

std::string summary_text(const PointSummary& point) {
  // As the sequence that an ordered object is: its operator[] would compare each path with all before it.
  Output::object_t metrics;
  for (const auto& [path, s] : point.metrics) metrics.Output::object_t::Container::emplace_back(path, summary_json(s));
  return dump_at({{"point", point_json(point.point)}, {"metrics", std::move(metrics)}}, kItemDepth);
}

ResultsHeader header_of(const Scenario& scenario) {
  return {std::string(version()), std::string(model_digest()), scenario.simulation.name, digest(scenario),
          dump_at(resolved_json(scenario), kItemDepth)};
}

ResultsWriter::ResultsWriter(Out out, const ResultsHeader& header) : out_(std::move(out)) {
  const auto quoted = [](const std::string& text) { return Output(text).dump(); };
  std::string head = fmt::format("{{\n \"schema\": {},\n \"vcpusim\": {},\n \"models\": {},\n",
                                 quoted("vcpusim.results/1"), quoted(header.vcpusim), quoted(header.models));
  if (header.missing_runs > 0) head += fmt::format(" \"missing_runs\": {},\n", header.missing_runs);
  head += fmt::format(" \"scenario\": {{\n  \"name\": {},\n  \"digest\": {},\n  \"resolved\": {}\n }},\n",
                      quoted(header.scenario), quoted(header.digest), header.resolved);
  out_(head + " \"runs\": [");
}

void ResultsWriter::item(std::string_view text) {
  out_(any_ ? ",\n  " : "\n  ");
  out_(text);
  any_ = true;
}

void ResultsWriter::run(std::string_view text) { item(text); }

void ResultsWriter::end_of_runs() {
  out_(any_ ? "\n ],\n \"summary\": [" : "],\n \"summary\": [");
  any_ = false;
}

void ResultsWriter::summary(std::string_view text) { item(text); }

void ResultsWriter::end() { out_(any_ ? "\n ]\n}\n" : "]\n}\n"); }

std::string results_text(const Scenario& scenario, std::span<const RunRecord> records,
                         std::span<const PointSummary> summary) {
  std::string text;
  ResultsWriter writer([&](std::string_view piece) { text += piece; }, header_of(scenario));
  for (const RunRecord& record : records) writer.run(run_text(record));
  writer.end_of_runs();
  for (const PointSummary& point : summary) writer.summary(summary_text(point));
  writer.end();
  return text;
}

std::string_view name_of(RunResult::Ended ended) {
  switch (ended) {
    case RunResult::Ended::kAtStop:
      return "at";
    case RunResult::Ended::kWorkloadsDone:
      return "workloads_done";
    case RunResult::Ended::kAtMost:
      return "at_most";
    case RunResult::Ended::kDeadlock:
      break;
  }
  return "deadlock";
}

std::vector<ExpectationResult> check_expectations(const Scenario& scenario, std::span<const PointSummary> summary) {
  std::vector<ExpectationResult> results;
  for (const Expectation& e : scenario.expect) {
    for (const PointSummary& point : summary) {
      if (!agrees(point.point, e.point)) continue;
      const auto base = std::ranges::find_if(summary, [other = moved(point.point, e.relative_to)](
                                                          const PointSummary& p) { return agrees(p.point, other); });
      if (base == summary.end()) continue;
      ExpectationResult& result = results.emplace_back(ExpectationResult{&e, point.point, {}, false});
      const MetricSummary* metric = point.find(e.metric);
      const MetricSummary* unit = base->find(e.metric);
      if (metric == nullptr || unit == nullptr) continue;
      if (e.relative_to.empty()) {
        result.mean = metric->mean;
      } else if (unit->mean != 0) {
        result.mean = metric->mean / unit->mean;
      }
      result.holds = result.mean && *result.mean >= e.at_least.value_or(*result.mean) &&
                     *result.mean <= e.at_most.value_or(*result.mean);
    }
  }
  return results;
}

std::vector<FigureResult> compare_figures(const Scenario& scenario, std::span<const RunRecord> records, double scale) {
  std::vector<FigureResult> results;
  for (const PublishedFigure& figure : scenario.published) {
    FigureResult& result = results.emplace_back(FigureResult{&figure, false, {}, {}, {}});
    const auto first = std::ranges::find_if(records, [&](const RunRecord& r) { return agrees(r.point, figure.point); });
    if (first == records.end()) continue;
    const auto values = figure_values(figure, records, first->point);
    if (!values) continue;
    result.run = true;
    if (!values->empty()) {
      double factor = units_per_metric_unit(figure.metric, figure.unit).value_or(1);
      const bool ratio = !figure.over.empty() || !figure.relative_to.empty();
      if (!ratio && units_per_metric_unit(figure.metric, "s") == 1.0) factor *= scale;
      std::vector<double> scaled;
      for (const double value : *values) scaled.push_back(value * factor);
      result.simulated = summarise_metric(scaled);
      if (figure.value) result.error = result.simulated->mean / *figure.value - 1;
    }
    if (!figure.tolerance && !figure.at_least && !figure.at_most) continue;
    const auto good = [&](double mean) {
      return (!figure.tolerance || std::abs(*result.error) <= *figure.tolerance) &&
             mean >= figure.at_least.value_or(mean) && mean <= figure.at_most.value_or(mean);
    };
    result.reproduced = result.simulated && good(result.simulated->mean);
  }
  return results;
}

FigureErrors figure_errors(std::span<const FigureResult> figures, bool fitted) {
  FigureErrors errors;
  for (const FigureResult& f : figures) {
    if (f.figure->fitted != fitted || !f.error) continue;
    ++errors.count;
    errors.mean += std::abs(*f.error);
    errors.worst = std::max(errors.worst, std::abs(*f.error));
  }
  if (errors.count > 0) errors.mean /= static_cast<double>(errors.count);
  return errors;
}

}  // namespace vcpusim
