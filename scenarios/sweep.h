// Sweeps: all points of a scenario, on some threads, to a results file; in parts, if need be, that are merged.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "scenarios/results.h"
#include "scenarios/run_points.h"
#include "scenarios/run_store.h"

namespace vcpusim {

// Part `number` (from 1 on) of `of`: every `of`-th point, with all its replications, so that parts of a sweep whose
// points grow slower along an axis take about the same time.
struct Shard {
  std::size_t number = 1;
  std::size_t of = 1;
};

// A file beside the results file: what is done of a sweep that is not.
std::filesystem::path partial_file(const std::filesystem::path& results);

struct SweepOutcome {
  StreamOutcome runs;
  std::size_t reused = 0;  // runs that were there already
};

// Runs `plan` at the points of the shard, and writes the results file. Each run is on disk as soon as it has ended, in
// the partial file, which goes once the results are complete. With `resume`, runs of the partial file or of an earlier
// results file that are of the same configuration, seed and models are taken over; whatever else stands in these files
// does not matter.
// Throws FileError; the results file is then as it was before, and the partial file has what is done.
// After an interrupt, what is done is in the results file, and the rest counts as missing runs there.
SweepOutcome run_sweep(const Scenario& scenario, RunPlan plan, Shard shard, bool resume,
                       const std::filesystem::path& results, const RunStore::Summaries& summaries,
                       const std::atomic<bool>& interrupt, const RunProgress& progress);

// The results file of the whole sweep from those of all its shards, in any order: the same bytes as of one process.
// False, and errors, if one of them is wrong, not finished, of another sweep, or missing. Throws FileError.
// Memory: about 40 bytes a run. Cost: about 25 MB of shards a second.
bool merge_results(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& results,
                   InputErrors& errors);

}  // namespace vcpusim
