// A scenario's published figures, simulated and judged: what `vcpusim reproduce` makes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "scenarios/results.h"
#include "scenarios/scenario.h"

namespace vcpusim {

struct Reproduction {
  Scenario scenario;  // as it was run
  bool full = false;
  std::size_t replications = 1;
  std::vector<FigureResult> figures;  // of the scenario's own list
};

// Settings that make the scenario the size at which it is reproduced.
std::vector<Setting> size_settings(const Scenario& scenario, bool full);

Reproduction judge(Scenario scenario, bool full, std::size_t replications, std::span<const RunRecord> records);

// "reproduced", "missed", "not run", or "" for a figure without tolerance and bounds.
std::string_view verdict(const FigureResult& figure);

// Whether any figure was missed. A figure that was not run was not.
bool missed(const Reproduction& reproduction);

// Schema vcpusim.reproduction/1; says nothing of clock, host or paths.
std::string reproductions_text(std::span<const Reproduction> reproductions);

// How many numbers the scenario says were fitted: those in the values of `calibrated`.
std::size_t fitted_numbers(const Scenario& scenario);

}  // namespace vcpusim
