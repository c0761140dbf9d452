#include "scenarios/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "scenarios/points.h"
#include "scenarios/results_file.h"
#include "scenarios/version.h"

namespace vcpusim {
namespace {

// Which points have a configuration, and from which seed on they count their replications.
struct Wanted {
  std::size_t point;
  std::uint64_t seed;
};
using WantedByConfig = std::unordered_map<std::string, std::vector<Wanted>>;

WantedByConfig wanted_runs(const RunPlan& plan) {
  WantedByConfig wanted;
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    InputErrors none;  // the points were checked
    const auto scenario = plan.document.load(settings_at(plan.settings, plan.points[i]), none);
    wanted[config_digest(scenario->simulation)].push_back({i, scenario->simulation.seed});
  }
  return wanted;
}

// Takes over what can be used of an earlier file, which may be cut off.
void take_over(const std::filesystem::path& file, const WantedByConfig& wanted, RunPlan& plan, RunStore& store) {
  bool same_models = false;
  const auto header = [&](const ResultsHeader& h) {
    same_models = h.vcpusim == version() && h.models == model_digest();
  };
  const std::size_t most = plan.until ? plan.until->most : plan.replications;
  const auto run = [&](const RunRecord& record, std::string_view) {
    const auto points = same_models ? wanted.find(record.config) : wanted.end();
    if (points == wanted.end()) return;
    for (const auto& [point, seed] : points->second) {
      if (record.seed < seed || record.seed - seed >= most) continue;
      RunRecord own = record;
      own.point = plan.points[point];
      own.replication = record.seed - seed;
      const RunTask task{point, own.replication};
      if (store.add(task, run_text(own))) plan.known.push_back({task, until_value(plan, own)});
    }
  };
  InputErrors ignored;
  read_results(file, {header, run}, ignored);
}

}  // namespace

std::filesystem::path partial_file(const std::filesystem::path& results) { return results.string() + ".partial"; }

SweepOutcome run_sweep(const Scenario& scenario, RunPlan plan, Shard shard, bool resume,
                       const std::filesystem::path& results, const RunStore::Summaries& summaries,
                       const std::atomic<bool>& interrupt, const RunProgress& progress) {
  std::vector<Point> points;
  for (std::size_t i = shard.number - 1; i < plan.points.size(); i += shard.of) points.push_back(plan.points[i]);
  plan.points = std::move(points);

  ResultsHeader header = header_of(scenario);
  // Under another name until all is taken over: the old one may be all there is.
  const auto partial = partial_file(results);
  const auto store = std::make_shared<RunStore>(partial.string() + ".new", header);
  if (resume) {
    const WantedByConfig wanted = wanted_runs(plan);
    take_over(partial, wanted, plan, *store);
    take_over(results, wanted, plan, *store);
  }
  store->rename(partial);

  SweepOutcome outcome;
  outcome.reused = plan.known.size();
  const auto sink = [store](const RunTask& task, const RunRecord& record) { store->add(task, run_text(record)); };
  outcome.runs = stream_points(std::move(plan), sink, interrupt, progress);
  if (!outcome.runs.problem.empty()) throw FileError(outcome.runs.problem);
  store->seal();
  header.missing_runs = store->missing(outcome.runs.replications);
  const std::string problem = store->write_results(results, header, outcome.runs.replications, summaries);
  if (!problem.empty()) throw FileError(fmt::format("{}: cannot be written: {}", results.string(), problem));
  if (header.missing_runs == 0) store->remove();
  return outcome;
}

bool merge_results(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& results,
                   InputErrors& errors) {
  const auto folder = results.has_parent_path() ? results.parent_path() : std::filesystem::path(".");
  RunStore store(RunStore::unnamed_in, folder);
  std::optional<ResultsHeader> first;
  std::unordered_map<std::string, std::size_t> number_of;  // of a point, as text
  std::vector<bool> there;
  for (const auto& file : shards) {
    const std::string name = file.string();
    bool usable = true;
    const auto refuse = [&](std::string_view why) {
      errors.add(name, why);
      usable = false;
    };
    const auto check_header = [&](const ResultsHeader& header) {
      if (!first) {
        first = header;
        InputErrors wrong;
        const auto document = ScenarioDocument::parse(header.resolved, name, "", wrong);
        const std::vector<Point> points = all_points(document ? document->axes() : std::vector<Axis>());
        for (std::size_t i = 0; i < points.size(); ++i) number_of[point_text(points[i])] = i;
        there.resize(points.size());
      }
      if (header.missing_runs > 0) {
        refuse(fmt::format("{} of its runs are missing (expected a finished shard; vcpusim sweep --resume goes on)",
                           header.missing_runs));
      } else if (header.digest != first->digest) {
        refuse(fmt::format("is of another sweep than {}", shards.front().string()));
      } else if (header.vcpusim != first->vcpusim || header.models != first->models) {
        refuse(fmt::format("was made by another version of vcpusim than {}", shards.front().string()));
      }
    };
    std::vector<RunRecord> records;  // of one point, all of which stand together
    std::size_t point = 0;
    const auto finish_point = [&] {
      if (!records.empty()) store.add_summary(point, summary_text(summarise_points(records).front()));
      records.clear();
    };
    const auto add = [&](const RunRecord& record, std::string_view text) {
      if (!usable) return;
      const auto number = number_of.find(point_text(record.point));
      if (number == number_of.end()) return refuse("has a point that its scenario does not have");
      if (records.empty() || number->second != point) {
        finish_point();
        point = number->second;
        if (there[point]) {
          return refuse(
              fmt::format("has the point \"{}\" once more (expected each shard once)", describe_point(record.point)));
        }
        there[point] = true;
      }
      if (!store.add({point, record.replication}, text)) return refuse("has a replication twice");
      records.push_back(record);
    };
    if (read_results(file, {check_header, add}, errors)) finish_point();
  }
  const auto missing = std::ranges::count(there, false);
  if (errors.empty() && missing > 0) {
    errors.add(shards.front().string(),
               fmt::format("{} of the sweep's {} points are in none of the files", missing, there.size()));
  }
  if (!errors.empty()) return false;
  const std::string problem = store.write_results(results, *first, {}, {});
  if (!problem.empty()) throw FileError(fmt::format("{}: cannot be written: {}", results.string(), problem));
  return true;
}

}  // namespace vcpusim
