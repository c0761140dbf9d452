#include "scenarios/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "scenarios/mean_difference.h"
#include "scenarios/points.h"
#include "scenarios/results.h"

namespace vcpusim {
namespace {

constexpr double kRiskPerValue = 0.05;  // of a wrong decision
constexpr double kBackwards = 0.05;     // what a metric may go back and still count as monotone
constexpr std::size_t kProbes = 5;      // values that are looked at before bisection

// What was measured at one value of the axis.
struct Measured {
  std::vector<std::vector<double>> values;  // by target, then by replication
  std::size_t replications = 0;
  std::string problem;
};

std::size_t more_replications(std::size_t now, std::size_t most) { return std::min(now + (now + 1) / 2, most); }

// As many as there can be, so that the risk can be shared out.
std::size_t most_looks(const PlanQuestion& question) {
  std::size_t looks = 1;
  for (std::size_t n = question.first; n < question.most; n = more_replications(n, question.most)) ++looks;
  return looks;
}

std::optional<double> finite_number(const Metrics& metrics, std::string_view path) {
  const auto at = std::ranges::find(metrics, path, &std::pair<std::string, MetricValue>::first);
  if (at == metrics.end()) return {};
  if (const auto* integer = std::get_if<std::int64_t>(&at->second)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&at->second);
  return real != nullptr && std::isfinite(*real) ? std::optional(*real) : std::nullopt;
}

std::string problem_of(const RunRecord& record) {
  if (record.result.ended == RunResult::Ended::kDeadlock) return "deadlock: " + record.result.why;
  if (record.result.ended == RunResult::Ended::kAtMost) return "the workloads are not done at stop.at_most";
  return {};
}

class Planner {
 public:
  Planner(const PlanQuestion& question, const std::atomic<bool>& interrupt,
          const std::function<void(std::size_t, std::size_t)>& progress)
      : question_(question),
        interrupt_(interrupt),
        progress_(progress),
        confidence_(1 - kRiskPerValue / static_cast<double>(most_looks(question))) {}

  Plan run() {
    if (search()) {
      sort_points();
      judge();
    } else {
      sort_points();
    }
    return std::move(plan_);
  }

 private:
  // False if it could not be finished; the verdict then says why.
  bool search() {
    const std::size_t last = question_.axis.values.size() - 1;
    std::set<std::size_t> probes;
    for (std::size_t i = 0; i < kProbes; ++i) probes.insert(i * last / (kProbes - 1));
    if (!decide({probes.begin(), probes.end()})) return false;
    // Between neighbours that differ there is something to be found. There is one such pair if all is monotone.
    for (auto at = probes.begin(); std::next(at) != probes.end(); ++at) {
      std::size_t low = *at;
      std::size_t high = *std::next(at);
      const bool meets = points_.at(low).meets;
      if (points_.at(high).meets == meets) continue;
      while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        if (!decide({middle})) return false;
        (points_.at(middle).meets == meets ? low : high) = middle;
      }
    }
    return true;
  }

  // Looks at values until each is decided. Those that need as many replications run together.
  bool decide(std::vector<std::size_t> values) {
    for (std::size_t replications = question_.first;; replications = more_replications(replications, question_.most)) {
      if (!measure(values, replications)) return false;
      for (const std::size_t value : values) look_at(value);
      std::erase_if(values, [&](std::size_t value) { return points_.at(value).proven; });
      if (values.empty() || replications == question_.most) return true;
    }
  }

  bool measure(const std::vector<std::size_t>& values, std::size_t replications) {
    const std::size_t have = measured_.contains(values.front()) ? measured_.at(values.front()).replications : 0;
    RunPlan runs{question_.document, question_.settings, {}, replications - have, question_.threads, {}};
    if (have > 0) {
      InputErrors errors;
      const auto scenario = question_.document.load(question_.settings, errors);
      runs.settings.push_back(make_setting("seed", "seed", fmt::to_string(scenario->simulation.seed + have)));
    }
    for (const std::size_t value : values) {
      runs.points.push_back(question_.rest);
      runs.points.back().push_back({question_.axis.path, question_.axis.values[value]});
    }
    const RunOutcome outcome = run_points(std::move(runs), interrupt_, progress_);
    plan_.runs += outcome.records.size();
    if (outcome.interrupted) return false;
    if (!outcome.faults.empty()) {
      const RunFault& fault = outcome.faults.front();
      plan_.verdict = Plan::Verdict::kFault;
      plan_.reason = fmt::format("{} (seed {}): {}", describe_point(fault.point), fault.seed, fault.what);
      return false;
    }
    std::size_t record = 0;
    for (const std::size_t value : values) {
      Measured& at = measured_[value];
      at.replications = replications;
      at.values.resize(question_.targets.size());
      for (std::size_t i = have; i < replications; ++i) {
        if (!add(outcome.records[record++], at)) return false;
      }
    }
    return true;
  }

