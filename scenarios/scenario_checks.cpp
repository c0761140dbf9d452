#include "scenarios/scenario_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "scenarios/dotted_path.h"
#include "scenarios/text_forms.h"

namespace vcpusim {
namespace {

void check_sizes(const SimulationConfig& simulation, const Report& report) {
  const HostConfig& host = simulation.host;
  if (host.pcpus > host.machine.logical_cpus()) {
    report("/host/pcpus", fmt::format("expected at most the {} logical CPUs of the machine; got {}",
                                      host.machine.logical_cpus(), host.pcpus));
  }
  std::int64_t vcpus = 0;
  std::int64_t tasks = 0;
  for (const VmConfig& vm : simulation.vms) {
    vcpus += vm.vcpus * vm.copies;
    for (const TaskConfig& task : vm.tasks) tasks += task.count * vm.copies;
  }
  if (vcpus > kMostVcpus) report("/vms", fmt::format("expected at most {} vCPUs in all; got {}", kMostVcpus, vcpus));
  if (tasks > kMostTasks) report("/vms", fmt::format("expected at most {} tasks in all; got {}", kMostTasks, tasks));
}

void check_overcommit(const Scenario& scenario, const Report& report) {
  const Overcommit& overcommit = scenario.overcommit;
  const SimulationConfig& simulation = scenario.simulation;
  if (overcommit.by == Overcommit::By::kNone) {
    if (overcommit.ratio)
      report("/overcommit", "a ratio needs a way to reach it (expected \"by\": \"copies\" or \"pcpus\")");
    return;
  }
  if (overcommit.by == Overcommit::By::kPcpus) {
    if (simulation.host.pcpus < 1) report("/overcommit", "the ratio leaves no pCPU (expected fewer vCPUs per pCPU)");
    return;
  }
  const auto vm = std::ranges::find(simulation.vms, overcommit.vm, &VmConfig::name);
  if (vm == simulation.vms.end()) {
    std::vector<std::string> names;
    for (const VmConfig& known : simulation.vms) names.push_back(known.name);
    report("/overcommit/vm", fmt::format("no VM \"{}\"{}", overcommit.vm, known_instead(overcommit.vm, names)));
  } else if (vm->copies < 1) {
    report("/overcommit", fmt::format("the ratio leaves no copy of \"{}\" (expected more vCPUs per pCPU)", vm->name));
  }
}

void check_vms(const SimulationConfig& simulation, const Report& report) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < simulation.vms.size(); ++i) {
    const VmConfig& vm = simulation.vms[i];
    const std::string pointer = fmt::format("/vms/{}", i);
    bool taken = !names.insert(vm.name).second;
    for (std::int64_t copy = 0; vm.copies > 1 && copy < vm.copies; ++copy) {
      taken = !names.insert(fmt::format("{}-{}", vm.name, copy)).second || taken;
    }
    if (taken) report(pointer + "/name", "a copy of another VM has this name, or a copy of this one has another VM's");
    if (vm.affinity.rule == AffinityConfig::Rule::kLists) {
      const auto& lists = vm.affinity.lists;
      if (static_cast<std::int64_t>(lists.size()) != vm.vcpus) {
        report(pointer + "/affinity",
               fmt::format("expected one list of pCPUs for each of the {} vCPUs; got {}", vm.vcpus, lists.size()));
      }
      for (std::size_t k = 0; k < lists.size(); ++k) {
        for (const std::int64_t pcpu : lists[k]) {
          if (pcpu >= simulation.host.pcpus) {
            report(fmt::format("{}/affinity/{}", pointer, k),
                   fmt::format("the host has no pCPU {} (expected at most {})", pcpu, simulation.host.pcpus - 1));
          }
        }
      }
    }
    if (!vm.native) continue;
    if (simulation.vms.size() > 1 || vm.copies > 1) {
      report(pointer + "/native", "a native VM has the host to itself (expected no other VM)");
    }
    if (vm.vcpus > simulation.host.pcpus) {
      report(pointer + "/vcpus",
             fmt::format("a native VM has vCPU i on pCPU i (expected at most the host's {} pCPUs; got {})",
                         simulation.host.pcpus, vm.vcpus));
    }
  }
}

void check_assists(const HostConfig& host, const Report& report) {
  if (host.assists.contains("pv_tlb_flush") && !host.assists.contains("steal_clock")) {
    report("/host/assists/pv_tlb_flush",
           "guests cannot see which vCPUs are off their pCPUs (expected \"steal_clock\", too)");
  }
}

void check_times(const SimulationConfig& simulation, const Report& report) {
  const Duration end = simulation.stop.at.value_or(simulation.stop.at_most);
  if (simulation.warmup >= end && end > Duration::zero()) {
    report("/warmup", fmt::format("the warm-up lasts to the end of the run (expected less than {}; got {})",
                                  format_duration(end), format_duration(simulation.warmup)));
  }
}

