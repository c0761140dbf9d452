// vcpusim plan: how far overcommit, or another axis, can go before a target is missed.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "scenarios/axis_text.h"
#include "scenarios/planning.h"
#include "scenarios/points.h"
#include "scenarios/text_forms.h"
#include "tools/vcpusim/command.h"
#include "tools/vcpusim/terminal.h"

namespace vcpusim {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

constexpr double kMostOvercommit = 4;

struct PlanOptions {
  std::string file;
  std::vector<Target> targets;
  std::string over = "overcommit";
  Texts sets;
  std::string seed;
  std::size_t first = 3;
  std::size_t most = 50;
  unsigned threads = 1;
  std::string output;
};

std::optional<PlanOptions> parse_plan(const Command& command, const Texts& arguments) {
  po::options_description options("Options");
  options.add_options()("target", po::value<Texts>()->composing()->value_name("'METRIC<=VALUE'"),
                        "what the mean of a metric must satisfy (or >=); may be repeated: all of them")(
      "over", po::value<std::string>()->value_name("AXIS[=VALUES]"),
      "the axis (default: overcommit), with values LO:HI:STEP or A,B,C; without: those in the scenario's vary, or all "
      "overcommit ratios up to 4")("set", po::value<Texts>()->composing()->value_name("PATH=VALUE"),
                                   "set a value of the scenario; may be repeated")(
      "seed", po::value<std::string>()->value_name("N"), "seed of the first replication")(
      "replications", po::value<long long>()->value_name("N"), "runs of each value to begin with (default: 3)")(
      "max-replications", po::value<long long>()->value_name("N"),
      "runs of a value that is hard to decide (default: 50)")("jobs,j", po::value<long long>()->value_name("N"),
                                                              "runs at the same time (default: one a CPU)")(
      "output,o", po::value<std::string>()->value_name("OUT.json"), "all of it as JSON; \"-\" is standard output");
  const po::variables_map values = parse_command(command, arguments, options);
  if (values.contains("help")) return {};
  const Texts& files = values["arguments"].as<Texts>();
  if (files.size() != 1) throw UsageError(fmt::format("expected one scenario file; got {}", files.size()));
  PlanOptions result;
  result.file = files.front();
  if (!values.contains("target")) throw UsageError("expected at least one --target 'METRIC<=VALUE'");
  for (const std::string& text : values["target"].as<Texts>()) {
    const auto target = Target::parse(text);
    if (!target) throw UsageError(fmt::format("--target {}: expected METRIC<=VALUE or METRIC>=VALUE", text));
    result.targets.push_back(*target);
  }
  if (values.contains("over")) result.over = values["over"].as<std::string>();
  if (values.contains("set")) result.sets = values["set"].as<Texts>();
  if (values.contains("seed")) result.seed = values["seed"].as<std::string>();
  result.first = count_option(values, "replications", result.first, kMostReplications);
  if (result.first < 2) throw UsageError("--replications: expected 2 or more, to know how far chance goes; got 1");
  result.most = count_option(values, "max-replications", std::max(result.most, result.first), kMostReplications);
  if (result.most < result.first) throw UsageError("--max-replications: expected no fewer than --replications");
  result.threads =
      static_cast<unsigned>(count_option(values, "jobs", std::max(1u, std::thread::hardware_concurrency()), 1024));
  if (values.contains("output")) result.output = values["output"].as<std::string>();
  return result;
}

// Those of --over, or of the scenario. None, with `errors`, if they are wrong.
std::optional<Axis> axis_of(const PlanOptions& options, const Scenario& scenario, InputErrors& errors) {
  Axis axis{options.over, {}};
  if (options.over.find('=') != std::string::npos) {
    auto written = parse_axis("--over", options.over, errors);
    if (!written) return {};
    axis = std::move(*written);
  } else if (const auto at = std::ranges::find(scenario.vary, options.over, &Axis::path); at != scenario.vary.end()) {
    axis = *at;
  } else if (options.over == "overcommit") {
    axis.values = reachable_overcommits(scenario, kMostOvercommit);
    if (axis.values.empty()) {
      throw UsageError("the scenario does not say how overcommit is reached (expected an overcommit block, or --over)");
    }
  } else {
    throw UsageError(fmt::format("--over {0}: expected its values, as in --over {0}=1:10:1", options.over));
  }
  const auto unit_of = [](const Json& value) {
    const auto number = axis_number(value);
    return number ? std::optional(number->unit) : std::nullopt;
  };
  const auto unit = axis.values.empty() ? std::nullopt : unit_of(axis.values.front());
  if (!unit || std::ranges::any_of(axis.values, [&](const Json& v) { return unit_of(v) != unit; })) {
    throw UsageError(fmt::format("--over {}: expected numbers, or spans of one unit", options.over));
  }
  std::ranges::sort(axis.values, {}, [](const Json& v) { return axis_number(v)->number; });
  return axis;
}

std::vector<Setting> settings_of_plan(const PlanOptions& options, InputErrors& errors) {
  std::vector<Setting> settings;
  for (const std::string& assignment : options.sets) {
    if (auto setting = parse_setting("--set", assignment, errors)) settings.push_back(std::move(*setting));
  }
  if (!options.seed.empty()) settings.push_back(make_setting("--seed " + options.seed, "seed", options.seed));
  return settings;
}

std::string value_at(const PlanQuestion& question, const Plan& plan, std::size_t index) {
  return value_text(question.axis.values[plan.points[index].value]);
}

// One row for each value that was looked at.
std::string looks_table(const PlanQuestion& question, const Plan& plan) {
  Texts heading{question.axis.path, "runs"};
  for (const Target& target : question.targets) heading.push_back(target.text());
  heading.emplace_back("targets");
  TextTable table(heading);
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const PlanPoint& point = plan.points[i];
    Texts row{value_at(question, plan, i), fmt::to_string(point.replications)};
    for (const TargetResult& result : point.targets) {
      row.push_back(short_number(result.summary.mean) + " +- " +
                    short_number(result.interval.second - result.summary.mean));
    }
    row.resize(heading.size() - 1, "-");
    row.push_back(fmt::format("{}{}{}", point.meets ? "met" : "missed", point.proven ? "" : ", not proven",
                              point.problem.empty() ? "" : ": " + point.problem));
    table.add(row);
  }
  return table.text();
}

