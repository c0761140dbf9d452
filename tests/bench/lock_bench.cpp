// lock/KIND: four native tasks of one socket that take and release one lock of each kind without a pause; items are
// acquisitions. scenario/NAME: each smoke scenario at all its points; items are simulated events.
#include <benchmark/benchmark.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <variant>

#include "models/catalogue.h"
#include "models/simulation.h"
#include "scenarios/library.h"
#include "scenarios/points.h"
#include "scenarios/run_points.h"
#include "tests/support/program.h"

namespace vcpusim {
namespace {

std::int64_t integer_metric(const RunResult& result, std::string_view path) {
  for (const auto& [name, value] : result.metrics) {
    if (name == path) return std::get<std::int64_t>(value);
  }
  return 0;
}

void run_lock(benchmark::State& state, const std::string& kind) {
  constexpr std::int64_t kTasks = 4;
  constexpr std::int64_t kPairs = 50'000;
  SimulationConfig config;
  config.name = "lock";
  config.stop.at_most = std::chrono::seconds(60);
  config.host.machine = find_machine_kind("westmere-ex-4s")->make();
  config.host.pcpus = kTasks;
  VmConfig& vm = config.vms.emplace_back();
  vm.name = "g";
  vm.native = true;
  vm.vcpus = kTasks;
  vm.guest.locks.push_back({"l", {kind, {}}});
  const Program section{testing::hold(0, Distribution()), testing::kernel(Distribution::constant(Duration{16'000}))};
  vm.tasks.push_back({"t", kTasks, {testing::repeat(kPairs, section)}});
  std::int64_t acquisitions = 0;
  for (auto _ : state) acquisitions += integer_metric(Simulation(config, nullptr).run(), "vms.g.locks.l.acquisitions");
  state.SetItemsProcessed(acquisitions);
}

void run_scenario(benchmark::State& state, const std::filesystem::path& file) {
  std::int64_t events = 0;
  for (auto _ : state) {
    InputErrors errors;
    auto document = ScenarioDocument::open(file, errors);
    const auto scenario = document ? document->load({}, errors) : std::nullopt;
    if (!scenario) return state.SkipWithError("the scenario is not valid");
    const std::atomic<bool> interrupt = false;
    RunPlan plan{std::move(*document), {}, all_points(scenario->vary), 1, 1, {}};
    const RunOutcome outcome = run_points(std::move(plan), interrupt, [](std::size_t, std::size_t) {});
    for (const RunRecord& record : outcome.records) events += integer_metric(record.result, "host.events");
  }
  state.SetItemsProcessed(events);
}

const bool kRegistered = [] {
  for (const LockKind& kind : lock_kinds()) {
    const std::string name(kind.name);
    benchmark::RegisterBenchmark(("lock/" + name).c_str(), [name](benchmark::State& state) { run_lock(state, name); });
  }
  for (const LibraryEntry& entry : scenarios_below(std::filesystem::path(VCPUSIM_SOURCE_DIR) / "scenarios/smoke")) {
    benchmark::RegisterBenchmark(("scenario/" + entry.name).c_str(),
                                 [file = entry.file](benchmark::State& state) { run_scenario(state, file); });
  }
  return true;
}();

}  // namespace
}  // namespace vcpusim
