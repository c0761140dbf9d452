#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ProcessOptions;
using testing::ProcessResult;
using ::testing::StartsWith;

const std::string kSmallest = std::string(VCPUSIM_SOURCE_DIR) + "/tests/scenarios/valid/smallest.json";
const std::string kCompute = std::string(VCPUSIM_SOURCE_DIR) + "/scenarios/smoke/overcommit.json";

// Guests that sleep, compute and share a lock; more and more of them on four pCPUs.
constexpr const char* kWeb = R"({"schema": "vcpusim.scenario/1", "name": "web", "seed": 7,
 "stop": {"at": "200ms"}, "warmup": "10ms",
 "host": {"machine": "generic", "pcpus": 4, "scheduler": "cfs"},
 "overcommit": {"by": "copies", "vm": "web"},
 "vms": [{"name": "web", "vcpus": 2, "guest": {"tick": "1ms", "locks": {"l": "ticket"}},
   "tasks": [{"name": "t", "count": 2, "program": [{"repeat": "forever", "do": [
     {"user": {"exponential": "100us"}}, {"sleep": {"exponential": "200us"}},
     {"lock": "l", "hold": {"exponential": "20us"}}]}]}]}]})";

// Guests that only compete for a lock: with more of them, waits get longer, then shorter as nobody runs beside anybody.
constexpr const char* kHump = R"({"schema": "vcpusim.scenario/1", "name": "hump", "seed": 7,
 "stop": {"at": "20ms"}, "warmup": "1ms",
 "host": {"machine": "generic", "pcpus": 4},
 "overcommit": {"by": "copies", "vm": "g"},
 "vms": [{"name": "g", "vcpus": 2, "guest": {"locks": {"l": "qspinlock"}},
   "tasks": [{"name": "t", "count": 2, "program": [{"repeat": "forever", "do": [
     {"user": {"exponential": "10us"}}, {"lock": "l", "hold": {"exponential": "5us"}}]}]}]}]})";

class PlanCommand : public ::testing::Test {
 protected:
  PlanCommand() {
    testing::write_whole(folder_.path() / "web.json", kWeb);
    testing::write_whole(folder_.path() / "hump.json", kHump);
  }
  ProcessResult vcpusim(std::vector<std::string> arguments, ProcessOptions options = {}) const {
    arguments.insert(arguments.begin(), VCPUSIM_PROGRAM);
    options.folder = folder_.path();
    return testing::run_process(arguments, options);
  }
  ProcessResult plan(std::vector<std::string> arguments, ProcessOptions options = {}) const {
    arguments.insert(arguments.begin(), "plan");
    return vcpusim(arguments, options);
  }
  nlohmann::json plan_json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-o", "-"});
    const ProcessResult result = plan(arguments);
    EXPECT_EQ(result.err, "");
    return nlohmann::json::parse(result.out);
  }
  // Of the mean over 12 replications at each value of the axis: whether it is on the good side.
  std::vector<bool> exhaustive(const std::string& file, const std::string& path, const std::vector<std::string>& values,
                               const std::string& pointer, double bound, bool at_most) const {
    std::vector<bool> meets;
    for (const std::string& value : values) {
      const ProcessResult result =
          vcpusim({"run", file, "--set", path + "=" + value, "--replications", "12", "-o", "-"});
      double sum = 0;
      const auto runs = nlohmann::json::parse(result.out)["runs"];
      for (const auto& run : runs) sum += run["metrics"].at(nlohmann::json::json_pointer(pointer)).get<double>();
      const double mean = sum / static_cast<double>(runs.size());
      meets.push_back(at_most ? mean <= bound : mean >= bound);
    }
    return meets;
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(PlanCommand, FindsWhatAnExhaustiveSearchFinds) {
  struct Case {
    std::string file;
    std::string axis;
    std::vector<std::string> values;
    std::string metric;
    double bound;
    bool at_most;
    std::string value;  // what is expected of both
    std::string next;
  };
  const std::vector<Case> cases{
      {kCompute, "overcommit", {"1", "1.5", "2", "2.5", "3", "3.5", "4"}, "vms.web.elapsed_s", 2.6, true, "2.5", "3"},
      {"web.json",
       "overcommit",
       {"0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4"},
       "vms.web.clock.jitter_us.mean",
       52,
       true,
       "2",
       "2.5"},
      {"web.json",
       "overcommit",
       {"0.5", "1", "1.5", "2", "2.5", "3"},
       "vms.web.tasks.t.operations_per_s",
       18500,
       false,
       "2",
       "1.5"}};
  for (const Case& c : cases) {
    std::string pointer = "/" + c.metric;
    std::ranges::replace(pointer, '.', '/');
    const auto meets = exhaustive(c.file, c.axis, c.values, pointer, c.bound, c.at_most);
    std::string list;
    for (const std::string& value : c.values) list += (list.empty() ? "" : ",") + value;
    const auto found = plan_json({c.file, "--over", c.axis + "=" + list, "--target",
                                  fmt::format("{}{}{}", c.metric, c.at_most ? "<=" : ">=", c.bound)});
    EXPECT_EQ(found["value"].dump(), c.value) << found.dump(1);
    EXPECT_EQ(found["next"].dump(), c.next);
    EXPECT_TRUE(found["proven"]) << found.dump(1);
    EXPECT_LT(found["points"].size(), c.values.size()) << "without looking everywhere";
    EXPECT_EQ(found["broken"], nlohmann::json({c.metric}));
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      const double here = std::stod(c.values[i]);
      const double answer = std::stod(c.value);
      EXPECT_EQ(meets[i], found["verdict"] == "largest" ? here <= answer : here >= answer) << c.metric << " " << here;
    }
  }
}

