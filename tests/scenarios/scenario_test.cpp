#include "scenarios/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "scenarios/dotted_path.h"
#include "scenarios/points.h"
#include "tests/support/process.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kScenario =
    R"({"schema": "vcpusim.scenario/1", "name": "s", "seed": 7, "stop": {"at": "20s"},
 "host": {"machine": "ideal", "pcpus": 4},
 "vms": [{"name": "g", "native": true, "vcpus": 4, "guest": {"locks": {"l": "ticket"}},
   "tasks": [{"name": "t", "count": 2, "program": [{"user": "1us"}, {"lock": "l", "hold": {"exponential": "5us"}}]}]}],
 "vary": {"vms.g.guest.locks.l.kind": ["ticket", "ttas"], "vms.g.tasks.t.count": [1, 2, 3]}})";

ScenarioDocument document(std::string_view text) {
  InputErrors errors;
  auto parsed = ScenarioDocument::parse(text, "s.json", ".", errors);
  EXPECT_THAT(errors.lines(), IsEmpty());
  return *parsed;
}

Setting set(std::string_view assignment) {
  InputErrors errors;
  return *parse_setting("--set", assignment, errors);
}

Scenario load(std::string_view text, const std::vector<Setting>& settings = {}) {
  InputErrors errors;
  auto scenario = document(text).load(settings, errors);
  EXPECT_THAT(errors.lines(), IsEmpty());
  return scenario.value_or(Scenario{});
}

std::vector<std::string> errors_of(std::string_view text, const std::vector<Setting>& settings = {}) {
  InputErrors errors;
  document(text).load(settings, errors);
  return errors.lines();
}

// The resolved value at a dotted path, as text.
std::string resolved(const Scenario& scenario, std::string_view path) {
  InputErrors errors;
  const auto json = parse_json(resolved_text(scenario), nullptr, errors);
  const Json* value = json ? find_path(*json, path) : nullptr;
  return value == nullptr ? "nothing" : value_text(*value);
}

TEST(Scenario, FillsTheConfiguration) {
  const Scenario s = load(kScenario);
  EXPECT_EQ(s.simulation.name, "s");
  EXPECT_EQ(s.simulation.seed, 7u);
  EXPECT_EQ(s.simulation.stop.at, 20s);
  EXPECT_EQ(s.simulation.host.machine.name, "ideal");
  EXPECT_EQ(s.simulation.host.pcpus, 4);
  const VmConfig& vm = s.simulation.vms.at(0);
  EXPECT_TRUE(vm.native);
  EXPECT_EQ(vm.vcpus, 4);
  EXPECT_EQ(vm.guest.locks.at(0).name, "l");
  EXPECT_EQ(vm.guest.locks.at(0).kind.name, "ticket");
  EXPECT_EQ(vm.tasks.at(0).count, 2);
  EXPECT_EQ(vm.tasks.at(0).program.size(), 2u);
}

TEST(Scenario, KeepsParametersOfKindsThatWereGiven) {
  const Scenario s = load(kScenario, {set(R"(vms.g.guest.locks.l={"kind": "qspinlock", "pending_rereads": 3})")});
  EXPECT_EQ(std::get<std::int64_t>(s.simulation.vms[0].guest.locks[0].kind.params.at("pending_rereads")), 3);
  EXPECT_EQ(resolved(s, "vms.g.guest.locks.l.pending_rereads"), "3");
}

TEST(Scenario, CyclesConvertWithTheMachinesOwnClock) {
  const Scenario s = load(kScenario, {set(R"(host.machine={"preset": "ideal", "clock_khz": 2000000,
      "costs": {"local_access": "10cycles"}})"),
                                      set("vms.g.tasks.t.program.0.user=4096cycles")});
  EXPECT_EQ(s.simulation.host.machine.costs.local_access, 5ns);
  EXPECT_EQ(resolved(s, "vms.g.tasks.t.program.0.user"), "2.048us");
}

TEST(Scenario, BarriersCountTheTasksThatMentionThem) {
  std::string text(kScenario);
  text.replace(text.find(R"({"user": "1us"})"), 15,
               R"({"barrier": "b"}, {"choose": [{"do": [{"barrier": "b"}, {"barrier": "c"}]}]})");
  const Scenario s = load(text);
  const auto& barriers = s.simulation.vms[0].guest.barriers;
  ASSERT_EQ(barriers.size(), 2u);
  EXPECT_EQ(barriers[0].name, "b");
  EXPECT_EQ(barriers[0].parties, 2) << "one per task, however often its program mentions it";
}