  bool add(const RunRecord& record, Measured& at) {
    if (at.problem.empty()) at.problem = problem_of(record);
    for (std::size_t t = 0; t < question_.targets.size(); ++t) {
      const std::string& metric = question_.targets[t].metric;
      if (const auto value = finite_number(record.result.metrics, metric)) {
        at.values[t].push_back(*value);
        continue;
      }
      const auto same = [&](const auto& m) { return m.first == metric; };
      if (std::ranges::none_of(record.result.metrics, same)) {
        plan_.verdict = Plan::Verdict::kNoMetric;
        plan_.reason = metric;
        for (const auto& m : record.result.metrics) plan_.known.push_back(m.first);
        return false;
      }
      if (at.problem.empty()) at.problem = metric + " has no value";
    }
    return true;
  }

  void look_at(std::size_t value) {
    const Measured& at = measured_.at(value);
    PlanPoint point{value, at.replications, {}, at.problem, true, true};
    if (!at.problem.empty()) {
      point.meets = false;
      points_[value] = std::move(point);
      return;
    }
    bool failure_proven = false;
    for (std::size_t t = 0; t < question_.targets.size(); ++t) {
      const TargetResult result = compare(question_.targets[t], at.values[t]);
      point.meets = point.meets && result.meets;
      point.proven = point.proven && result.proven;
      failure_proven = failure_proven || (result.proven && !result.meets);
      point.targets.push_back(result);
    }
    if (!point.meets) point.proven = failure_proven;
    points_[value] = std::move(point);
  }

  TargetResult compare(const Target& target, std::span<const double> values) const {
    TargetResult result;
    result.summary = summarise(values);
    const double mean = result.summary.mean;
    double half_width =
        student_t(static_cast<double>(values.size() - 1), confidence_) * result.summary.standard_error();
    if (half_width < 1e-12 * std::abs(mean)) half_width = 0;  // the rounding of sums
    result.interval = {mean - half_width, mean + half_width};
    const auto good = [&](double x) { return target.at_most ? x <= target.bound : x >= target.bound; };
    result.meets = good(mean);
    result.proven = good(result.interval.first) == good(result.interval.second);
    if (target.bound != 0) {
      result.margin = (target.at_most ? target.bound - mean : mean - target.bound) / std::abs(target.bound);
    }
    return result;
  }

  void sort_points() {
    for (auto& [value, point] : points_) plan_.points.push_back(std::move(point));
  }

  void judge() {
    std::vector<PlanPoint>& points = plan_.points;
    const auto meets = [](const PlanPoint& p) { return p.meets; };
    const bool all = std::ranges::all_of(points, meets);
    const bool none = std::ranges::none_of(points, meets);
    plan_.rising = !points.front().meets && points.back().meets;
    plan_.reason = backward_decision();
    if (plan_.reason.empty()) plan_.reason = backward_metric();
    if (!plan_.reason.empty()) {
      plan_.verdict = Plan::Verdict::kNotMonotone;
      return;
    }
    plan_.verdict = all ? Plan::Verdict::kAllMeet : none ? Plan::Verdict::kNoneMeets : Plan::Verdict::kFound;
    if (none) return;
    if (all) {
      plan_.answer = points.size() - 1;
      return;
    }
    const auto change =
        std::ranges::adjacent_find(points, [](const PlanPoint& a, const PlanPoint& b) { return a.meets != b.meets; });
    const auto first = static_cast<std::size_t>(change - points.begin());
    plan_.answer = plan_.rising ? first + 1 : first;
    plan_.beyond = plan_.rising ? first : first + 1;
    const std::vector<TargetResult>& targets = points[*plan_.beyond].targets;
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (!targets[t].meets) plan_.broken.push_back(t);
    }
    std::ranges::stable_sort(plan_.broken, {}, [&](std::size_t t) { return targets[t].margin.value_or(0); });
  }

  std::string value_at(std::size_t index) const { return value_text(question_.axis.values[plan_.points[index].value]); }

