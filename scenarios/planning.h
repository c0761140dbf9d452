// How far an axis can go, overcommit say, before a scenario misses its targets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/axis_number.h"
#include "scenarios/run_points.h"
#include "scenarios/scenario.h"
#include "sim/stats.h"

namespace vcpusim {

// What the mean of a metric over the replications must satisfy.
struct Target {
  std::string metric;
  bool at_most = true;  // else at least
  double bound = 0;

  // "METRIC<=VALUE" or "METRIC>=VALUE"; none if `text` is neither.
  static std::optional<Target> parse(std::string_view text);
  std::string text() const;
};

struct PlanQuestion {
  ScenarioDocument document;
  std::vector<Setting> settings;
  Point rest;  // the other axes' values
  Axis axis;   // REQUIRES values that axis_number knows, of one unit, rising; the scenario loads at each
  std::vector<Target> targets;
  std::size_t first = 3;  // replications of each value that is looked at; REQUIRES >= 2
  std::size_t most = 50;  // and how many there are if it is hard to decide; REQUIRES >= first
  unsigned threads = 1;
};

struct TargetResult {
  Summary summary;  // of the replications
  // Of the mean, so wide that the chance is 5 % that one of all the looks at this value decides wrongly.
  std::pair<double, double> interval;
  bool meets = false;   // the mean does
  bool proven = false;  // all of the interval is on that side
  // How far the mean is on the good side of the bound (below 0: on the bad one), in parts of the bound, if it has any.
  std::optional<double> margin;
};

struct PlanPoint {
  std::size_t value = 0;  // index in the axis
  std::size_t replications = 0;
  std::vector<TargetResult> targets;  // as in the question; empty if `problem`
  std::string problem;                // the runs did not end as they should, which is no way to meet a target
  bool meets = false;
  bool proven = false;
};

struct Plan {
  enum class Verdict : std::uint8_t {
    kFound,
    kAllMeet,  // each value that was looked at, the ends among them
    kNoneMeets,
    kNotMonotone,
    kInterrupted,
    kFault,
    kNoMetric,
  };
  Verdict verdict = Verdict::kInterrupted;
  // The axis makes things better, and the answer is the smallest value that meets the targets; else the largest.
  bool rising = false;
  std::vector<PlanPoint> points;      // that were looked at, by value
  std::optional<std::size_t> answer;  // index in `points`
  std::optional<std::size_t> beyond;  // likewise: the next value, which misses a target
  std::vector<std::size_t> broken;    // kFound: indices of the targets missed there, the worst first
  std::string reason;                 // kNotMonotone, kFault: what was seen; kNoMetric: the metric
  std::vector<std::string> known;     // kNoMetric: those that there are
  std::size_t runs = 0;

  // Whether the values on both sides of the answer are decided, and not just by their means. REQUIRES an answer.
  bool proven() const { return points[*answer].proven && (!beyond || points[*beyond].proven); }
};

// Looks at the ends of the axis and a few values between, then bisects. At each value it replicates until it is clear
// whether all targets are met, or `most` is reached. Replication i has the scenario's seed plus i at every value. The
// metrics have to be monotone: with what was looked at, each value on one side of the answer meets the targets and none
// on the other does, and no target's metric goes back by more than 5 % in a way that is no chance.
Plan make_plan(const PlanQuestion& question, const std::atomic<bool>& interrupt,
               const std::function<void(std::size_t done, std::size_t all)>& progress);

// All overcommit ratios up to `most` that whole copies or pCPUs can reach, rising. Empty if the scenario does not say
// how to reach any.
std::vector<Json> reachable_overcommits(const Scenario& scenario, double most);

// Schema vcpusim.plan/1.
std::string plan_text(const PlanQuestion& question, const Scenario& scenario, const Plan& plan);

}  // namespace vcpusim
