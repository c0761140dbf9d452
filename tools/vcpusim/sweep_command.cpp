// vcpusim sweep: the cross product of a scenario's axes, in parallel, to a results file. vcpusim merge: its parts.

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "scenarios/axis_text.h"
#include "scenarios/files.h"
#include "scenarios/points.h"
#include "scenarios/results.h"
#include "scenarios/results_csv.h"
#include "scenarios/sweep.h"
#include "tools/vcpusim/command.h"
#include "tools/vcpusim/run_report.h"
#include "tools/vcpusim/terminal.h"

namespace vcpusim {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

constexpr std::size_t kMostSweepRuns = 10'000'000;

struct SweepOptions {
  std::string file;
  Texts sets;
  Texts axes;
  std::string overcommit;
  std::string seed;
  std::size_t replications = 1;
  std::optional<UntilInterval> until;
  unsigned threads = 1;
  bool resume = false;
  Shard shard;
  std::string output;
  std::string csv;
};

// The whole of `text` as a number; zero if it is none.
template <class T>
T number(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() ? value : T{};
}

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto k = number<std::size_t>(text.substr(0, slash));
  const auto n = number<std::size_t>(slash == std::string::npos ? "" : text.substr(slash + 1));
  if (k < 1 || k > n) throw UsageError(fmt::format("--shard: expected K/N with 1 <= K <= N; got {}", text));
  return {k, n};
}

UntilInterval parse_until(const std::string& text, std::size_t most) {
  const std::size_t equals = text.find('=');
  const std::string_view width = std::string_view(text).substr(equals == std::string::npos ? text.size() : equals + 1);
  const double percent = width.ends_with('%') ? number<double>(width.substr(0, width.size() - 1)) : 0;
  if (!(percent > 0) || percent > 100 || equals == 0) {
    throw UsageError(fmt::format("--until-ci: expected METRIC=P% with 0 < P <= 100; got {}", text));
  }
  return {text.substr(0, equals), percent / 100, most};
}

std::optional<SweepOptions> parse_sweep(const Command& command, const Texts& arguments) {
  po::options_description options("Options");
  const auto texts = [] { return po::value<Texts>()->composing(); };
  options.add_options()("set", texts()->value_name("PATH=VALUE"), "set a value of the scenario; may be repeated")(
      "vary", texts()->value_name("PATH=a,b,c"),
      "an axis: values, or LO:HI:STEP; may be repeated. Takes the place of the scenario's axis of this path, or varies "
      "faster than all before it")("overcommit", po::value<std::string>()->value_name("LO:HI:STEP"),
                                   "short for --vary overcommit=LO:HI:STEP")(
      "seed", po::value<std::string>()->value_name("N"), "seed of the first replication, at every point")(
      "replications", po::value<long long>()->value_name("N"), "runs of each point, with seeds SEED, SEED+1, ...")(
      "until-ci", po::value<std::string>()->value_name("METRIC=P%"),
      "more replications (from at least 3) until the 95% interval of the metric's mean is no wider than +-P%")(
      "at-most", po::value<long long>()->value_name("N"), "replications of a point with --until-ci (default: 100)")(
      "jobs,j", po::value<long long>()->value_name("N"), "runs at the same time (default: one a CPU)")(
      "resume", "take over what is in OUT.json and OUT.json.partial, and run the rest")(
      "shard", po::value<std::string>()->value_name("K/N"),
      "only every Nth point, from the Kth on; then vcpusim merge")(
      "output,o", po::value<std::string>()->value_name("OUT.json"), "results file")(
      "csv", po::value<std::string>()->value_name("OUT.csv"), "the runs as a table, too");
  const po::variables_map values = parse_command(command, arguments, options);
  if (values.contains("help")) return {};
  const Texts& files = values["arguments"].as<Texts>();
  if (files.size() != 1) throw UsageError(fmt::format("expected one scenario file; got {}", files.size()));
  const auto text = [&](const char* name) { return values.contains(name) ? values[name].as<std::string>() : ""; };
  const auto list = [&](const char* name) { return values.contains(name) ? values[name].as<Texts>() : Texts(); };
  SweepOptions result;
  result.file = files.front();
  result.sets = list("set");
  result.axes = list("vary");
  result.overcommit = text("overcommit");
  result.seed = text("seed");
  result.replications = count_option(values, "replications", 1, kMostReplications);
  const std::size_t most = count_option(values, "at-most", 100, kMostReplications);
  if (values.contains("until-ci")) {
    result.until = parse_until(text("until-ci"), most);
    result.replications = std::max<std::size_t>(result.replications, 3);
  } else if (values.contains("at-most")) {
    throw UsageError("--at-most says where --until-ci ends (expected both)");
  }
  result.threads =
      static_cast<unsigned>(count_option(values, "jobs", std::max(1u, std::thread::hardware_concurrency()), 1024));
  result.resume = values.contains("resume");
  if (values.contains("shard")) result.shard = parse_shard(text("shard"));
  result.output = text("output");
  if (result.output.empty() || result.output == "-") throw UsageError("expected a results file: -o OUT.json");
  result.csv = text("csv");
  return result;
}

std::vector<Axis> axes_of(const SweepOptions& options, InputErrors& errors) {
  std::vector<Axis> axes;
  const auto add = [&](std::string_view option, const std::string& text, const std::string& shown) {
    auto axis = parse_axis(option, text, errors);
    if (!axis) return;
    for (const Axis& other : axes) {
      if (other.path == axis->path) errors.add(fmt::format("{} {}", option, shown), "an axis that is given twice");
    }
    axes.push_back(std::move(*axis));
  };
  for (const std::string& text : options.axes) add("--vary", text, text);
  if (!options.overcommit.empty()) add("--overcommit", "overcommit=" + options.overcommit, options.overcommit);
  return axes;
}

