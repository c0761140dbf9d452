#include "scenarios/run_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/results.h"

namespace vcpusim {

RunSchedule::RunSchedule(std::size_t points, std::size_t replications, std::optional<UntilInterval> until,
                         std::span<const KnownRun> known)
    : until_(std::move(until)), points_(points), all_(points * replications) {
  for (Point& point : points_) point.wanted = replications;
  for (const auto& [task, value] : known) known_.insert({{task.point, task.replication}, value});
}

std::optional<RunTask> RunSchedule::next() {
  for (std::size_t i = first_; i < points_.size(); ++i) {
    Point& point = points_[i];
    while (point.handed_out < point.wanted) {
      const RunTask task{i, point.handed_out++};
      const auto known = known_.extract({task.point, task.replication});
      if (known.empty()) return task;
      done(task, known.mapped());
    }
    if (i == first_ && point.ended == point.wanted) ++first_;
  }
  return {};
}

void RunSchedule::done(const RunTask& task, std::optional<double> value) {
  Point& point = points_[task.point];
  ++point.ended;
  ++ended_;
  if (!until_) return;
  point.values.resize(std::max(point.values.size(), point.wanted));
  point.values[task.replication] = value;
  if (point.ended < point.wanted || point.wanted >= until_->most || narrow(point)) return;
  const std::size_t more = std::min(until_->most - point.wanted, std::max<std::size_t>(1, point.wanted / 2));
  point.wanted += more;
  all_ += more;
}

bool RunSchedule::narrow(const Point& point) const {
  std::vector<double> values;
  for (const auto& value : point.values) {
    if (!value) return true;  // more of what is not there would not help
    values.push_back(*value);
  }
  const MetricSummary metric = summarise_metric(values);
  return metric.ci95->second - metric.mean <= until_->relative * std::abs(metric.mean);
}

std::vector<std::size_t> RunSchedule::replications() const {
  std::vector<std::size_t> replications;
  for (const Point& point : points_) replications.push_back(point.wanted);
  return replications;
}

std::vector<std::size_t> RunSchedule::wide() const {
  std::vector<std::size_t> wide;
  for (std::size_t i = 0; until_ && i < points_.size(); ++i) {
    const Point& point = points_[i];
    const bool whole =
        point.ended == point.wanted && std::ranges::all_of(point.values, &std::optional<double>::has_value);
    if (!whole || !narrow(point)) wide.push_back(i);
  }
  return wide;
}

}  // namespace vcpusim
