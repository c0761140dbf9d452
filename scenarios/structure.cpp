// The structure of a scenario file. To add a key, add a line here; reading, printing and the schema follow.

#include <array>
#include <optional>

#include "models/catalogue.h"
#include "scenarios/scenario.h"

namespace vcpusim {
namespace {

constexpr RealRange kAnyReal{-1e300, 1e300};

void describe_stop(StopConfig& stop, ScenarioVisitor& v) {
  static constexpr std::array<std::string_view, 2> kWays{"at", "when"};
  v.exactly_one_of(kWays);
  v.all_or_none({"when", "at_most"});
  v.optional_duration("at", stop.at, kPositiveDuration, "the run ends at this time");
  v.word("when", "workloads_done", !stop.at.has_value(), "the run ends when every task has ended");
  std::optional<Duration> at_most;
  if (!stop.at) at_most = stop.at_most;
  v.optional_duration("at_most", at_most, kPositiveDuration, "... but not later than this");
  stop.at_most = at_most.value_or(Duration::zero());
}

void describe_host(HostConfig& host, ScenarioVisitor& v) {
  v.required({"machine", "pcpus"});
  v.machine("machine", host.machine, "the hardware: a preset's name, a preset with changes, or a full description");
  v.integer("pcpus", host.pcpus, {1, kMostPcpus}, "physical CPUs in use: the first so many of the machine");
  v.kind("scheduler", host.scheduler, scheduler_family(), "who decides which vCPU runs where");
  v.switches("assists", host.assists, assist_family(), "what the hypervisor does for its guests");
}

void describe_quota(QuotaConfig& quota, ScenarioVisitor& v) {
  v.required({"cpus"});
  v.real("cpus", quota.cpus, {0, kMostPcpus}, "pCPUs' worth of time in each period; 0: no limit");
  v.duration("period", quota.period, {std::chrono::milliseconds(1), std::chrono::seconds(10)}, "refill of the pool");
  v.duration("slice", quota.slice, {std::chrono::microseconds(100), std::chrono::seconds(1)},
             "what a pCPU takes from the pool at a time; kernel/sched/fair.c, Linux 5.10");
}

void describe_guest(GuestConfig& guest, ScenarioVisitor& v) {
  v.duration("tick", guest.tick, kAnyDuration, "period of the clock interrupt of each vCPU; 0s: none");
  v.flag("tickless_idle", guest.tickless_idle, "no clock interrupts while a vCPU has nothing to run (NO_HZ)");
  v.duration("timeslice", guest.timeslice, kPositiveDuration,
             "of a task when others wait for its vCPU; looked at by the tick: without one, tasks run until they block "
             "or yield");
  v.locks("locks", guest.locks, lock_family(), "the guest's locks: name to kind");
}

void describe_overcommit(Overcommit& overcommit, ScenarioVisitor& v) {
  static constexpr std::array<std::string_view, 3> kWays{"none", "copies", "pcpus"};
  v.choice("by", overcommit.by, kWays, "how the ratio is reached: more copies of a VM, or fewer pCPUs");
  v.name("vm", overcommit.vm, "whose copies");
  v.optional_real("ratio", overcommit.ratio, {0.01, 1000}, "vCPUs per pCPU; the path \"overcommit\" means this");
}

void describe_task(TaskConfig& task, GuestConfig& guest, ScenarioVisitor& v) {
  v.required({"name", "program"});
  v.name("name", task.name, "names the tasks in paths and results");
  v.integer("count", task.count, {1, kMostTasks}, "how many tasks run this program");
  v.program("program", task, guest, "operations, the name of a shared program, or a .json file in this folder");
}

void describe_vm(VmConfig& vm, ScenarioVisitor& v) {
  v.required({"name", "vcpus", "tasks"});
  v.name("name", vm.name, "names the VM in paths and results");
  v.flag("native", vm.native, "no hypervisor: vCPU i is pCPU i");
  v.integer("vcpus", vm.vcpus, {1, kMostVcpus}, "virtual CPUs");
  v.integer("copies", vm.copies, {1, kMostCopies}, "how many such VMs: NAME-0, NAME-1, ...");
  v.affinity("affinity", vm.affinity, "any, one_to_one (vCPU i on pCPU i), or one list of pCPUs per vCPU");
  v.integer("weight", vm.weight, {2, 1'000'000}, "of each vCPU in the host's scheduler; 1024 is nice 0");
  v.object("quota", "a hard limit on the VM's CPU time", [&vm](ScenarioVisitor& q) { describe_quota(vm.quota, q); });
  v.real("cap", vm.cap, {0, kMostPcpus}, "the credit scheduler's own limit, in pCPUs' worth of time; 0: none");
  v.object("guest", "what the VM's kernel is like", [&vm](ScenarioVisitor& g) { describe_guest(vm.guest, g); });
  v.list("tasks", vm.tasks, {.most = kMostTaskGroups, .named = true}, "what the VM runs",
         [&vm](TaskConfig& task, ScenarioVisitor& t) { describe_task(task, vm.guest, t); });
}

void describe_expectation(Expectation& e, ScenarioVisitor& v) {
  v.required({"metric", "why"});
  v.text("metric", e.metric, "dotted path of a result");
  v.point("point", e.point, "holds only where the varied values are these");
  v.point("relative_to", e.relative_to,
          "the bounds are for the ratio to the value where these varied values are different");
  v.optional_real("at_least", e.at_least, kAnyReal, "the mean over the replications is not below this");
  v.optional_real("at_most", e.at_most, kAnyReal, "the mean over the replications is not above this");
  v.text("why", e.why, "where the expectation comes from");
}

void describe_figure(PublishedFigure& f, ScenarioVisitor& v) {
  v.required({"metric"});
  v.text("what", f.what, "the figure in a few words");
  v.text("metric", f.metric,
         "dotted path of the result that the figure reports, or a sum of results: \"a.x + 2 * b.x - c.x\"");
  v.text("over", f.over, "the figure is the ratio of the metric to this one, at the same point");
  v.point("point", f.point, "the varied values for which it was reported");
  v.point("relative_to", f.relative_to, "the figure is the ratio to the value where these varied values are different");
  v.optional_real("tolerance", f.tolerance, {0, 10}, "relative error up to which it counts as reproduced; 0.05 is 5 %");
  v.optional_real("at_least", f.at_least, kAnyReal, "it counts as reproduced if it is not below this, in its unit");
  v.optional_real("at_most", f.at_most, kAnyReal, "it counts as reproduced if it is not above this, in its unit");
  v.flag("fitted", f.fitted, "used for calibration, hence no prediction");
  v.optional_real("value", f.value, kAnyReal, "the published figure");
  v.text("unit", f.unit, "s, ms, us or ns, where the source uses another unit than the metric");
}

void describe_quick_run(QuickRun& quick, ScenarioVisitor& v) {
  v.point("settings", quick.settings, "dotted path to value: what is smaller than in the source");
  v.real("scale", quick.scale, {1, 1e9},
         "what simulated spans of seconds are multiplied by before they are compared; ratios are not");
  v.text("why", quick.why, "what the smaller size keeps, and what it does not");
}

void describe_calibration(Calibration& c, ScenarioVisitor& v) {
  v.required({"parameter", "value", "fitted_on"});
  v.text("parameter", c.parameter, "dotted path of a value in this scenario");
  v.any_value("value", c.value, "the value, again");
  v.text("fitted_on", c.fitted_on, "the published figures on which it was fitted");
}

}  // namespace

void describe(Scenario& s, ScenarioVisitor& v) {
  SimulationConfig& simulation = s.simulation;
  v.required({"schema", "name", "stop", "host", "vms"});
  v.word("schema", "vcpusim.scenario/1", true, "the format of this file");
  v.name("name", simulation.name, "names the scenario in results");
  v.text("summary", s.summary, "what the scenario shows, in a sentence");
  v.texts("sources", s.sources, "what it was made from");
  auto seed = static_cast<std::int64_t>(simulation.seed);
  v.integer("seed", seed, {0, std::numeric_limits<std::int64_t>::max()}, "of all random streams");
  simulation.seed = static_cast<std::uint64_t>(seed);
  // The host comes before anything that may be given in cycles of its clock.
  v.object("host", "the hardware and the hypervisor", [&](ScenarioVisitor& h) { describe_host(simulation.host, h); });
  v.object("stop", "when the run ends", [&](ScenarioVisitor& o) { describe_stop(simulation.stop, o); });
  v.flag("random_start", simulation.random_start,
         "tasks of different VMs are first queued in random order, not as they stand here: guests are no gangs");
  v.duration("warmup", simulation.warmup, kAnyDuration, "the metrics cover what happens after this time");
  v.shared_programs("programs", "programs that tasks and bodies name");
  v.list("vms", simulation.vms, {.most = kMostVms, .named = true, .least = 1}, "the virtual machines", describe_vm);
  v.object("overcommit", "what the ratio of vCPUs to pCPUs means here",
           [&](ScenarioVisitor& o) { describe_overcommit(s.overcommit, o); });
  v.list("expect", s.expect, {.most = kMostFigures}, "what the results must satisfy", describe_expectation);
  v.axes("vary", s.vary, "values to run in turn: dotted path to list of values; all combinations");
  v.list("published", s.published, {.most = kMostFigures}, "figures that the results are compared with",
         describe_figure);
  v.object("quick", "how the reproduce command runs it, unless asked for the full size",
           [&](ScenarioVisitor& q) { describe_quick_run(s.quick, q); });
  v.list("calibrated", s.calibrated, {.most = kMostFigures}, "costs that were fitted to published figures",
         describe_calibration);
}

const KindFamily::Entry* KindFamily::find(std::string_view name) const {
  for (const Entry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<std::string> KindFamily::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

namespace {
template <class Kinds>
KindFamily family(std::string_view noun, const Kinds& kinds) {
  KindFamily all{noun, {}};
  for (const auto& kind : kinds) all.entries.push_back({kind.name, kind.summary, kind.describe});
  return all;
}
}  // namespace

KindFamily lock_family() { return family("lock", lock_kinds()); }
KindFamily scheduler_family() { return family("scheduler", scheduler_kinds()); }
KindFamily assist_family() { return family("assist", assist_kinds()); }

}  // namespace vcpusim
