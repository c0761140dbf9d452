#include "tools/vcpusim/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "scenarios/points.h"
#include "tools/vcpusim/terminal.h"

namespace vcpusim {

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    std::size_t dot = path.rfind('.');
    const auto ends_with_it = [&](const std::string& other) { return other.ends_with(path.substr(dot)); };
    while (dot != std::string::npos && std::ranges::count_if(paths, ends_with_it) > 1) {
      dot = dot == 0 ? std::string::npos : path.rfind('.', dot - 1);
    }
    names.push_back(dot == std::string::npos ? path : path.substr(dot + 1));
  }
  return names;
}

namespace {

std::vector<std::string> axis_names(const Scenario& scenario) {
  std::vector<std::string> paths;
  for (const Axis& axis : scenario.vary) paths.push_back(axis.path);
  return short_names(paths);
}

// "vms.g.tasks.t.elapsed_s" is shown as "t elapsed_s", with the VM before it if there are several.
struct Column {
  std::string metric;
  std::string heading;
};

std::vector<Column> columns_of(const Scenario& scenario) {
  constexpr std::array<std::string_view, 2> kOfTasks{"elapsed_s", "operations_per_s"};
  constexpr std::array<std::string_view, 2> kOfLocks{"wait_us.mean", "wait_us.p99"};
  std::vector<Column> columns;
  const auto add = [&](const VmConfig& vm, std::string_view part, std::string_view name, std::string_view metric) {
    const std::string owner = scenario.simulation.vms.size() > 1 ? vm.name + " " : "";
    columns.push_back(
        {fmt::format("vms.{}.{}.{}.{}", vm.name, part, name, metric), fmt::format("{}{} {}", owner, name, metric)});
  };
  for (const VmConfig& vm : scenario.simulation.vms) {
    for (const TaskConfig& task : vm.tasks) {
      for (const std::string_view metric : kOfTasks) add(vm, "tasks", task.name, metric);
    }
    for (const LockConfig& lock : vm.guest.locks) {
      for (const std::string_view metric : kOfLocks) add(vm, "locks", lock.name, metric);
    }
  }
  constexpr std::size_t kMostColumns = 8;  // the results file has the rest
  if (columns.size() > kMostColumns) columns.resize(kMostColumns);
  return columns;
}

std::string percent(double ratio) { return fmt::format("{:+.1f} %", 100 * ratio); }

// As most papers print it. The axis with fewer values goes across.
std::string pivot(const Scenario& scenario, std::span<const FigureResult> figures) {
  const std::size_t down = scenario.vary[0].values.size() < scenario.vary[1].values.size() ? 1 : 0;
  const Axis& rows = scenario.vary[down];
  const Axis& columns = scenario.vary[1 - down];
  std::vector<std::string> heading{axis_names(scenario)[down]};
  for (const Json& column : columns.values) {
    heading.insert(heading.end(), {value_text(column), "simulated", "error", ""});
  }
  TextTable table(heading);
  for (const Json& row : rows.values) {
    std::vector<std::string> cells{value_text(row)};
    for (const Json& column : columns.values) {
      const auto f = std::ranges::find_if(figures, [&](const FigureResult& figure) {
        return agrees({{rows.path, row}, {columns.path, column}}, figure.figure->point);
      });
      if (f == figures.end()) {
        cells.insert(cells.end(), {"-", "-", "-", ""});
      } else {
        cells.insert(cells.end(), {published_text(*f->figure), f->simulated ? short_number(f->simulated->mean) : "-",
                                   f->error ? percent(*f->error) : "-", f->figure->fitted ? "fitted" : ""});
      }
    }
    table.add(cells);
  }
  return table.text();
}

std::string list(const Scenario& scenario, std::span<const FigureResult> figures) {
  std::vector<std::string> heading = axis_names(scenario);
  heading.insert(heading.end(), {"metric", "published", "simulated", "error", ""});
  TextTable table(heading);
  for (const FigureResult& f : figures) {
    std::vector<std::string> cells;
    for (const Axis& axis : scenario.vary) {
      const auto at = std::ranges::find(f.figure->point, axis.path, &Coordinate::path);
      cells.push_back(at == f.figure->point.end() ? "any" : value_text(at->value));
    }
    cells.insert(cells.end(), {figure_text(*f.figure), published_text(*f.figure),
                               f.simulated ? short_number(f.simulated->mean) : "-", f.error ? percent(*f.error) : "-",
                               f.figure->fitted ? "fitted" : ""});
    table.add(cells);
  }
  return table.text();
}

}  // namespace

