#include "scenarios/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/points.h"
#include "scenarios/scenario_checks.h"

namespace vcpusim {
namespace {

using ::testing::DoubleNear;

constexpr std::string_view kScenario = R"({"schema": "vcpusim.scenario/1", "name": "s", "seed": 7,
 "stop": {"at": "2ms"}, "host": {"machine": "ideal", "pcpus": 4},
 "vms": [{"name": "g", "native": true, "vcpus": 4, "guest": {"locks": {"l": "ticket"}},
   "tasks": [{"name": "t", "count": 4, "program": [
     {"repeat": "forever", "do": [{"user": {"exponential": "10us"}}, {"lock": "l", "hold": {"exponential": "5us"}}]}]}]}],
 "vary": {"vms.g.tasks.t.count": [1, 2, 3]},
 "expect": [{"metric": "m.t_us", "at_least": 2, "at_most": 4, "why": "a"},
            {"metric": "m.t_us", "at_least": 3, "why": "b", "point": {"vms.g.tasks.t.count": 2}},
            {"metric": "m.none", "at_least": 3, "why": "c", "point": {"vms.g.tasks.t.count": 2}}],
 "published": [{"metric": "m.t_us", "value": 1600, "unit": "ns", "point": {"vms.g.tasks.t.count": 1}},
               {"metric": "m.t_us", "value": 5, "point": {"vms.g.tasks.t.count": 2}, "fitted": true},
               {"metric": "m.none", "value": 5, "point": {"vms.g.tasks.t.count": 2}},
               {"metric": "m.t_us", "value": 5, "point": {"vms.g.tasks.t.count": 3}}]})";

ScenarioDocument document() {
  InputErrors errors;
  return *ScenarioDocument::parse(kScenario, "s.json", "", errors);
}

Scenario scenario() {
  InputErrors errors;
  return *document().load({}, errors);
}

// Records of the first two points with the given values of m.t_us.
std::vector<RunRecord> records(const std::vector<std::vector<double>>& values) {
  const auto points = all_points(scenario().vary);
  std::vector<RunRecord> all;
  for (std::size_t p = 0; p < values.size(); ++p) {
    for (std::size_t r = 0; r < values[p].size(); ++r) {
      RunRecord& record = all.emplace_back(RunRecord{points[p], 7 + r, r, {}});
      record.result.metrics = {{"m.kind", std::string("x")}, {"m.t_us", values[p][r]}, {"n", std::int64_t{3}}};
    }
  }
  return all;
}

RunOutcome run(unsigned threads, std::size_t replications) {
  const std::atomic<bool> interrupt{false};
  return run_points({document(), {}, all_points(scenario().vary), replications, threads, {}}, interrupt, {});
}

TEST(Summary, StudentsIntervalOfASmallSample) {
  const auto summary = summarise_points(records({{1, 2, 3, 4}}));
  const MetricSummary* m = summary.at(0).find("m.t_us");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(m->n, 4u);
  EXPECT_EQ(m->mean, 2.5);
  EXPECT_THAT(m->stddev, DoubleNear(1.2909944, 1e-6));
  // 2.5 +- 3.182446 * 1.2909944 / 2
  ASSERT_TRUE(m->ci95);
  EXPECT_THAT(m->ci95->first, DoubleNear(0.4457397, 1e-6));
  EXPECT_THAT(m->ci95->second, DoubleNear(4.5542603, 1e-6));
  EXPECT_EQ(m->min, 1);
  EXPECT_EQ(m->median, 2.5);
  EXPECT_EQ(m->max, 4);
  EXPECT_EQ(summary[0].find("m.kind"), nullptr) << "texts have no summary";
}

TEST(Summary, OneRunSaysNothingOfTheSpread) {
  const auto summary = summarise_points(records({{2}}));
  EXPECT_FALSE(summary[0].find("m.t_us")->ci95);
}

TEST(Expectations, HoldForTheMeanAtTheirPoints) {
  const Scenario s = scenario();
  const auto summary = summarise_points(records({{1, 2}, {2, 5}}));
  const auto results = check_expectations(s, summary);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_FALSE(results[0].holds) << "1.5 is below 2";
  EXPECT_TRUE(results[1].holds);
  EXPECT_TRUE(results[2].holds);
  EXPECT_FALSE(results[3].holds) << "there is no such metric";
}

