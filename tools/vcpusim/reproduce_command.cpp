// vcpusim reproduce: the published figures of the library's scenarios, simulated and judged.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <thread>

#include "scenarios/library.h"
#include "scenarios/points.h"
#include "scenarios/reproduction.h"
#include "scenarios/run_points.h"
#include "scenarios/scenario.h"
#include "scenarios/text_forms.h"
#include "tools/vcpusim/command.h"
#include "tools/vcpusim/run_report.h"
#include "tools/vcpusim/terminal.h"

namespace vcpusim {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

constexpr std::size_t kReplications = 3;

struct ReproduceOptions {
  Texts names;
  std::string output;
  bool full = false;
  std::size_t replications = kReplications;
  unsigned threads = 1;
};

std::optional<ReproduceOptions> parse_reproduction(const Command& command, const Texts& arguments) {
  po::options_description options("Options");
  options.add_options()("full", "at the size of the source, where the scenario has a smaller one, too")(
      "replications", po::value<long long>()->value_name("N"), "runs of each point (default: 3)")(
      "jobs,j", po::value<long long>()->value_name("N"), "runs at the same time (default: one a CPU)")(
      "output,o", po::value<std::string>()->value_name("OUT.json"), "figures and verdicts; \"-\" is standard output");
  const po::variables_map values = parse_command(command, arguments, options);
  if (values.contains("help")) return {};
  ReproduceOptions result;
  result.names = values["arguments"].as<Texts>();
  if (values.contains("output")) result.output = values["output"].as<std::string>();
  result.full = values.contains("full");
  result.replications = count_option(values, "replications", kReplications, kMostReplications);
  result.threads =
      static_cast<unsigned>(count_option(values, "jobs", std::max(1u, std::thread::hardware_concurrency()), 1024));
  return result;
}

// A scenario with the settings of its size; it loads at all of its points.
struct Experiment {
  ScenarioDocument document;
  std::vector<Setting> settings;
  Scenario scenario;
  std::vector<Point> points;
};

// None, and an error, if the scenario cannot be run; none without an error if it has no published figures.
std::optional<Experiment> open_experiment(const std::filesystem::path& file, bool full, InputErrors& errors) {
  auto document = ScenarioDocument::open(file, errors);
  const auto whole = document ? document->load({}, errors) : std::nullopt;
  if (!whole || whole->published.empty()) return {};
  std::vector<Setting> settings = size_settings(*whole, full);
  auto scenario = document->load(settings, errors);
  if (!scenario) return {};
  std::vector<Point> points = all_points(scenario->vary);
  if (!check_points(*document, settings, points, errors)) return {};
  return Experiment{std::move(*document), std::move(settings), std::move(*scenario), std::move(points)};
}

// By their names in the library, or as files; without names, all of the library that have published figures.
std::vector<Experiment> find_experiments(const ReproduceOptions& options, InputErrors& errors) {
  const std::vector<LibraryEntry> library = scenarios_below(library_folder());
  std::vector<std::filesystem::path> files;
  for (const std::string& name : options.names) {
    const auto entry = std::ranges::find(library, name, &LibraryEntry::name);
    if (entry != library.end()) {
      files.push_back(entry->file);
    } else if (name.ends_with(".json")) {
      files.emplace_back(name);
    } else {
      Texts names;
      for (const LibraryEntry& known : library) names.push_back(known.name);
      throw UsageError(fmt::format("no scenario \"{}\"{}", name, known_instead(name, names)));
    }
  }
  if (options.names.empty()) {
    for (const LibraryEntry& entry : library) files.push_back(entry.file);
  }
  std::vector<Experiment> experiments;
  for (const std::filesystem::path& file : files) {
    const bool was_right = errors.empty();
    auto experiment = open_experiment(file, options.full, errors);
    if (experiment) {
      experiments.push_back(std::move(*experiment));
    } else if (!options.names.empty() && was_right && errors.empty()) {
      errors.add(file.string(), "the scenario has no published figures (expected the key \"published\")");
    }
  }
  return experiments;
}

std::string tolerance_text(const PublishedFigure& f) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (f.tolerance) add(fmt::format("+-{:.3g} %", 100 * *f.tolerance));
  if (f.value && f.at_least) add(">= " + short_number(*f.at_least));
  if (f.value && f.at_most) add("<= " + short_number(*f.at_most));
  return text;
}

