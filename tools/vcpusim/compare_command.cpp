// vcpusim compare: are the results of two files different, in the manner of ministat(1)?

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "scenarios/comparison.h"
#include "scenarios/points.h"
#include "scenarios/text_forms.h"
#include "tools/vcpusim/command.h"
#include "tools/vcpusim/run_report.h"
#include "tools/vcpusim/terminal.h"

namespace vcpusim {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

struct NamedDirection {
  std::string metric;
  std::optional<Better> better;
};

struct CompareOptions {
  Texts files;  // one with `by`, else two
  std::string by;
  std::vector<NamedDirection> metrics;
  std::vector<NamedDirection> fail_if_worse;
  std::string crossover;
  ComparisonOptions test;
  std::string output;
};

// "METRIC", "METRIC:less" or "METRIC:more".
NamedDirection parse_metric(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  NamedDirection named{text.substr(0, colon), {}};
  if (colon == std::string::npos) {
    named.better = better_of(named.metric);
    return named;
  }
  const std::string_view direction = std::string_view(text).substr(colon + 1);
  if (direction != "less" && direction != "more") {
    throw UsageError(fmt::format("{}: expected METRIC:less or METRIC:more, whichever is better", text));
  }
  named.better = direction == "less" ? Better::kLess : Better::kMore;
  return named;
}

std::optional<CompareOptions> parse_comparison(const Command& command, const Texts& arguments) {
  po::options_description options("Options");
  options.add_options()("metric", po::value<Texts>()->composing()->value_name("METRIC"),
                        "compare this, or all below it (\"vms.web\"); may be repeated (default: all)")(
      "by", po::value<std::string>()->value_name("AXIS[=A,B]"),
      "compare two values of an axis of one file; which may be left out if it has two")(
      "fail-if-worse", po::value<Texts>()->composing()->value_name("METRIC"),
      "exit with 1 if B is proven worse than A in this at any point; METRIC:less or METRIC:more says which is better "
      "where the name does not tell; may be repeated")(
      "crossover", po::value<std::string>()->value_name("AXIS"),
      "from which value of the axis on one is better than the other in each METRIC (direction as above)")(
      "confidence", po::value<double>()->value_name("PERCENT"), "of each single test and interval (default: 95)")(
      "unpaired", "do not pair runs that have the same seed: Welch's test always")(
      "pooled", "Student's test of unpaired runs with one variance, to the digits of ministat(1)")(
      "output,o", po::value<std::string>()->value_name("OUT.json"), "all of it as JSON; \"-\" is standard output");
  const po::variables_map values = parse_command(command, arguments, options);
  if (values.contains("help")) return {};
  const auto text = [&](const char* name) { return values.contains(name) ? values[name].as<std::string>() : ""; };
  CompareOptions result;
  result.files = values["arguments"].as<Texts>();
  result.by = text("by");
  const std::size_t expected = result.by.empty() ? 2 : 1;
  if (result.files.size() != expected) {
    throw UsageError(fmt::format("expected {} results file{}; got {}", expected == 1 ? "one" : "two",
                                 expected == 1 ? " with --by" : "s, or one and --by", result.files.size()));
  }
  if (values.contains("metric"))
    std::ranges::transform(values["metric"].as<Texts>(), std::back_inserter(result.metrics), parse_metric);
  if (values.contains("fail-if-worse"))
    std::ranges::transform(values["fail-if-worse"].as<Texts>(), std::back_inserter(result.fail_if_worse), parse_metric);
  result.crossover = text("crossover");
  if (!result.crossover.empty() && result.metrics.empty()) throw UsageError("--crossover needs --metric");
  for (const auto& named :
       {result.fail_if_worse, result.crossover.empty() ? decltype(result.metrics)() : result.metrics}) {
    for (const NamedDirection& n : named) {
      if (!n.better) throw UsageError(fmt::format("say which is better: {0}:less or {0}:more", n.metric));
    }
  }
  if (values.contains("confidence")) {
    const double percent = values["confidence"].as<double>();
    if (!(percent >= 50 && percent <= 99.9999)) {
      throw UsageError(fmt::format("--confidence: expected from 50 to 99.9999; got {}", percent));
    }
    result.test.confidence = percent / 100;
  }
  result.test.unpaired = values.contains("unpaired");
  result.test.pooled = values.contains("pooled");
  result.output = text("output");
  return result;
}

struct Side {
  std::string file;
  Point part;
};

// The two sides that the command line asks for. None, with `errors`, if the file cannot be read.
std::optional<std::pair<Side, Side>> sides_of(const CompareOptions& options, InputErrors& errors) {
  if (options.by.empty()) return {{{options.files[0], {}}, {options.files[1], {}}}};
  const std::string& file = options.files[0];
  const std::size_t equals = options.by.find('=');
  const std::string axis = options.by.substr(0, equals);
  const auto known = axis_values(file, axis, errors);
  if (!known) return {};
  if (known->empty()) throw UsageError(fmt::format("--by {}: no such axis in {}", options.by, file));
  std::vector<Json> chosen;
  Texts names;
  for (const Json& value : *known) names.push_back(value_text(value));
  if (equals == std::string::npos) {
    chosen = *known;
  } else {
    const std::string list = options.by.substr(equals + 1);
    for (std::size_t start = 0; start <= list.size();) {
      const std::size_t end = std::min(list.find(',', start), list.size());
      const std::string name = list.substr(start, end - start);
      const auto at = std::ranges::find(names, name);
      if (at == names.end()) {
        throw UsageError(fmt::format("--by {}: no value \"{}\" (known: {})", options.by, name, comma_list(names)));
      }
      chosen.push_back((*known)[static_cast<std::size_t>(at - names.begin())]);
      start = end + 1;
    }
  }
  if (chosen.size() != 2) {
    throw UsageError(
        fmt::format("--by {}: expected two values; got {} (known: {})", options.by, chosen.size(), comma_list(names)));
  }
  return {{{file, {{axis, chosen[0]}}}, {file, {{axis, chosen[1]}}}}};
}

Texts wanted_metrics(const CompareOptions& options) {
  Texts wanted;
  for (const NamedDirection& named : options.metrics) wanted.push_back(named.metric);
  if (wanted.empty()) return {};
  for (const NamedDirection& named : options.fail_if_worse) wanted.push_back(named.metric);
  return wanted;
}

bool is_at_or_below(std::string_view metric, std::string_view beginning) {
  return metric.starts_with(beginning) && (metric.size() == beginning.size() || metric[beginning.size()] == '.');
}

// Everything that was asked for must be there, or a gate that was misspelt would always be open.
void check_metrics(const CompareOptions& options, const RunSet& set, const Side& side) {
  const auto check = [&](const NamedDirection& named, bool whole) {
    const auto meant = [&](const std::string& metric) {
      return whole ? metric == named.metric : is_at_or_below(metric, named.metric);
    };
    if (std::ranges::any_of(set.metrics, meant)) return;
    InputErrors none;
    const auto all = RunSet::read(side.file, side.part, {}, none);
    throw UsageError(fmt::format("{}: no metric \"{}\"{}", side.file, named.metric,
                                 suggestion(named.metric, all ? all->metrics : Texts())));
  };
  for (const NamedDirection& named : options.metrics) check(named, !options.crossover.empty());
  for (const NamedDirection& named : options.fail_if_worse) check(named, true);
}

std::string confidence_text(const Comparison& comparison) {
  const double percent = 100 * comparison.confidence;
  const std::string one_digit = fmt::format("{:.1f}", percent);
  return (std::stod(one_digit) == percent ? one_digit : fmt::format("{:.10g}", percent)) + "% confidence";
}

std::string verdict_text(const Comparison& comparison, const MetricComparison& metric) {
  if (!metric.difference) return "Too few runs to compare";
  return fmt::format("{} at {}", metric.difference->proven ? "Difference" : "No difference proven",
                     confidence_text(comparison));
}

std::string at_text(const Point& point) {
  const std::string text = describe_point(point);
  return text.empty() ? text : " at " + text;
}

std::string relative_text(const MeanDifference& d) {
  std::string text = fmt::format("{:g}%", 100 * *d.relative);
  if (!d.relative_interval) return text;
  const auto& [low, high] = *d.relative_interval;
  if (d.test == DifferenceTest::kPooled) return text + fmt::format(" +/- {:g}%", 100 * (high - low) / 2);
  return text + fmt::format(" ({:g}% to {:g}%)", 100 * low, 100 * high);
}

// As ministat prints two samples.
std::string block_text(const Comparison& comparison, const PointComparison& point, const MetricComparison& metric) {
  std::string text = fmt::format("\n{}{}\n", metric.metric, at_text(point.point));
  text += "    N           Min           Max        Median           Avg        Stddev\n";
  for (const auto& [mark, s] : {std::pair('x', metric.a), std::pair('+', metric.b)}) {
    text += fmt::format("{} {:3} {:13.8g} {:13.8g} {:13.8g} {:13.8g} {:13.8g}\n", mark, s.count, s.min, s.max, s.median,
                        s.mean, s.stddev());
  }
  text += verdict_text(comparison, metric) + "\n";
  if (!metric.difference || !metric.difference->proven) return text;
  const MeanDifference& d = *metric.difference;
  text += fmt::format("\t{:g} +/- {:g}\n", d.difference, d.half_width);
  if (d.relative) text += "\t" + relative_text(d) + "\n";
  switch (d.test) {
    case DifferenceTest::kWelch:
      return text + fmt::format("\t(Welch's t, {:.1f} degrees of freedom)\n", d.degrees);
    case DifferenceTest::kPooled:
      return text + fmt::format("\t(Student's t, pooled s = {:g})\n", d.pooled_stddev);
    case DifferenceTest::kPaired:
      break;
  }
  return text + fmt::format("\t(Student's t, {} pairs of runs with the same seed)\n", d.pairs);
}

std::string difference_text(const MeanDifference& d) {
  if (!d.relative) return fmt::format("{} +/- {}", short_number(d.difference), short_number(d.half_width));
  if (!d.relative_interval) return fmt::format("{:+.2f}%", 100 * *d.relative);
  const auto& [low, high] = *d.relative_interval;
  return fmt::format("{:+.2f}% ({:+.2f} to {:+.2f})", 100 * *d.relative, 100 * low, 100 * high);
}

// One row for each metric and point, or for those whose difference is proven.
std::string table_text(const Comparison& comparison, bool all) {
  Texts axes;
  for (const PointComparison& point : comparison.points) {
    for (const Coordinate& c : point.point) {
      if (std::ranges::find(axes, c.path) == axes.end()) axes.push_back(c.path);
    }
  }
  Texts heading = short_names(axes);
  heading.insert(heading.end(), {"metric", "A", "B", "difference", "verdict"});
  TextTable table(heading);
  std::size_t tests = 0;
  std::size_t proven = 0;
  for (const PointComparison& point : comparison.points) {
    for (const MetricComparison& metric : point.metrics) {
      if (metric.difference) ++tests;
      const bool differs = metric.difference && metric.difference->proven;
      if (differs) ++proven;
      if (!all && !differs) continue;
      Texts row;
      for (const std::string& axis : axes) {
        const auto at = std::ranges::find(point.point, axis, &Coordinate::path);
        row.push_back(at == point.point.end() ? "-" : value_text(at->value));
      }
      row.insert(row.end(),
                 {metric.metric, short_number(metric.a.mean), short_number(metric.b.mean),
                  metric.difference ? difference_text(*metric.difference) : "-", verdict_text(comparison, metric)});
      table.add(row);
    }
  }
  if (tests == 0) return "Too few runs to compare (expected two or more of each point; see --replications)\n";
  std::string text = all || proven > 0 ? table.text() : "";
  if (!all && proven == 0) text += "No difference proven at " + confidence_text(comparison) + "\n";
  // Whoever asks many questions gets some wrong answers.
  return text + fmt::format("{} of {} comparisons differ; {:.1f} would by chance if nothing differed\n", proven, tests,
                            static_cast<double>(tests) * (1 - comparison.confidence));
}

std::string crossover_text(const Comparison& comparison, const NamedCrossovers& of, Better better, const Crossover& c) {
  std::string text =
      fmt::format("{} ({} is better){}: ", of.metric, better == Better::kLess ? "less" : "more", at_text(c.point));
  if (c.winner == Crossover::Winner::kNone) {
    return text + fmt::format("No difference proven at {}, at the largest {}\n", confidence_text(comparison), of.axis);
  }
  text += c.winner == Crossover::Winner::kA ? "A beats B" : "B beats A";
  if (c.everywhere) return text + fmt::format(" at every {}\n", of.axis);
  text += c.from ? fmt::format(" from {} {} on", of.axis, c.from->text())
                 : fmt::format(" from the smallest {} on or below it", of.axis);
  text +=
      fmt::format(" ({}: {}up to {})", confidence_text(comparison), c.low ? c.low->text() + " " : "", c.high->text());
  if (c.again) text += "; this is the last of several crossovers";
  return text + "\n";
}

std::string sides_text(const Comparison& comparison, const std::pair<Side, Side>& sides) {
  const auto side = [](char mark, char name, const Side& s, const Point& part, bool tell) {
    Point point = s.part;
    if (tell) point.insert(point.end(), part.begin(), part.end());
    const std::string text = describe_point(point);
    return fmt::format("{} {}: {}{}{}\n", mark, name, s.file, text.empty() ? "" : " ", text);
  };
  const bool tell = !agrees(comparison.a, comparison.b) || !agrees(comparison.b, comparison.a);
  return side('x', 'A', sides.first, comparison.a, tell) + side('+', 'B', sides.second, comparison.b, tell);
}

// What got worse, a line each.
std::string worse_text(const Comparison& comparison, std::span<const NamedDirection> metrics) {
  std::string text;
  for (const NamedDirection& named : metrics) {
    for (const PointComparison& point : comparison.points) {
      const MetricComparison* metric = Comparison::find(point, named.metric);
      if (metric == nullptr || !metric->difference || !metric->difference->proven) continue;
      if ((metric->difference->difference > 0) != (named.better == Better::kLess)) continue;
      text +=
          fmt::format("worse: {}{}: {} -> {} ({})\n", named.metric, at_text(point.point), short_number(metric->a.mean),
                      short_number(metric->b.mean), difference_text(*metric->difference));
    }
  }
  return text;
}

}  // namespace