TEST(Expectations, RelativeToAnotherPointAreOfTheRatio) {
  Scenario s = scenario();
  const auto summary = summarise_points(records({{1, 3}, {5, 7}}));
  s.expect.resize(1);
  s.expect[0].point = summary[1].point;
  s.expect[0].relative_to = summary[0].point;
  const auto ratio = check_expectations(s, summary);
  ASSERT_EQ(ratio.size(), 1u);
  EXPECT_EQ(ratio[0].mean, 3);
  EXPECT_TRUE(ratio[0].holds) << "3 is in [2, 4]; the means are 2 and 6";
  EXPECT_TRUE(check_expectations(s, std::span(summary).last(1)).empty()) << "the other point was not run";
  const auto to_nothing = check_expectations(s, summarise_points(records({{0}, {5}})));
  EXPECT_FALSE(to_nothing[0].holds);
  EXPECT_FALSE(to_nothing[0].mean);
}

TEST(PublishedFigures, AreComparedInTheirOwnUnit) {
  const Scenario s = scenario();
  const auto figures = compare_figures(s, records({{1, 2}, {2, 5}}));
  ASSERT_EQ(figures.size(), 4u);
  EXPECT_EQ(figures[0].simulated->mean, 1500);
  EXPECT_EQ(figures[0].simulated->n, 2u);
  EXPECT_FALSE(figures[0].reproduced) << "it has no tolerance";
  EXPECT_THAT(*figures[0].error, DoubleNear(-0.0625, 1e-12));
  EXPECT_THAT(*figures[1].error, DoubleNear(-0.3, 1e-12));
  EXPECT_FALSE(figures[2].simulated);
  EXPECT_FALSE(figures[3].run) << "that point was not run";
  EXPECT_EQ(figure_errors(figures, false).count, 1u);
  EXPECT_THAT(figure_errors(figures, true).worst, DoubleNear(0.3, 1e-12));
}

TEST(PublishedFigures, MayBeRatiosOfPairedReplications) {
  Scenario s = scenario();
  s.published.resize(1);
  PublishedFigure& figure = s.published[0];
  figure.unit = "";
  figure.value = 3;
  figure.tolerance = 0.1;
  figure.relative_to = figure.point;
  figure.point = all_points(s.vary)[1];
  const auto runs = records({{1, 2}, {2, 8}});
  auto result = compare_figures(s, runs, 100)[0];
  EXPECT_EQ(result.simulated->mean, 3) << "of 2 and 4; the ratio of the means is 3.33, and a ratio is not scaled";
  EXPECT_EQ(result.reproduced, true);
  EXPECT_FALSE(compare_figures(s, std::span(runs).last(2))[0].run) << "the other point was not run";
  figure.at_most = 2.5;
  EXPECT_EQ(compare_figures(s, runs)[0].reproduced, false) << "beyond the bound";
  figure.over = "n";
  figure.relative_to.clear();
  figure.at_most.reset();
  result = compare_figures(s, runs)[0];
  EXPECT_THAT(result.simulated->mean, DoubleNear(5.0 / 3, 1e-12));
  EXPECT_EQ(result.reproduced, false);
  figure.over = "none";
  result = compare_figures(s, runs)[0];
  EXPECT_TRUE(result.run);
  EXPECT_FALSE(result.simulated);
  EXPECT_EQ(result.reproduced, false) << "there is no such metric";
}

TEST(PublishedFigures, SpansOfSecondsAreScaled) {
  Scenario s = scenario();
  s.published.resize(2);
  s.published[0].metric = "m.t_s";
  s.published[0].unit = "ms";
  s.published[1].metric = "m.t_us";
  s.published[0].point = s.published[1].point = all_points(s.vary)[0];
  auto runs = records({{4}});
  runs[0].result.metrics.emplace_back("m.t_s", 0.00002);
  const auto figures = compare_figures(s, runs, 100);
  EXPECT_THAT(figures[0].simulated->mean, DoubleNear(2, 1e-12));
  EXPECT_EQ(figures[1].simulated->mean, 4) << "a delay is as long at any size";
}

