// Which run comes next: every point with every replication, or as many replications as a metric needs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace vcpusim {

struct RunTask {
  std::size_t point = 0;  // its number among the points
  std::size_t replication = 0;

  bool operator==(const RunTask&) const = default;
};

// Replications are added until the 95 % interval of the metric's mean reaches no further than `relative` times the mean
// to either side: 0.02 for +- 2 %. Looking again and again makes such intervals somewhat too narrow, the more so the
// fewer replications there are to begin with.
struct UntilInterval {
  std::string metric;
  double relative = 0;
  std::size_t most = 0;  // replications of one point
};

// A run that was made before, and what its metric of UntilInterval was.
struct KnownRun {
  RunTask task;
  std::optional<double> value;
};

// Hands out the runs that are not known, point by point. How many there are of each point does not depend on the order
// in which they end: a point grows by half whenever all its runs so far have ended and the interval is too wide.
class RunSchedule {
 public:
  // REQUIRES replications >= 1, and >= 2 with `until`.
  RunSchedule(std::size_t points, std::size_t replications, std::optional<UntilInterval> until,
              std::span<const KnownRun> known);

  const std::optional<UntilInterval>& until() const { return until_; }

  // None if nothing can be started now: all is handed out, and perhaps more comes once something has ended.
  std::optional<RunTask> next();
  // `value` is that of the metric of `until`, if the run has it.
  void done(const RunTask& task, std::optional<double> value);

  std::size_t all() const { return all_; }      // runs as far as can be told
  std::size_t ended() const { return ended_; }  // those included that next() has passed over because they are known
  bool finished() const { return ended_ == all_; }
  std::vector<std::size_t> replications() const;  // of each point, as far as can be told
  std::vector<std::size_t> wide() const;          // points whose interval is still too wide

 private:
  struct Point {
    std::size_t wanted = 0;      // replications
    std::size_t handed_out = 0;  // the known ones that were passed over included
    std::size_t ended = 0;
    std::vector<std::optional<double>> values;  // of `until`, by replication
  };
  bool narrow(const Point& point) const;

  const std::optional<UntilInterval> until_;
  std::map<std::pair<std::size_t, std::size_t>, std::optional<double>> known_;  // not yet passed over
  std::vector<Point> points_;
  std::size_t first_ = 0;  // the points before it are finished
  std::size_t all_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace vcpusim