TEST_F(PlanCommand, TellsTheMarginAndWhatBreaksFirst) {
  const ProcessResult result = plan({kCompute, "--target", "vms.web.elapsed_s<=2.5", "--target",
                                     "vms.web.tasks.compute.elapsed_s<=2.9", "--target", "host.busy_fraction>=0.5"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nlargest overcommit 2 meets the targets (each decision at 95.0% confidence)\n"
                                    "  margin: vms.web.elapsed_s is 2, 20.0 % below 2.5\n"
                                    "  margin: vms.web.tasks.compute.elapsed_s is 2, 31.0 % below 2.9\n"));
  EXPECT_THAT(result.out, HasSubstr("  breaks first, at 3: vms.web.elapsed_s is 3.001, 20.0 % above 2.5\n"
                                    "  then, at 3: vms.web.tasks.compute.elapsed_s is 3.001, 3.5 % above 2.9\n"));
  EXPECT_THAT(result.out, HasSubstr("\n5 of 5 values looked at, in 15 runs\n"));
}

TEST_F(PlanCommand, TakesAllReachableRatiosIfNoneAreGiven) {
  const auto found = plan_json({"web.json", "--target", "vms.web.clock.jitter_us.mean<=1e9"});
  EXPECT_EQ(found["verdict"], "all_meet");
  EXPECT_EQ(found["values"], 8) << "2 to 16 vCPUs on 4 pCPUs, 2 at a time";
  EXPECT_EQ(found["value"], 4);
  const auto pcpus = plan_json({"web.json", "--set", "overcommit.by=pcpus", "--set", "vms.web.vcpus=6", "--target",
                                "vms.web.clock.jitter_us.mean<=1e9"});
  EXPECT_EQ(pcpus["values"], 5) << "6 / 6, 6 / 5, 6 / 4, 6 / 3, 6 / 2";
  EXPECT_EQ(pcpus["value"], 3);
}