std::string margin_text(const Target& target, const TargetResult& result) {
  std::string text = fmt::format("{} is {}", target.metric, short_number(result.summary.mean));
  if (result.margin) text += fmt::format(", {:.1f} %", 100 * std::abs(*result.margin));
  const bool below = result.summary.mean <= target.bound;
  return text + fmt::format(" {} {}", below ? "below" : "above", short_number(target.bound));
}

std::string answer_text(const PlanQuestion& question, const Plan& plan) {
  const std::string& axis = question.axis.path;
  std::string text;
  switch (plan.verdict) {
    case Plan::Verdict::kFound:
      text = fmt::format("{} {} {} meets the targets{}\n", plan.rising ? "smallest" : "largest", axis,
                         value_at(question, plan, *plan.answer),
                         plan.proven() ? " (each decision at 95.0% confidence)"
                                       : fmt::format(" (not proven in {} runs)", question.most));
      break;
    case Plan::Verdict::kAllMeet:
      text = fmt::format("all {} looked at meet the targets, up to the largest, {}\n", axis,
                         value_at(question, plan, *plan.answer));
      break;
    case Plan::Verdict::kNoneMeets:
      return fmt::format("no {} looked at meets the targets\n", axis);
    case Plan::Verdict::kNotMonotone:
      return fmt::format(
          "no answer: not monotone over {}: {} (a part of the axis can be given: --over {}=LO:HI:STEP)\n", axis,
          plan.reason, axis);
    default:
      return {};
  }
  for (std::size_t t = 0; t < question.targets.size(); ++t) {
    text += fmt::format("  margin: {}\n", margin_text(question.targets[t], plan.points[*plan.answer].targets[t]));
  }
  if (!plan.beyond) return text;
  const PlanPoint& beyond = plan.points[*plan.beyond];
  const std::string at = value_at(question, plan, *plan.beyond);
  if (!beyond.problem.empty()) text += fmt::format("  breaks first, at {}: {}\n", at, beyond.problem);
  for (const std::size_t t : plan.broken) {
    text += fmt::format("  {}, at {}: {}\n", t == plan.broken.front() ? "breaks first" : "then", at,
                        margin_text(question.targets[t], beyond.targets[t]));
  }
  return text;
}

}  // namespace

int plan_command(const Command& command, const Texts& arguments) {
  const auto options = parse_plan(command, arguments);
  if (!options) return kExitDone;

  InputErrors errors;
  const auto settings = settings_of_plan(*options, errors);
  const auto document = ScenarioDocument::open(options->file, errors);
  const auto scenario = document ? document->load(settings, errors) : std::nullopt;
  const auto axis = scenario && errors.empty() ? axis_of(*options, *scenario, errors) : std::nullopt;
  if (!errors.empty()) return report_errors(errors);
  PlanQuestion question{*document,     settings,        {}, *axis, options->targets, options->first,
                        options->most, options->threads};
  for (const Axis& other : scenario->vary) {
    if (other.path == axis->path) continue;
    if (other.values.size() != 1) {
      throw UsageError(fmt::format("the scenario varies {0}, too: give it a value with --set {0}=VALUE", other.path));
    }
    question.rest.push_back({other.path, other.values.front()});
  }
  std::vector<Point> points;
  for (const Json& value : axis->values) {
    points.push_back(question.rest);
    points.back().push_back({axis->path, value});
  }
  if (!check_points(*document, settings, points, errors)) return report_errors(errors);

  const std::atomic<bool>& interrupt = watch_interrupts();
  Plan plan;
  {
    ProgressBar bar;
    plan = make_plan(question, interrupt, [&](std::size_t done, std::size_t all) { bar.show(done, all); });
  }
  if (plan.verdict == Plan::Verdict::kNoMetric) {
    throw UsageError(fmt::format("--target: no metric \"{}\"{}", plan.reason, suggestion(plan.reason, plan.known)));
  }
  int status = write_output(options->output, plan_text(question, *scenario, plan));
  if (options->output != "-") {
    print_out(looks_table(question, plan) + answer_text(question, plan));
    print_out(
        fmt::format("{} of {} values looked at, in {} runs\n", plan.points.size(), axis->values.size(), plan.runs));
  }
  if (plan.verdict == Plan::Verdict::kInterrupted) {
    print_error(fmt::format("vcpusim plan: interrupted after {} runs\n", plan.runs));
    std::_Exit(kExitInterrupted);  // threads are still at work
  }
  if (plan.verdict == Plan::Verdict::kFault) print_error(fmt::format("{}: {}\n", options->file, plan.reason));
  if (status == kExitDone && !plan.answer) status = kExitFailed;
  return status;
}

}  // namespace vcpusim