// How to repeat one run of this command line alone.
std::string repeat_text(const SweepOptions& options, const Point& point, std::uint64_t seed) {
  std::string command = "vcpusim run " + options.file;
  for (const std::string& assignment : options.sets) command += fmt::format(" --set '{}'", assignment);
  for (const Coordinate& c : point) command += fmt::format(" --set '{}={}'", c.path, value_text(c.value));
  return fmt::format("{} --seed {} -j 1", command, seed);
}

// What the terminal shows of a point, and expectations ask for; the rest is only in the file.
PointSummary only(const PointSummary& summary, const std::set<std::string>& metrics) {
  PointSummary kept{summary.point, {}};
  for (const auto& metric : summary.metrics) {
    if (metrics.contains(metric.first)) kept.metrics.push_back(metric);
  }
  return kept;
}

}  // namespace

int sweep_command(const Command& command, const Texts& arguments) {
  const auto options = parse_sweep(command, arguments);
  if (!options) return kExitDone;

  InputErrors errors;
  const auto settings = parse_settings(options->sets, options->seed, errors);
  auto axes = axes_of(*options, errors);
  auto document = ScenarioDocument::open(options->file, errors);
  if (document) document->vary(std::move(axes));
  const auto scenario = document ? document->load(settings, errors) : std::nullopt;
  if (!errors.empty()) return report_errors(errors);
  const std::vector<Point> points = all_points(scenario->vary);
  if (points.size() * options->replications > kMostSweepRuns) {
    throw UsageError(fmt::format("{} points x {} replications are more than {} runs", points.size(),
                                 options->replications, kMostSweepRuns));
  }
  if (!check_points(*document, settings, points, errors)) return report_errors(errors);
  const auto partial = partial_file(options->output);
  if (!options->resume && std::filesystem::exists(partial)) {
    throw UsageError(fmt::format("{} has runs of a sweep that was not finished (expected --resume, or no such file)",
                                 partial.string()));
  }

  RunPlan plan{*document, settings, points, options->replications, options->threads, {}, options->until};
  std::set<std::string> shown;
  for (const std::string& metric : table_metrics(*scenario)) shown.insert(metric);
  for (const Expectation& e : scenario->expect) shown.insert(e.metric);
  std::vector<PointSummary> summary;
  std::string deadlocks;
  const auto see = [&](const PointSummary& point, std::span<const RunRecord> runs) {
    summary.push_back(only(point, shown));
    for (const RunRecord& run : runs) {
      if (run.result.ended != RunResult::Ended::kDeadlock) continue;
      deadlocks += fmt::format("{}: deadlock: {}\nto repeat it: {}\n", options->file, run.result.why,
                               repeat_text(*options, run.point, run.seed));
    }
  };
  SweepOutcome outcome;
  const std::atomic<bool>& interrupt = watch_interrupts();
  {
    ProgressBar bar;
    outcome = run_sweep(*scenario, std::move(plan), options->shard, options->resume, options->output, see, interrupt,
                        [&](std::size_t done, std::size_t all) { bar.show(done, all); });
  }
  const StreamOutcome& runs = outcome.runs;
  if (runs.interrupted) {
    print_error(
        fmt::format("vcpusim sweep: interrupted after {} of {} runs (--resume goes on)\n", runs.done, runs.all));
    std::_Exit(kExitInterrupted);  // threads are still at work
  }
  if (!options->csv.empty()) write_csv(options->output, options->csv);
  print_out(results_table(*scenario, summary));
  if (outcome.reused > 0) print_error(fmt::format("{} of {} runs were there already\n", outcome.reused, runs.all));
  print_error(deadlocks);
  for (const RunFault& fault : runs.faults) {
    print_error(fmt::format("{}: {}\nto repeat it: {}\n", options->file, fault.what,
                            repeat_text(*options, fault.point, fault.seed)));
  }
  if (!runs.faults.empty()) {
    print_error(fmt::format("{} of {} runs were not made (--resume goes on)\n", runs.all - runs.done, runs.all));
  }
  if (!runs.wide.empty() && runs.faults.empty()) {
    print_error(
        fmt::format("{} points: {} is less certain than asked for after {} replications, or is no metric there\n",
                    runs.wide.size(), options->until->metric, options->until->most));
  }
  const std::string failures = failed_expectations(check_expectations(*scenario, summary));
  print_error(failures);
  return deadlocks.empty() && runs.faults.empty() && failures.empty() ? kExitDone : kExitFailed;
}

int merge_command(const Command& command, const Texts& arguments) {
  po::options_description options("Options");
  options.add_options()("output,o", po::value<std::string>()->value_name("OUT.json"), "results file")(
      "csv", po::value<std::string>()->value_name("OUT.csv"), "the runs as a table, too");
  const po::variables_map values = parse_command(command, arguments, options);
  if (values.contains("help")) return kExitDone;
  const Texts& files = values["arguments"].as<Texts>();
  if (files.empty()) throw UsageError("expected the results files of all shards");
  if (!values.contains("output")) throw UsageError("expected a results file: -o OUT.json");
  const auto& output = values["output"].as<std::string>();
  InputErrors errors;
  if (!merge_results({files.begin(), files.end()}, output, errors)) return report_errors(errors);
  if (values.contains("csv")) write_csv(output, values["csv"].as<std::string>());
  return kExitDone;
}

}  // namespace vcpusim
