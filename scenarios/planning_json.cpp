#include "scenarios/planning.h"
#include "scenarios/points.h"
#include "scenarios/printer.h"
#include "scenarios/version.h"

namespace vcpusim {
namespace {

using Tree = nlohmann::ordered_json;

std::string_view name_of(const Plan& plan) {
  switch (plan.verdict) {
    case Plan::Verdict::kFound:
      return plan.rising ? "smallest" : "largest";
    case Plan::Verdict::kAllMeet:
      return "all_meet";
    case Plan::Verdict::kNoneMeets:
      return "none_meets";
    case Plan::Verdict::kNotMonotone:
      return "not_monotone";
    case Plan::Verdict::kInterrupted:
      return "interrupted";
    case Plan::Verdict::kNoMetric:
      return "no_metric";
    case Plan::Verdict::kFault:
      break;
  }
  return "fault";
}

Tree target_json(const Target& target) {
  return {{"metric", target.metric}, {target.at_most ? "at_most" : "at_least", target.bound}};
}

Tree result_json(const Target& target, const TargetResult& result) {
  return {{"metric", target.metric},
          {"mean", result.summary.mean},
          {"stddev", result.summary.stddev()},
          {"interval", {result.interval.first, result.interval.second}},
          {"meets", result.meets},
          {"proven", result.proven},
          {"margin", result.margin ? Tree(*result.margin) : Tree()}};
}

Tree point_json(const PlanQuestion& question, const PlanPoint& point) {
  Tree targets = Tree::array();
  for (std::size_t t = 0; t < point.targets.size(); ++t) {
    targets.push_back(result_json(question.targets[t], point.targets[t]));
  }
  Tree output{{"value", to_library_json(question.axis.values[point.value])},
              {"replications", point.replications},
              {"meets", point.meets},
              {"proven", point.proven}};
  if (!point.problem.empty()) output["problem"] = point.problem;
  output["targets"] = std::move(targets);
  return output;
}

}  // namespace

std::string plan_text(const PlanQuestion& question, const Scenario& scenario, const Plan& plan) {
  Tree targets = Tree::array();
  for (const Target& target : question.targets) targets.push_back(target_json(target));
  Tree points = Tree::array();
  for (const PlanPoint& point : plan.points) points.push_back(point_json(question, point));
  const auto value = [&](std::optional<std::size_t> index) {
    return index ? to_library_json(question.axis.values[plan.points[*index].value]) : Tree();
  };
  Tree broken = Tree::array();
  for (const std::size_t t : plan.broken) broken.push_back(question.targets[t].metric);
  const Tree output{{"schema", "vcpusim.plan/1"},
                    {"vcpusim", version()},
                    {"scenario", {{"name", scenario.simulation.name}, {"digest", digest(scenario)}}},
                    {"axis", question.axis.path},
                    {"targets", std::move(targets)},
                    {"verdict", name_of(plan)},
                    {"value", value(plan.answer)},
                    {"proven", plan.answer ? Tree(plan.proven()) : Tree()},
                    {"next", value(plan.beyond)},
                    {"broken", std::move(broken)},
                    {"reason", plan.reason},
                    {"values", question.axis.values.size()},
                    {"points", std::move(points)}};
  return output.dump(1) + "\n";
}

}  // namespace vcpusim
