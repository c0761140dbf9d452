// vcpusim run: a scenario in; a table, a results file, a trace out.

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "scenarios/files.h"
#include "scenarios/points.h"
#include "scenarios/results.h"
#include "scenarios/run_points.h"
#include "scenarios/scenario.h"
#include "tools/vcpusim/command.h"
#include "tools/vcpusim/run_report.h"
#include "tools/vcpusim/terminal.h"
#include "tools/vcpusim/trace_file.h"

namespace vcpusim {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

constexpr std::size_t kMostRuns = 1'000'000;

struct Options {
  std::string file;
  Texts sets;
  std::string seed;
  std::size_t replications = 1;
  unsigned threads = 1;
  std::string output;
  std::string trace;
  bool print_config = false;
};

std::optional<Options> parse(const Command& command, const Texts& arguments) {
  po::options_description options("Options");
  options.add_options()("set", po::value<Texts>()->composing()->value_name("PATH=VALUE"),
                        "set a value of the scenario; may be repeated")(
      "seed", po::value<std::string>()->value_name("N"), "seed of the first replication")(
      "replications", po::value<long long>()->value_name("N"), "runs of each point, with seeds SEED, SEED+1, ...")(
      "jobs,j", po::value<long long>()->value_name("N"), "runs at the same time (default: one a CPU)")(
      "output,o", po::value<std::string>()->value_name("OUT.json"), "results file; \"-\" is standard output")(
      "trace", po::value<std::string>()->value_name("OUT.jsonl"), "trace records, one a line; runs one at a time")(
      "print-config", "print the scenario with all defaults, and run nothing");
  const po::variables_map values = parse_command(command, arguments, options);
  if (values.contains("help")) return {};
  const Texts& files = values["arguments"].as<Texts>();
  if (files.size() != 1) throw UsageError(fmt::format("expected one scenario file; got {}", files.size()));
  const auto text = [&](const char* name) { return values.contains(name) ? values[name].as<std::string>() : ""; };
  Options result;
  result.file = files.front();
  if (values.contains("set")) result.sets = values["set"].as<Texts>();
  result.seed = text("seed");
  result.replications = count_option(values, "replications", 1, kMostReplications);
  result.threads =
      static_cast<unsigned>(count_option(values, "jobs", std::max(1u, std::thread::hardware_concurrency()), 1024));
  result.output = text("output");
  result.trace = text("trace");
  result.print_config = values.contains("print-config");
  if (!result.trace.empty()) result.threads = 1;
  return result;
}

// What went wrong with one run of this command line, and how to repeat that run alone.
std::string fault_text(const Options& options, const RunFault& fault) {
  std::string command = "vcpusim run " + options.file;
  for (const std::string& assignment : options.sets) command += fmt::format(" --set '{}'", assignment);
  for (const Coordinate& c : fault.point) command += fmt::format(" --set '{}={}'", c.path, value_text(c.value));
  return fmt::format("{}: {}\nto repeat it: {} --seed {} -j 1\n", options.file, fault.what, command, fault.seed);
}

}  // namespace

std::vector<Setting> parse_settings(const Texts& sets, const std::string& seed, InputErrors& errors) {
  std::vector<Setting> settings;
  for (const std::string& assignment : sets) {
    if (auto setting = parse_setting("--set", assignment, errors)) settings.push_back(std::move(*setting));
  }
  if (!seed.empty()) settings.push_back(make_setting("--seed " + seed, "seed", seed));
  return settings;
}

int write_output(const std::string& file, std::string_view text) {
  if (file.empty()) return kExitDone;
  if (file == "-") {
    print_out(text);
    return kExitDone;
  }
  const std::string problem = write_file(file, text);
  if (problem.empty()) return kExitDone;
  print_error(fmt::format("{}: cannot be written: {}\n", file, problem));
  return kExitFile;
}

int run_command(const Command& command, const std::vector<std::string>& arguments) {
  const auto options = parse(command, arguments);
  if (!options) return kExitDone;

  InputErrors errors;
  const auto settings = parse_settings(options->sets, options->seed, errors);
  const auto document = ScenarioDocument::open(options->file, errors);
  const auto scenario = document ? document->load(settings, errors) : std::nullopt;
  if (!errors.empty()) return report_errors(errors);
  if (options->print_config) {
    print_out(resolved_text(*scenario));
    return kExitDone;
  }
  const std::vector<Point> points = all_points(scenario->vary);
  if (!check_points(*document, settings, points, errors)) return report_errors(errors);
  if (points.size() * options->replications > kMostRuns) {
    throw UsageError(fmt::format("{} points x {} replications are more than {} runs", points.size(),
                                 options->replications, kMostRuns));
  }

  std::optional<TraceFile> trace;
  if (!options->trace.empty()) {
    trace.emplace(options->trace);
    if (!trace->problem().empty()) {
      print_error(fmt::format("{}: cannot be written: {}\n", options->trace, trace->problem()));
      return kExitFile;
    }
  }
  RunPlan plan{*document, settings, points, options->replications, options->threads, {}};
  if (trace)
    plan.trace = [&](std::size_t run, const Point& p, std::uint64_t seed) { return trace->start_run(run, p, seed); };

  const std::atomic<bool>& interrupt = watch_interrupts();
  RunOutcome outcome;
  {
    ProgressBar bar;
    outcome = run_points(std::move(plan), interrupt, [&](std::size_t done, std::size_t all) { bar.show(done, all); });
  }

  const auto summary = summarise_points(outcome.records);
  int status = write_output(options->output, results_text(*scenario, outcome.records, summary));
  if (outcome.interrupted) {
    print_error(fmt::format("vcpusim run: interrupted after {} of {} runs\n", outcome.records.size(),
                            points.size() * options->replications));
    std::_Exit(kExitInterrupted);  // threads are still at work
  }
  if (trace) {
    if (const std::string problem = trace->close(); !problem.empty()) {
      print_error(fmt::format("{}: cannot be written: {}\n", options->trace, problem));
      status = kExitFile;
    }
  }
  if (options->output != "-" && !summary.empty()) {
    const std::string published = published_table(*scenario, outcome.records);
    print_out(published.empty() ? results_table(*scenario, summary) : published);
  }
  bool failed = !outcome.faults.empty();
  for (const RunFault& fault : outcome.faults) print_error(fault_text(*options, fault));
  for (const RunRecord& record : outcome.records) {
    if (record.result.ended != RunResult::Ended::kDeadlock) continue;
    failed = true;
    const std::string point = describe_point(record.point);
    print_error(fmt::format("{}: deadlock (seed {}{}{}): {}\n", options->file, record.seed, point.empty() ? "" : ", ",
                            point, record.result.why));
  }
  const std::string failures = failed_expectations(check_expectations(*scenario, summary));
  print_error(failures);
  if (status == kExitDone && (failed || !failures.empty())) status = kExitFailed;
  return status;
}

}  // namespace vcpusim