  // More than one change from meeting to missing the targets or back.
  std::string backward_decision() const {
    std::vector<std::size_t> changes;
    for (std::size_t i = 1; i < plan_.points.size(); ++i) {
      if (plan_.points[i].meets != plan_.points[i - 1].meets) changes.push_back(i);
    }
    if (changes.size() < 2) return {};
    const auto state = [&](std::size_t i) {
      return fmt::format("{} at {}", plan_.points[i].meets ? "met" : "missed", value_at(i));
    };
    return fmt::format("the targets are {}, {} and {}", state(changes[0] - 1), state(changes[0]), state(changes[1]));
  }

  // A metric that, from one value to a larger one, goes against its way from the smallest to the largest.
  std::string backward_metric() const {
    for (std::size_t t = 0; t < question_.targets.size(); ++t) {
      const auto mean = [&](std::size_t i) { return plan_.points[i].targets[t].summary.mean; };
      std::vector<std::size_t> usable;
      for (std::size_t i = 0; i < plan_.points.size(); ++i) {
        if (plan_.points[i].problem.empty()) usable.push_back(i);
      }
      if (usable.size() < 3) continue;
      const double way = mean(usable.back()) - mean(usable.front());
      for (const std::size_t i : usable) {
        for (const std::size_t j : usable) {
          if (j <= i || (mean(j) - mean(i)) * (way < 0 ? -1 : 1) >= 0) continue;
          if (!is_step(t, i, j)) continue;
          return fmt::format("{} goes from {:.4g} at {} back to {:.4g} at {}", question_.targets[t].metric, mean(i),
                             value_at(i), mean(j), value_at(j));
        }
      }
    }
    return {};
  }

  bool is_step(std::size_t target, std::size_t i, std::size_t j) const {
    const std::vector<double>& a = measured_.at(plan_.points[i].value).values[target];
    const std::vector<double>& b = measured_.at(plan_.points[j].value).values[target];
    const std::size_t pairs = std::min(a.size(), b.size());
    const auto d = compare_means(std::span(a).first(pairs), std::span(b).first(pairs), DifferenceTest::kPaired, 0.99);
    const double size = std::max(std::abs(question_.targets[target].bound), std::abs(summarise(a).mean));
    return d && d->proven && std::abs(d->difference) > kBackwards * size;
  }

  const PlanQuestion& question_;
  const std::atomic<bool>& interrupt_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  const double confidence_;  // of one look
  std::map<std::size_t, Measured> measured_;
  std::map<std::size_t, PlanPoint> points_;
  Plan plan_;
};

}  // namespace

std::optional<Target> Target::parse(std::string_view text) {
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos || at == 0 || text.substr(at + 1, 1) != "=") return {};
  Target target{std::string(text.substr(0, at)), text[at] == '<', 0};
  const std::string bound(text.substr(at + 2));
  char* end = nullptr;
  target.bound = std::strtod(bound.c_str(), &end);
  const bool number = !bound.empty() && end == bound.c_str() + bound.size() && std::isfinite(target.bound);
  return number ? std::optional(target) : std::nullopt;
}

std::string Target::text() const { return fmt::format("{}{}{}", metric, at_most ? "<=" : ">=", bound); }

Plan make_plan(const PlanQuestion& question, const std::atomic<bool>& interrupt,
               const std::function<void(std::size_t done, std::size_t all)>& progress) {
  return Planner(question, interrupt, progress).run();
}

std::vector<Json> reachable_overcommits(const Scenario& scenario, double most) {
  std::vector<double> ratios;
  std::int64_t others = 0;
  std::int64_t each = 0;
  for (const VmConfig& vm : scenario.simulation.vms) {
    const bool grows = scenario.overcommit.by == Overcommit::By::kCopies && vm.name == scenario.overcommit.vm;
    if (grows) each = vm.vcpus;
    if (!grows) others += vm.vcpus * vm.copies;
  }
  if (scenario.overcommit.by == Overcommit::By::kCopies) {
    const auto pcpus = static_cast<double>(scenario.simulation.host.pcpus);
    for (std::int64_t vcpus = others + each; static_cast<double>(vcpus) <= most * pcpus; vcpus += each) {
      ratios.push_back(static_cast<double>(vcpus) / pcpus);
    }
  } else if (scenario.overcommit.by == Overcommit::By::kPcpus) {
    for (std::int64_t pcpus = others; pcpus > 0; --pcpus) {
      const double ratio = static_cast<double>(others) / static_cast<double>(pcpus);
      if (ratio <= most) ratios.push_back(ratio);
    }
  }
  std::vector<Json> values;
  for (const double ratio : ratios) {
    values.push_back(make_setting("overcommit", "overcommit", fmt::format("{}", std::round(ratio * 1e4) / 1e4)).value);
  }
  return values;
}

}  // namespace vcpusim
