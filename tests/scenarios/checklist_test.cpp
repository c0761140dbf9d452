// The scenarios of scenarios/checklist hold what they expect, and no longer do when the mechanism that each is about
// is switched off: what they show comes from that mechanism.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "models/simulation.h"
#include "scenarios/points.h"
#include "scenarios/results.h"
#include "scenarios/scenario.h"

namespace vcpusim {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(VCPUSIM_SOURCE_DIR) / "scenarios" / "checklist";

struct Row {
  std::string name;
  std::string off;  // the setting that switches its mechanism off
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const std::vector<Row> kRows{
    {"fair_lock_convoy", "host.pcpus=32"},
    {"stealing", "vms.guest.guest.locks.kernel.steal=none"},
    {"wait_early", "vms.guest.guest.locks.kernel.wait_early=off"},
    {"halt_cascade", "vms.guest.guest.locks.mm.wait_early=node"},
    {"kick_ahead", "vms.guest.guest.locks.kernel.kick_ahead=0"},
    {"pause_loop_exits", "host.assists.ple=false"},
    {"yield_to_eevdf", "host.assists.ple=false"},
    {"wakeup_latency", "vms.hog.affinity=[[2]]"},
    {"hint", "host.assists.hint=false"},
    {"quota_stalls", "vms.capped.quota.cpus=0"},
    {"pinned_siblings", "vms.os.affinity=any"},
    {"gang", "host.scheduler.kind=credit"},
    {"tlb_shootdown", "host.assists.pv_tlb_flush=false"},
    {"posix_timers", "vms.host.tasks.timers.program=global"},
    {"pause_length", "host.machine.costs.pause=10cycles"},
};

// What fails at the points of the scenario, each of them run with the settings after those of the point.
std::vector<std::string> failures(const Row& row, const std::vector<Setting>& settings) {
  InputErrors errors;
  const auto document = ScenarioDocument::open(kFolder / (row.name + ".json"), errors);
  if (!document) throw std::runtime_error(errors.lines().front());
  const auto scenario = document->load({}, errors);
  if (!scenario) throw std::runtime_error(errors.lines().front());
  std::vector<RunRecord> records;
  for (const Point& point : all_points(scenario->vary)) {
    std::vector<Setting> all = settings_at({}, point);
    all.insert(all.end(), settings.begin(), settings.end());
    const auto at_point = document->load(all, errors);
    if (!at_point) throw std::runtime_error(errors.lines().front());
    records.push_back({point, at_point->simulation.seed, 0, Simulation(at_point->simulation, nullptr).run()});
  }
  const auto summary = summarise_points(records);
  std::vector<std::string> failed;
  for (const ExpectationResult& result : check_expectations(*scenario, summary)) {
    if (result.holds) continue;
    failed.push_back(result.expectation->metric + " at " + describe_point(result.point) + " is " +
                     (result.mean ? std::to_string(*result.mean) : "not there") + " (" + result.expectation->why + ")");
  }
  return failed;
}

class Checklist : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Rows, Checklist, ::testing::ValuesIn(kRows), [](const auto& row) { return row.param.name; });

TEST_P(Checklist, HoldsWhatIsExpected) {
  for (const std::string& failure : failures(GetParam(), {})) ADD_FAILURE() << failure;
}

TEST_P(Checklist, FailsWithoutItsMechanism) {
  InputErrors errors;
  const auto off = parse_setting("--set", GetParam().off, errors);
  ASSERT_TRUE(off);
  EXPECT_FALSE(failures(GetParam(), {*off}).empty());
}

TEST(ChecklistRows, AreAllScenariosOfTheFolder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) files.insert(entry.path().stem());
  std::set<std::string> rows;
  for (const Row& row : kRows) rows.insert(row.name);
  EXPECT_EQ(files, rows);
  EXPECT_EQ(rows.size(), 15u);
}

}  // namespace
}  // namespace vcpusim