TEST(Scenario, TheResolvedScenarioLoadsToTheSameDigest) {
  for (const char* file : {"valid/everything.json", "valid/smallest.json"}) {
    InputErrors errors;
    const auto path = std::filesystem::path(VCPUSIM_SOURCE_DIR) / "tests/scenarios" / file;
    const auto opened = ScenarioDocument::open(path, errors);
    ASSERT_TRUE(opened) << file;
    const auto first = opened->load({}, errors);
    ASSERT_TRUE(first) << errors.lines().front();
    const Scenario second = load(resolved_text(*first));
    EXPECT_EQ(resolved_text(second), resolved_text(*first));
    EXPECT_EQ(digest(second), digest(*first));
  }
}

TEST(Scenario, TheDigestSeesEveryValueAndNoFormatting) {
  const std::string same = digest(load(kScenario));
  std::string spaced(kScenario);
  spaced.replace(spaced.find("\"20s\""), 5, "  \"20000ms\" ");
  EXPECT_EQ(digest(load(spaced)), same);
  EXPECT_NE(digest(load(kScenario, {set("seed=8")})), same);
  EXPECT_NE(digest(load(kScenario, {set("vms.g.tasks.t.program.1.hold.exponential=6us")})), same);
}

TEST(Scenario, AMachineCanBeDescribedInFull) {
  const std::string preset = R"("preset": "generic",)";
  std::string text = resolved_text(load(kScenario, {set("host.machine=generic")}));
  ASSERT_NE(text.find(preset), std::string::npos);
  text.erase(text.find(preset), preset.size());
  const Scenario s = load(text);
  EXPECT_EQ(s.simulation.host.machine.name, "custom");
  EXPECT_EQ(s.simulation.host.machine.sockets, 2);
}

TEST(Settings, ReachWhatTheFileOmits) {
  EXPECT_EQ(load(kScenario, {set("warmup=1ms")}).simulation.warmup, 1ms);
  EXPECT_EQ(load(kScenario, {set("vms.g.guest.locks.new=mcs")}).simulation.vms[0].guest.locks.at(1).kind.name, "mcs");
}

TEST(Settings, ABareNameTakesPathsOfItsParts) {
  const auto kind = [](std::string_view assignment) {
    return load(kScenario, {set(assignment)}).simulation.vms[0].guest.locks[0].kind.name;
  };
  EXPECT_EQ(kind("vms.g.guest.locks.l.kind=mcs"), "mcs");
  EXPECT_EQ(kind("vms.g.guest.locks.l=mcs"), "mcs");
  const Scenario s = load(kScenario, {set("host.machine.costs.local_access=3ns")});
  EXPECT_EQ(s.simulation.host.machine.name, "ideal");
  EXPECT_EQ(s.simulation.host.machine.costs.local_access, 3ns);
}

TEST(Settings, TheLastOneWins) { EXPECT_EQ(load(kScenario, {set("seed=8"), set("seed=9")}).simulation.seed, 9u); }

TEST(Settings, FixTheAxisTheyName) {
  for (const char* path : {"vms.g.guest.locks.l.kind=mcs", "vms.g.guest.locks.l=mcs"}) {
    const Scenario s = load(kScenario, {set(path)});
    const auto points = all_points(s.vary);
    EXPECT_THAT(points, ::testing::SizeIs(3)) << path;
    EXPECT_EQ(describe_point(points[0]), "vms.g.guest.locks.l.kind=mcs vms.g.tasks.t.count=1");
  }
}

TEST(Settings, ErrorsNameTheOptionAndTheNearestKey) {
  EXPECT_THAT(errors_of(kScenario, {set("vms.g.vcpsu=3")}),
              ElementsAre("--set vms.g.vcpsu=3: /vms/0/vcpsu: unknown key; did you mean \"vcpus\"?"));
  EXPECT_THAT(errors_of(kScenario, {set("vms.gg.vcpus=3")}),
              ElementsAre("--set vms.gg.vcpus=3: /vms: no item \"gg\" in /vms; did you mean \"g\"? items: g"));
  EXPECT_THAT(errors_of(kScenario, {set("host.mashine.costs.pause=3ns")}),
              ElementsAre("--set host.mashine.costs.pause=3ns: /host/mashine: unknown key; did you mean \"machine\"?"));
  EXPECT_THAT(errors_of(kScenario, {set("vms.g.vcpus=many")}),
              ElementsAre("--set vms.g.vcpus=many: /vms/0/vcpus: expected an integer from 1 to 16384; got \"many\""));
  EXPECT_THAT(
      errors_of(kScenario, {set("vms.g.vcpus.max=3")}),
      ElementsAre("--set vms.g.vcpus.max=3: /vms/0/vcpus: \"vms.g.vcpus.max\" leads into 4, which has no parts"));
}

