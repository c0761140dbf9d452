// What a scenario's runs amount to: the results file, and the comparisons with what was expected or published.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/run_points.h"
#include "scenarios/scenario.h"

namespace vcpusim {

// Of one metric over the replications at one point.
struct MetricSummary {
  std::size_t n = 0;
  double mean = 0;
  double stddev = 0;  // of the sample; 0 if n == 1
  // Of the mean, by Student's t; none if n == 1. In the results file an array of two, or null.
  std::optional<std::pair<double, double>> ci95;
  double min = 0;
  double median = 0;
  double max = 0;
};

struct PointSummary {
  Point point;
  std::vector<std::pair<std::string, MetricSummary>> metrics;  // numbers only, in the order of the first record

  const MetricSummary* find(std::string_view metric) const;
};

// REQUIRES at least one value.
MetricSummary summarise_metric(std::span<const double> values);

// None if there is no such metric, or it is no number.
std::optional<double> number_at(const Metrics& metrics, std::string_view path);

// One for each point that has records, in their order. REQUIRES records of one point to stand together.
std::vector<PointSummary> summarise_points(std::span<const RunRecord> records);

// What all runs of a results file have in common.
struct ResultsHeader {
  std::string vcpusim;   // the version that wrote the file
  std::string models;    // model_digest() of that version
  std::string scenario;  // its name
  std::string digest;    // of the resolved scenario
  std::string resolved;  // JSON text, as it stands in the file
  // Of a sweep that was interrupted, or could not be finished.
  std::size_t missing_runs = 0;
};
ResultsHeader header_of(const Scenario& scenario);

// As they stand in a results file.
std::string run_text(const RunRecord& record);
std::string summary_text(const PointSummary& point);

// The results file, schema vcpusim.results/1, piece by piece: all runs, by point and replication, then the summary of
// each point. Says nothing of clock, host or paths: equal runs, equal bytes.
class ResultsWriter {
 public:
  using Out = std::function<void(std::string_view piece)>;
  ResultsWriter(Out out, const ResultsHeader& header);
  void run(std::string_view text);  // of run_text
  void end_of_runs();
  void summary(std::string_view text);  // of summary_text
  void end();

 private:
  void item(std::string_view text);

  const Out out_;
  bool any_ = false;  // in the array at hand
};

// A whole results file.
std::string results_text(const Scenario& scenario, std::span<const RunRecord> records,
                         std::span<const PointSummary> summary);

std::string_view name_of(RunResult::Ended ended);  // "at", "workloads_done", "at_most", "deadlock"

// An expectation at one point. It fails if the metric does not exist there, or a ratio has no value.
struct ExpectationResult {
  const Expectation* expectation;
  Point point;
  std::optional<double> mean;  // or the ratio of two
  bool holds = false;
};
// Points without records are left out.
std::vector<ExpectationResult> check_expectations(const Scenario& scenario, std::span<const PointSummary> summary);

struct FigureResult {
  const PublishedFigure* figure;
  bool run = false;                        // its points have records
  std::optional<MetricSummary> simulated;  // in the figure's unit; none if there is no such metric
  std::optional<double> error;             // relative, of the mean: simulated / published - 1
  std::optional<bool> reproduced;          // within the tolerance and the bounds; none if the figure has neither
};
// Ratios are taken of the replications with equal numbers, then summarised. Spans of seconds that are no ratios are
// multiplied by `scale`.
std::vector<FigureResult> compare_figures(const Scenario& scenario, std::span<const RunRecord> records,
                                          double scale = 1);

// How well a group of figures is met.
struct FigureErrors {
  std::size_t count = 0;
  double mean = 0;   // of the errors' absolute values
  double worst = 0;  // largest absolute value
};
FigureErrors figure_errors(std::span<const FigureResult> figures, bool fitted);

}  // namespace vcpusim