TEST(PublishedFigures, MetricsMayBeSums) {
  const auto terms = metric_terms("a.x_s + 0.5 * b-1.x_s - c.x_s");
  ASSERT_TRUE(terms);
  ASSERT_EQ(terms->size(), 3u);
  EXPECT_EQ((*terms)[1].factor, 0.5);
  EXPECT_EQ((*terms)[1].path, "b-1.x_s");
  EXPECT_EQ((*terms)[2].factor, -1);
  for (const char* const wrong : {"", "a +", "a b", "a / b", "x * a", "1e * a", "2 *"}) {
    EXPECT_FALSE(metric_terms(wrong)) << wrong;
  }
  Scenario s = scenario();
  s.published.resize(1);
  s.published[0].metric = "m.t_us + 2 * n";
  s.published[0].unit = "";
  EXPECT_EQ(compare_figures(s, records({{1, 3}}))[0].simulated->mean, 8);
}

TEST(PublishedFigures, UnitsComeFromTheMetricsName) {
  EXPECT_EQ(units_per_metric_unit("vms.g.tasks.t.elapsed_s", "ms"), 1e3);
  EXPECT_EQ(units_per_metric_unit("vms.g.locks.l.wait_us.p99", "ns"), 1e3);
  EXPECT_EQ(units_per_metric_unit("vms.g.time_s.user", "s"), 1);
  EXPECT_EQ(units_per_metric_unit("vms.g.tasks.t.operations_per_s", "ms"), std::nullopt);
  EXPECT_EQ(units_per_metric_unit("host.events", "ms"), std::nullopt);
  EXPECT_EQ(units_per_metric_unit("host.events", ""), 1);
  EXPECT_EQ(units_per_metric_unit("vms.g.elapsed_s", "weeks"), std::nullopt);
}

TEST(RunPoints, GiveTheSameBytesWithAnyNumberOfThreads) {
  const auto text = [](const RunOutcome& outcome) {
    EXPECT_TRUE(outcome.faults.empty());
    return results_text(scenario(), outcome.records, summarise_points(outcome.records));
  };
  const std::string alone = text(run(1, 3));
  EXPECT_EQ(text(run(4, 3)), alone);
  const auto json = nlohmann::json::parse(alone);
  ASSERT_EQ(json["runs"].size(), 9u);
  EXPECT_EQ(json["schema"], "vcpusim.results/1");
  EXPECT_EQ(json["runs"][4]["seed"], 8);
  EXPECT_EQ(json["runs"][4]["replication"], 1);
  EXPECT_EQ(json["runs"][4]["ended"], "at");
  EXPECT_EQ(json["runs"][4]["sim_time_s"], 0.002);
  EXPECT_EQ(json["runs"][4]["point"]["vms.g.tasks.t.count"], 2);
  EXPECT_GT(json["runs"][4]["metrics"]["vms"]["g"]["tasks"]["t"]["operations"], 0);
  EXPECT_EQ(json["summary"].size(), 3u);
  EXPECT_EQ(json["summary"][2]["metrics"]["vms.g.tasks.t.operations"]["n"], 3);
  EXPECT_EQ(json["scenario"]["digest"], digest(scenario()));
}

TEST(RunPoints, AnAxisMayBeTheSeed) {
  InputErrors errors;
  const std::vector<Setting> settings{make_setting("", "vary", R"({"seed": [3, 10]})"),
                                      make_setting("", "published", "[]"), make_setting("", "expect", "[]")};
  const auto varied = document().load(settings, errors);
  ASSERT_TRUE(varied) << errors.lines().front();
  const std::atomic<bool> interrupt{false};
  const auto outcome = run_points({document(), settings, all_points(varied->vary), 2, 1, {}}, interrupt, {});
  std::vector<std::uint64_t> seeds;
  for (const RunRecord& record : outcome.records) seeds.push_back(record.seed);
  EXPECT_THAT(seeds, ::testing::ElementsAre(3, 4, 10, 11));
}

TEST(RunPoints, AnInterruptReturnsWhatIsDone) {
  std::atomic<bool> interrupt{false};
  std::promise<void> looked_at;
  const auto second_run = [&interrupt, wait = looked_at.get_future().share()](std::size_t run, const Point&,
                                                                              std::uint64_t) {
    if (run == 1) {
      interrupt = true;
      wait.wait();
      throw std::runtime_error("nobody is left to hear this");
    }
    return std::unique_ptr<TraceSink>();
  };
  const auto outcome = run_points({document(), {}, all_points(scenario().vary), 1, 1, second_run}, interrupt, {});
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(outcome.records.size(), 1u);
  EXPECT_TRUE(outcome.faults.empty());
  looked_at.set_value();
}

}  // namespace
}  // namespace vcpusim
