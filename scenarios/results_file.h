// Results files, run by run: schema vcpusim.results/1, as results_text writes it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/input_errors.h"
#include "scenarios/results.h"

namespace vcpusim {

// What is done with a file. Both may be empty.
struct ResultsVisitor {
  std::function<void(const ResultsHeader& header)> header;  // once, before any run
  // In the order of the file. Metrics come as they were recorded, but those that share a prefix stand together. `text`
  // is the run's JSON as it stands in the file. Both arguments are valid during the call.
  std::function<void(const RunRecord& record, std::string_view text)> run;
};

// Visits the runs in one pass that keeps no more than one of them; the summary is not needed and only checked to be
// JSON. Unknown keys are passed over, except among the metrics. False, and one error, if the file cannot be read or is
// wrong; what was visited until then is to be discarded.
// Cost: about 100 MB a second.
bool read_results(const std::filesystem::path& file, const ResultsVisitor& visitor, InputErrors& errors);

// The same of texts that run_text made.
bool read_runs(const std::vector<std::string>& texts, const ResultsVisitor& visitor, InputErrors& errors);

}  // namespace vcpusim
