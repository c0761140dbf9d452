// What `vcpusim run` shows to people: short tables over the results.
#pragma once

#include <span>
#include <string>

#include "scenarios/results.h"

namespace vcpusim {

// One row a point: what the tasks took, how fast they were, how long they waited for locks.
std::string results_table(const Scenario& scenario, std::span<const PointSummary> summary);

// The published figures beside the simulated ones, and how far off they are. "" if the scenario has none.
std::string published_table(const Scenario& scenario, std::span<const PointSummary> summary);

// One line for each expectation that does not hold.
std::string failed_expectations(std::span<const ExpectationResult> results);

}  // namespace vcpusim