void check_point(const Point& point, const std::vector<Axis>& axes, const std::string& pointer, const Report& report) {
  std::vector<std::string> paths;
  for (const Axis& axis : axes) paths.push_back(axis.path);
  for (const auto& [path, value] : point) {
    const std::string here = child_pointer(pointer, path);
    const auto axis = std::ranges::find(axes, path, &Axis::path);
    if (axis == axes.end()) {
      report(here, "\"vary\" has no such axis" + known_instead(path, paths, "axes"));
    } else if (std::ranges::none_of(axis->values,
                                    [&v = value](const Json& candidate) { return same_value(candidate, v); })) {
      report(here, fmt::format("\"vary\" has no value {} on this axis", value.describe()));
    }
  }
}

void check_figures(const Scenario& scenario, const std::vector<Axis>& axes, const Report& report) {
  for (std::size_t i = 0; i < scenario.expect.size(); ++i) {
    const Expectation& e = scenario.expect[i];
    const std::string pointer = fmt::format("/expect/{}", i);
    if (!e.at_least && !e.at_most) report(pointer, "expected at least one of the keys \"at_least\", \"at_most\"");
    if (e.at_least && e.at_most && *e.at_least > *e.at_most) report(pointer, "no value is >= at_least and <= at_most");
    check_point(e.point, axes, pointer + "/point", report);
    check_point(e.relative_to, axes, pointer + "/relative_to", report);
  }
  for (std::size_t i = 0; i < scenario.published.size(); ++i) {
    const PublishedFigure& figure = scenario.published[i];
    const std::string pointer = fmt::format("/published/{}", i);
    if (!units_per_metric_unit(figure.metric, figure.unit)) {
      report(pointer + "/unit", fmt::format("expected s, ms, us or ns, and a metric of time; got \"{}\" for {}",
                                            figure.unit, figure.metric));
    }
    if (!figure.value && !figure.at_least && !figure.at_most) {
      report(pointer, "expected at least one of the keys \"value\", \"at_least\", \"at_most\"");
    }
    if (figure.value == 0.0) report(pointer + "/value", "expected a value other than 0, since errors are relative");
    if (figure.tolerance && !figure.value) report(pointer + "/tolerance", "expected a value that it is relative to");
    if (figure.at_least && figure.at_most && *figure.at_least > *figure.at_most) {
      report(pointer, "no value is >= at_least and <= at_most");
    }
    constexpr std::string_view kSum = "expected a dotted path, or a sum such as \"a.x + 2 * b.x - c.x\"";
    if (!metric_terms(figure.metric)) report(pointer + "/metric", std::string(kSum));
    if (!figure.over.empty() && !metric_terms(figure.over)) report(pointer + "/over", std::string(kSum));
    if (!figure.unit.empty() && (!figure.over.empty() || !figure.relative_to.empty())) {
      report(pointer + "/unit", "a ratio has no unit");
    }
    check_point(figure.point, axes, pointer + "/point", report);
    check_point(figure.relative_to, axes, pointer + "/relative_to", report);
  }
}

bool same_parameter(const Json& a, const Json& b) {
  if (a.is(Json::Type::kString) && b.is(Json::Type::kString)) {
    const auto x = parse_span(a.text).value;
    const auto y = parse_span(b.text).value;
    if (x && y) return *x == *y;
  }
  return same_value(a, b);
}

}  // namespace

void check(const Scenario& scenario, const std::vector<Axis>& written, const Report& report) {
  check_overcommit(scenario, report);
  check_sizes(scenario.simulation, report);
  check_vms(scenario.simulation, report);
  check_assists(scenario.simulation.host, report);
  check_times(scenario.simulation, report);
  check_figures(scenario, written, report);
}

void check_calibrations(const Scenario& scenario, const Report& report) {
  if (scenario.calibrated.empty()) return;
  InputErrors none;
  const auto resolved = parse_json(resolved_text(scenario), nullptr, none);
  for (std::size_t i = 0; i < scenario.calibrated.size(); ++i) {
    const Calibration& calibration = scenario.calibrated[i];
    const std::string pointer = fmt::format("/calibrated/{}", i);
    const Json* value = find_path(*resolved, calibration.parameter);
    if (value == nullptr) {
      report(pointer + "/parameter", fmt::format("the scenario has nothing at {}", calibration.parameter));
    } else if (!same_parameter(*value, calibration.value)) {
      report(pointer + "/value", fmt::format("the scenario has {} at {}; got {}", value->describe(),
                                             calibration.parameter, calibration.value.describe()));
    }
  }
}

std::optional<double> units_per_metric_unit(std::string_view metric, std::string_view unit) {
  if (unit.empty()) return 1.0;
  constexpr std::pair<std::string_view, double> kPerSecond[]{{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
  const auto wanted = std::ranges::find(kPerSecond, unit, &std::pair<std::string_view, double>::first);
  if (wanted == std::end(kPerSecond)) return {};
  const auto has = [&](const std::string& suffix) {
    return metric.ends_with(suffix) || metric.find(suffix + ".") != std::string_view::npos;
  };
  if (metric.ends_with("_per_s")) return {};
  if (has("_us")) return wanted->second / 1e6;
  if (has("_s")) return wanted->second;
  return {};
}

}  // namespace vcpusim
