// Runs on disk, in any order, until they are put in order in a results file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/files.h"
#include "scenarios/results.h"
#include "scenarios/run_points.h"

namespace vcpusim {

// A file of runs that grows at its end, and where each run stands in it. The file is the beginning of a results file:
// read_results visits what is in it, however it was cut off. All of it may be called from several threads.
// Memory: about 40 bytes a run.
class RunStore {
 public:
  // Makes the file anew; or one in `folder` that has no name, and goes when this does.
  // Throws FileError, as all that write and read do.
  RunStore(std::filesystem::path file, const ResultsHeader& header);
  struct UnnamedIn {};
  static constexpr UnnamedIn unnamed_in{};
  RunStore(UnnamedIn, const std::filesystem::path& folder);

  void rename(const std::filesystem::path& file);
  void remove();

  // `text` is of run_text. False if there is a run of this task already.
  bool add(const RunTask& task, std::string_view text);
  // Of all runs of the point, by summary_text; write_results makes it itself otherwise. REQUIRES a store without a
  // name.
  void add_summary(std::size_t point, std::string_view text);

  // From now on, add() leaves out everything.
  void seal();

  // How many of the first replications[i] runs of each point i are not there.
  std::size_t missing(std::span<const std::size_t> replications) const;

  // The results file of the first replications[i] runs of each point i, or, if `replications` is empty, of all that is
  // there; the points stand in the file by their number. `summaries` gets each point's summary in turn, and the point's
  // runs. Returns what went wrong with the results file, or "".
  using Summaries = std::function<void(const PointSummary& summary, std::span<const RunRecord> runs)>;
  std::string write_results(const std::filesystem::path& file, const ResultsHeader& header,
                            std::span<const std::size_t> replications, const Summaries& summaries) const;

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t length = 0;  // 0: no such run
  };
  void append(std::string_view text);

  std::filesystem::path file_;  // for messages, if unnamed
  Descriptor data_;
  std::uint64_t size_ = 0;
  std::vector<std::vector<Place>> places_;  // by point and replication
  std::vector<Place> summaries_;            // by point
  std::size_t runs_ = 0;
  bool broken_ = false;
  bool sealed_ = false;
  mutable std::mutex mutex_;
};

}  // namespace vcpusim
