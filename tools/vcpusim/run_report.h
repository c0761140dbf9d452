// What `vcpusim run` shows to people: short tables over the results.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/results.h"

namespace vcpusim {

// One row a point: what the tasks took, how fast they were, how long they waited for locks.
std::string results_table(const Scenario& scenario, std::span<const PointSummary> summary);

// The metrics that it shows.
std::vector<std::string> table_metrics(const Scenario& scenario);

// The published figures beside the simulated ones, and how far off they are. "" if the scenario has none.
std::string published_table(const Scenario& scenario, std::span<const RunRecord> records);

// The shortest end of each path that tells it from the others: "vms.g.guest.locks.l.kind" is "kind" if no other
// axis ends so.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

// The published value, or the bounds that stand for it; and what it is of.
std::string published_text(const PublishedFigure& figure);
std::string figure_text(const PublishedFigure& figure);

// How far the predicted figures are off, and the fitted ones: a line each, if there are any.
std::string errors_text(std::span<const FigureResult> figures);

// One line for each expectation that does not hold.
std::string failed_expectations(std::span<const ExpectationResult> results);

}  // namespace vcpusim