// Equal values leave no more than what rounding makes of them.
std::string half_width_text(const MetricSummary& s) {
  const double half = s.ci95->second - s.mean;
  return half <= 1e-12 * std::abs(s.mean) ? "0" : short_number(half);
}

std::string reproduction_table(const Reproduction& reproduction) {
  Texts axes;
  const bool all_told =
      std::ranges::none_of(reproduction.scenario.published, &std::string::empty, &PublishedFigure::what);
  if (!all_told) {
    for (const Axis& axis : reproduction.scenario.vary) axes.push_back(axis.path);
  }
  Texts heading = short_names(axes);
  heading.insert(heading.end(), {"figure", "published", "simulated", "+-", "error", "tolerance", "verdict"});
  TextTable table(heading);
  for (const FigureResult& f : reproduction.figures) {
    Texts cells;
    for (const std::string& axis : axes) {
      const auto at = std::ranges::find(f.figure->point, axis, &Coordinate::path);
      cells.push_back(at == f.figure->point.end() ? "" : value_text(at->value));
    }
    const auto& s = f.simulated;
    std::string verdict_text(verdict(f));
    if (f.figure->fitted) verdict_text += verdict_text.empty() ? "fitted" : " (fitted)";
    cells.insert(cells.end(),
                 {figure_text(*f.figure), published_text(*f.figure), s ? short_number(s->mean) : "-",
                  s && s->ci95 ? half_width_text(*s) : "-", f.error ? fmt::format("{:+.1f} %", 100 * *f.error) : "-",
                  tolerance_text(*f.figure), verdict_text});
    table.add(cells);
  }
  return table.text();
}

std::string report(const Reproduction& r) {
  std::string size;
  if (r.full) {
    size = "full size";
  } else if (!r.scenario.quick.settings.empty()) {
    size = "quick size";
    if (!r.scenario.quick.why.empty()) size += " (" + r.scenario.quick.why + ")";
  }
  return fmt::format("{}: {} replication{}{}{}\n{}{}\n", r.scenario.simulation.name, r.replications,
                     r.replications == 1 ? "" : "s", size.empty() ? "" : ", ", size, reproduction_table(r),
                     errors_text(r.figures));
}

// Of the runs that did not come to an end, or not to the one that was meant.
std::string fault_texts(const Experiment& experiment, const RunOutcome& outcome) {
  const std::string& name = experiment.scenario.simulation.name;
  std::string text;
  for (const RunFault& fault : outcome.faults) {
    text += fmt::format("{}: {} (seed {} {})\n", name, fault.what, fault.seed, describe_point(fault.point));
  }
  for (const RunRecord& record : outcome.records) {
    const RunResult& result = record.result;
    if (result.ended == RunResult::Ended::kDeadlock) {
      text +=
          fmt::format("{}: deadlock (seed {} {}): {}\n", name, record.seed, describe_point(record.point), result.why);
    } else if (result.ended == RunResult::Ended::kAtMost) {
      text +=
          fmt::format("{}: not done at stop.at_most (seed {} {})\n", name, record.seed, describe_point(record.point));
    }
  }
  return text;
}

}  // namespace

int reproduce_command(const Command& command, const std::vector<std::string>& arguments) {
  const auto options = parse_reproduction(command, arguments);
  if (!options) return kExitDone;
  InputErrors errors;
  const std::vector<Experiment> experiments = find_experiments(*options, errors);
  if (!errors.empty()) return report_errors(errors);

  const std::atomic<bool>& interrupt = watch_interrupts();
  std::vector<Reproduction> all;
  bool failed = false;
  for (const Experiment& experiment : experiments) {
    RunPlan plan{experiment.document,   experiment.settings, experiment.points,
                 options->replications, options->threads,    {}};
    RunOutcome outcome;
    {
      ProgressBar bar;
      outcome = run_points(std::move(plan), interrupt, [&](std::size_t done, std::size_t of) { bar.show(done, of); });
    }
    all.push_back(judge(experiment.scenario, options->full, options->replications, outcome.records));
    if (options->output != "-") print_out(report(all.back()));
    if (outcome.interrupted) {
      write_output(options->output, reproductions_text(all));
      print_error("vcpusim reproduce: interrupted\n");
      std::_Exit(kExitInterrupted);  // threads are still at work
    }
    const std::string faults = fault_texts(experiment, outcome);
    print_error(faults);
    failed = failed || !faults.empty() || missed(all.back());
  }
  const int status = write_output(options->output, reproductions_text(all));
  return status == kExitDone && failed ? kExitFailed : status;
}

}  // namespace vcpusim