std::string published_text(const PublishedFigure& figure) {
  if (figure.value) return short_number(*figure.value);
  std::string text;
  if (figure.at_least) text = ">= " + short_number(*figure.at_least);
  if (figure.at_most) text += (text.empty() ? "<= " : ", <= ") + short_number(*figure.at_most);
  return text;
}

std::string figure_text(const PublishedFigure& figure) {
  std::string text = figure.what.empty() ? figure.metric : figure.what;
  if (figure.what.empty() && !figure.over.empty()) text = fmt::format("({}) / ({})", text, figure.over);
  if (figure.what.empty() && !figure.relative_to.empty())
    text += fmt::format(" relative to {}", describe_point(figure.relative_to));
  if (!figure.unit.empty()) text += fmt::format(" [{}]", figure.unit);
  return text;
}

std::string results_table(const Scenario& scenario, std::span<const PointSummary> summary) {
  std::vector<Column> columns = columns_of(scenario);
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(summary,
                                [&](const PointSummary& point) { return point.find(column.metric) != nullptr; });
  });
  std::vector<std::string> heading = axis_names(scenario);
  for (const Column& column : columns) heading.push_back(column.heading);
  if (heading.empty()) return {};
  TextTable table(heading);
  for (const PointSummary& point : summary) {
    std::vector<std::string> cells;
    for (const Coordinate& coordinate : point.point) cells.push_back(value_text(coordinate.value));
    for (const Column& column : columns) {
      const MetricSummary* metric = point.find(column.metric);
      std::string cell = metric == nullptr ? "-" : short_number(metric->mean);
      if (metric != nullptr && metric->ci95) cell += " +- " + short_number(metric->ci95->second - metric->mean);
      cells.push_back(std::move(cell));
    }
    table.add(cells);
  }
  return table.text();
}

std::vector<std::string> table_metrics(const Scenario& scenario) {
  std::vector<std::string> metrics;
  for (const Column& column : columns_of(scenario)) metrics.push_back(column.metric);
  return metrics;
}

std::string published_table(const Scenario& scenario, std::span<const RunRecord> records) {
  // A scenario of many points that was interrupted shows what it has.
  std::vector<FigureResult> figures = compare_figures(scenario, records);
  std::erase_if(figures, [](const FigureResult& f) { return !f.run; });
  if (figures.empty()) return {};
  const PublishedFigure& first = *figures.front().figure;
  const bool same_metric = std::ranges::all_of(figures, [&](const FigureResult& f) {
    return f.figure->metric == first.metric && f.figure->unit == first.unit && f.figure->over == first.over &&
           f.figure->relative_to.empty();
  });
  std::string text;
  if (scenario.vary.size() == 2 && same_metric) {
    text = fmt::format("{}{}, published and simulated\n", first.metric, first.unit.empty() ? "" : " in " + first.unit);
    text += pivot(scenario, figures);
  } else {
    text = list(scenario, figures);
  }
  return text + errors_text(figures);
}

std::string errors_text(std::span<const FigureResult> figures) {
  std::string text;
  for (const bool fitted : {false, true}) {
    const FigureErrors errors = figure_errors(figures, fitted);
    if (errors.count == 0) continue;
    text += fmt::format("{} {}: mean error {:.1f} %, worst {:.1f} %\n", errors.count, fitted ? "fitted" : "predicted",
                        100 * errors.mean, 100 * errors.worst);
  }
  return text;
}

std::string failed_expectations(std::span<const ExpectationResult> results) {
  std::string text;
  for (const ExpectationResult& result : results) {
    if (result.holds) continue;
    const Expectation& e = *result.expectation;
    const std::string point = describe_point(result.point);
    text += fmt::format("expectation failed{}{}: {}", point.empty() ? "" : " at ", point, e.metric);
    if (!e.relative_to.empty()) text += fmt::format(" relative to {}", describe_point(e.relative_to));
    text += fmt::format(" is {}", result.mean ? fmt::to_string(*result.mean) : "no metric of the results");
    if (e.at_least) text += fmt::format(", expected >= {}", *e.at_least);
    if (e.at_most) text += fmt::format("{} <= {}", e.at_least ? " and" : ", expected", *e.at_most);
    text += fmt::format(" ({})\n", e.why);
  }
  return text;
}

}  // namespace vcpusim