TEST_F(PlanCommand, GivesNoAnswerWhereTheMetricIsNotMonotone) {
  const std::string metric = "vms.g.locks.l.wait_us.mean";
  const ProcessResult result = plan({"hump.json", "--target", metric + "<=2.5"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, HasSubstr("\nno answer: not monotone over overcommit: the targets are met at "));
  EXPECT_EQ(plan_json({"hump.json", "--target", metric + "<=2.5"})["value"], nullptr);

  const ProcessResult met = plan({"hump.json", "--target", metric + "<=50", "--replications", "20"});
  EXPECT_EQ(met.status, 1) << "although all values meet this one";
  EXPECT_THAT(met.out, AllOf(HasSubstr("not monotone"), HasSubstr(metric + " goes from "), HasSubstr(" back to ")));
}

TEST_F(PlanCommand, RunsThatAreCutOffMeetNothing) {
  const ProcessResult result = plan({kCompute, "--set", "stop.at_most=3.2s", "--target", "vms.web.elapsed_s<=100"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nlargest overcommit 3 meets the targets"));
  EXPECT_THAT(result.out, HasSubstr("  breaks first, at 4: the workloads are not done at stop.at_most\n"));
}

TEST_F(PlanCommand, SaysIfNothingMeetsTheTargets) {
  const ProcessResult result = plan({kCompute, "--target", "vms.web.elapsed_s<=0.5"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, HasSubstr("\nno overcommit looked at meets the targets\n"));
}

TEST_F(PlanCommand, ReplicatesWhereItIsHardToDecide) {
  const auto found = plan_json({"web.json", "--target", "vms.web.clock.jitter_us.mean<=52"});
  std::map<double, std::size_t> replications;
  for (const auto& point : found["points"]) replications[point["value"]] = point["replications"];
  EXPECT_EQ(replications.at(0.5), 3u);
  EXPECT_GT(std::max(replications.at(2), replications.at(2.5)), 3u);

  const auto capped =
      plan_json({"web.json", "--target", "vms.web.clock.jitter_us.mean<=52", "--max-replications", "3"});
  EXPECT_FALSE(capped["proven"]);
}

TEST_F(PlanCommand, IsTheSameOnAnyNumberOfThreads) {
  const std::vector<std::string> question{"web.json", "--target", "vms.web.clock.jitter_us.mean<=52", "-o", "-", "-j"};
  auto one = question;
  one.emplace_back("1");
  auto three = question;
  three.emplace_back("3");
  const std::string text = plan(one).out;
  EXPECT_THAT(text, StartsWith("{"));
  EXPECT_EQ(text, plan(three).out);
}

TEST_F(PlanCommand, SavesWhatItKnowsWhenInterrupted) {
  const ProcessResult result = plan({"web.json", "--set", "stop.at=2h", "--set", "warmup=0s", "--target",
                                     "vms.web.clock.jitter_us.mean<=52", "-o", "p.json"},
                                    {.interrupt_after = 300ms});
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.err, "vcpusim plan: interrupted after 0 runs\n");
  EXPECT_EQ(nlohmann::json::parse(testing::read_whole(folder() / "p.json"))["verdict"], "interrupted");
}

TEST_F(PlanCommand, SaysWhatIsWrong) {
  const std::string target = "vms.web.clock.jitter_us.mean<=52";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"web.json"}, "expected at least one --target"},
      {{"web.json", "--target", "vms.web.x<5"}, "expected METRIC<=VALUE or METRIC>=VALUE"},
      {{"web.json", "--target", "vms.web.x<=5s"}, "expected METRIC<=VALUE or METRIC>=VALUE"},
      {{"web.json", "--target", "vms.web.clock.jitter_us.men<=7"}, "did you mean \"vms.web.clock.jitter_us.mean\"?"},
      {{"web.json", "--target", target, "--over", "vms.web.vcpus"}, "expected its values"},
      {{"web.json", "--target", target, "--over", "host.scheduler=cfs,credit"},
       "expected numbers, or spans of one unit"},
      {{"web.json", "--target", target, "--over", "vms.web.vcpus=1:x:2"}, "expected numbers"},
      {{"web.json", "--target", target, "--over", "vms.web.vpus=1:3:1"}, "did you mean \"vcpus\"?"},
      {{kSmallest, "--target", target}, "does not say how overcommit is reached"},
      {{"web.json", "--target", target, "--replications", "1"}, "--replications: expected 2 or more"},
      {{kCompute, "--target", target, "--over", "vms.web.vcpus=1:3:1"}, "the scenario varies overcommit, too"}};
  for (const auto& [arguments, message] : cases) {
    const ProcessResult result = plan(arguments);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_THAT(result.out, IsEmpty());
  }
  EXPECT_EQ(plan({"none.json", "--target", target}).status, 3);
  EXPECT_EQ(plan({"web.json", "--target", target, "-o", "none/p.json"}).status, 3);
}

}  // namespace
}  // namespace vcpusim