int compare_command(const Command& command, const Texts& arguments) {
  const auto options = parse_comparison(command, arguments);
  if (!options) return kExitDone;

  InputErrors errors;
  const auto sides = sides_of(*options, errors);
  if (!sides) return report_errors(errors);
  const Texts wanted = wanted_metrics(*options);
  const auto a = RunSet::read(sides->first.file, sides->first.part, wanted, errors);
  const auto b = RunSet::read(sides->second.file, sides->second.part, wanted, errors);
  if (!errors.empty()) return report_errors(errors);
  check_metrics(*options, *a, sides->first);
  check_metrics(*options, *b, sides->second);

  const Comparison comparison = compare(*a, *b, options->test);
  if (comparison.points.empty()) {
    throw UsageError(fmt::format("{} and {} have no point in common", sides->first.file, sides->second.file));
  }
  std::vector<NamedCrossovers> found;
  std::string crossover_lines;
  if (!options->crossover.empty()) {
    for (const NamedDirection& named : options->metrics) {
      found.push_back(
          {named.metric, options->crossover, crossovers(comparison, options->crossover, named.metric, *named.better)});
      if (found.back().crossovers.empty()) {
        throw UsageError(
            fmt::format("--crossover {}: expected an axis of numbers with at least two runs of each "
                        "value, in both",
                        options->crossover));
      }
      for (const Crossover& c : found.back().crossovers) {
        crossover_lines += crossover_text(comparison, found.back(), *named.better, c);
      }
    }
  }
  int status = write_output(options->output, comparison_text(*a, *b, comparison, found));
  if (options->output != "-") {
    std::string text = sides_text(comparison, *sides);
    if (comparison.only_a + comparison.only_b > 0) {
      text += fmt::format("not compared: {} points only in A, {} only in B\n", comparison.only_a, comparison.only_b);
    }
    if (options->metrics.empty() || !options->crossover.empty()) {
      text += table_text(comparison, !options->crossover.empty());
    } else {
      for (const PointComparison& point : comparison.points) {
        for (const MetricComparison& metric : point.metrics) text += block_text(comparison, point, metric);
      }
    }
    print_out(text + crossover_lines);
  }
  const std::string worse = worse_text(comparison, options->fail_if_worse);
  print_error(worse);
  if (status == kExitDone && !worse.empty()) status = kExitFailed;
  return status;
}

}  // namespace vcpusim