TEST(Points, AreAllCombinationsInOrder) {
  const auto points = all_points(load(kScenario).vary);
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(describe_point(points[0]), "vms.g.guest.locks.l.kind=ticket vms.g.tasks.t.count=1");
  EXPECT_EQ(describe_point(points[4]), "vms.g.guest.locks.l.kind=ttas vms.g.tasks.t.count=2");
  EXPECT_TRUE(agrees(points[4], {points[4][1]}));
  EXPECT_FALSE(agrees(points[4], points[3]));
  EXPECT_EQ(load(kScenario, settings_at({}, points[4])).simulation.vms[0].tasks[0].count, 2);
}

TEST(Programs, FilesAreFoundBesideTheScenarioAndNowhereElse) {
  const testing::TemporaryFolder folder;
  testing::write_whole(folder.path() / "p.json", R"([{"user": "3us"}])");
  testing::write_whole(folder.path() / "bad.json", "[{\"user\": \"3us\"},\n {\"user\": 3}]");
  const auto errors_with = [&](const std::string& program) {
    std::string text(kScenario);
    const auto start = text.find(R"([{"user": "1us"})");
    text.replace(start, text.find("}]}]}]", start) + 2 - start, "\"" + program + "\"");
    testing::write_whole(folder.path() / "s.json", text);
    InputErrors errors;
    const auto opened = ScenarioDocument::open(folder.path() / "s.json", errors);
    if (opened) opened->load({}, errors);
    return errors.lines();
  };
  EXPECT_THAT(errors_with("p.json"), IsEmpty());
  EXPECT_THAT(errors_with("./p.json"), IsEmpty());
  EXPECT_THAT(errors_with("sub/../p.json"), ElementsAre(HasSubstr("expected a file in the scenario's folder")));
  EXPECT_THAT(
      errors_with("bad.json"),
      ElementsAre((folder.path() / "bad.json").string() +
                  ":2:11: /1/user: expected a duration with a unit, such as \"2ms\", or a distribution, such as "
                  "{\"exponential\": \"2ms\"}; got 3"));
}

TEST(Programs, TheirSizeIsLimited) {
  std::string text(kScenario);
  const auto start = text.find(R"([{"user": "1us"})");
  std::string program = "[{\"user\": \"1us\"}";
  for (int i = 1; i < 10'000; ++i) program += ",{\"user\": \"1us\"}";
  const auto length = text.find("}]}]}]", start) + 2 - start;
  std::string good = text;
  good.replace(start, length, program + "]");
  EXPECT_THAT(errors_of(good), IsEmpty());
  text.replace(start, length, program + ",{\"user\": \"1us\"}]");
  EXPECT_THAT(errors_of(text), ElementsAre(HasSubstr("more than 10000 operations in one program")));
}

TEST(Programs, SharedOnesCountWhereverTheyAreUsed) {
  std::string tasks;
  for (int i = 0; i < 200; ++i)
    tasks += (i > 0 ? ",{\"name\": \"t" : "{\"name\": \"t") + std::to_string(i) + "\", \"program\": \"p\"}";
  std::string program = "{\"user\": \"1us\"}";
  for (int i = 1; i < 9'000; ++i) program += ",{\"user\": \"1us\"}";
  const std::string text = R"({"schema": "vcpusim.scenario/1", "name": "s", "stop": {"at": "1s"},
      "host": {"machine": "ideal", "pcpus": 300}, "programs": {"p": [)" +
                           program + R"(]},
      "vms": [{"name": "g", "native": true, "vcpus": 300, "tasks": [)" +
                           tasks + "]}]}";
  EXPECT_THAT(errors_of(text), ElementsAre(HasSubstr("more than 1000000 operations in all programs together")));
}

TEST(Programs, ManyBranchesOfACircleEndInAnError) {
  std::string text(kScenario);
  const auto start = text.find(R"([{"user": "1us"})");
  text.replace(start, text.find("}]}]}]", start) + 2 - start, "\"a\"");
  text.insert(text.rfind('}'), R"(, "programs": {"a": [{"repeat": 2, "do": "a"}, {"repeat": 2, "do": "a"}]})");
  EXPECT_FALSE(errors_of(text).empty());  // the test's time limit is the assertion
}

}  // namespace
}  // namespace vcpusim
