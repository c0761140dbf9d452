// The program from outside: what it prints where, and what it returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ProcessOptions;
using testing::ProcessResult;
using testing::read_whole;
using testing::write_whole;

const std::string kSmallest = std::string(VCPUSIM_SOURCE_DIR) + "/tests/scenarios/valid/smallest.json";

const std::string kOvercommit = std::string(VCPUSIM_SOURCE_DIR) + "/scenarios/smoke/overcommit.json";

constexpr const char* kContended = R"({"schema": "vcpusim.scenario/1", "name": "contended", "seed": 7,
 "stop": {"at": "2ms"}, "host": {"machine": "ideal", "pcpus": 4},
 "vms": [{"name": "g", "native": true, "vcpus": 4, "guest": {"locks": {"l": "ticket"}},
   "tasks": [{"name": "t", "count": 4, "program": [
     {"repeat": "forever", "do": [{"user": {"exponential": "10us"}}, {"lock": "l", "hold": {"exponential": "5us"}}]}]}]}],
 "vary": {"vms.g.tasks.t.count": [1, 2], "vms.g.guest.locks.l.kind": ["ticket", "ttas"]},
 "expect": [{"metric": "vms.g.tasks.t.operations", "at_least": 1, "why": "they work"}],
 "published": [{"metric": "vms.g.tasks.t.elapsed_s", "unit": "us", "value": 1600,
                "point": {"vms.g.tasks.t.count": 1, "vms.g.guest.locks.l.kind": "ttas"}}]})";

class Program : public ::testing::Test {
 protected:
  Program() { write_whole(folder_.path() / "contended.json", kContended); }

  ProcessResult vcpusim(std::vector<std::string> arguments, ProcessOptions options = {}) const {
    arguments.insert(arguments.begin(), VCPUSIM_PROGRAM);
    options.folder = folder_.path();
    return testing::run_process(arguments, options);
  }
  std::string file(const char* name) const { return read_whole(folder_.path() / name); }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(Program, EveryCommandOfTheHelpHasHelpAndRuns) {
  const ProcessResult help = vcpusim({"--help"});
  EXPECT_EQ(help.status, 0);
  std::istringstream lines(help.out.substr(help.out.find("Commands:\n") + 10));
  std::vector<std::string> commands;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  ASSERT_GE(commands.size(), 5u);
  ASSERT_EQ(vcpusim({"run", kSmallest, "-o", "results.json"}).status, 0);
  const std::map<std::string, std::vector<std::string>> arguments{
      {"run", {kSmallest}},
      {"compare", {"results.json", "results.json"}},
      {"plan", {kOvercommit, "--target", "vms.web.elapsed_s<=2.5"}},
      {"validate", {kSmallest}},
      {"describe", {"ticket"}},
      {"reproduce", {"contended.json"}},
      {"sweep", {kSmallest, "-o", "swept.json"}},
      {"merge", {"swept.json", "-o", "merged.json"}}};
  for (const std::string& command : commands) {
    EXPECT_THAT(vcpusim({command, "--help"}).out, HasSubstr("vcpusim " + command)) << command;
    std::vector<std::string> line{command};
    if (arguments.contains(command))
      line.insert(line.end(), arguments.at(command).begin(), arguments.at(command).end());
    const ProcessResult result = vcpusim(line);
    EXPECT_EQ(result.status, 0) << command << result.err;
    EXPECT_EQ(result.out.empty(), command == "merge") << command;
    EXPECT_THAT(result.err, IsEmpty()) << command;
  }
}

TEST_F(Program, SaysItsVersion) {
  EXPECT_TRUE(std::regex_match(vcpusim({"--version"}).out, std::regex("vcpusim [0-9]+\\.[0-9]+\\.[0-9]+\n")));
}

TEST_F(Program, RefusesAWrongCommandLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines{
      {{}, "vcpusim COMMAND"},
      {{"rum"}, "no command \"rum\"; did you mean \"run\"?"},
      {{"run"}, "expected one scenario file; got 0"},
      {{"run", "a.json", "b.json"}, "expected one scenario file; got 2"},
      {{"run", kSmallest, "--sed", "3"}, "--sed"},
      {{"run", kSmallest, "--rep", "3"}, "--rep"},
      {{"run", kSmallest, "--replications", "0"}, "--replications: expected from 1 to"},
      {{"run", kSmallest, "--replications", "3x"}, "replications"},
      {{"run", kSmallest, "-j", "0"}, "--jobs: expected from 1 to"},
      {{"run", kSmallest, "--set", "seed"}, "--set seed: expected PATH=VALUE"},
      {{"run", kSmallest, "--set", "vms.g.vcpsu=2"},
       "--set vms.g.vcpsu=2: /vms/0/vcpsu: unknown key; did you mean \"vcpus\"?"},
      {{"run", kSmallest, "--seed", "x"}, "--seed x: /seed: expected an integer"},
      {{"run", kSmallest, "--seed=-1"}, "--seed -1: /seed: expected an integer"},
      {{"validate"}, "expected at least one scenario file"},
      {{"list", "lokcs"}, "no list \"lokcs\"; did you mean \"locks\"?"},
      {{"describe", "tiket"}, "no kind \"tiket\"; did you mean \"ticket\"?"},
      {{"schema", "x"}, "expected no argument"}};
  for (const auto& [line, message] : lines) {
    const ProcessResult result = vcpusim(line);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_THAT(result.out, IsEmpty()) << message;
  }
}

TEST_F(Program, AFileThatCannotBeReadOrWrittenIsStatusThree) {
  const ProcessResult missing = vcpusim({"run", "no.json"});
  EXPECT_EQ(missing.status, 3);
  EXPECT_EQ(missing.err, "no.json: cannot be read: No such file or directory\n");
  EXPECT_EQ(vcpusim({"validate", "no.json"}).status, 3);
  EXPECT_EQ(vcpusim({"run", "."}).status, 3);
  const ProcessResult unwritable = vcpusim({"run", kSmallest, "-o", "no/out.json"});
  EXPECT_EQ(unwritable.status, 3);
  EXPECT_THAT(unwritable.err, HasSubstr("no/out.json: cannot be written: No such file or directory"));
  EXPECT_EQ(vcpusim({"run", kSmallest, "--trace", "no/trace.jsonl"}).status, 3);
}

TEST_F(Program, ResultsOnStandardOutputAreAlone) {
  const ProcessResult result = vcpusim({"run", "contended.json", "-o", "-"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["runs"].size(), 4u);
  EXPECT_EQ(vcpusim({"run", "contended.json", "-o", "out.json"}).status, 0);
  EXPECT_EQ(file("out.json"), result.out);
}

TEST_F(Program, TheSameBytesAtAnyNumberOfThreadsAndWithATrace) {
  vcpusim({"run", "contended.json", "--replications", "3", "-j", "1", "-o", "one.json"});
  vcpusim({"run", "contended.json", "--replications", "3", "-j", "4", "-o", "four.json"});
  vcpusim({"run", "contended.json", "--replications", "3", "--trace", "trace.jsonl", "-o", "traced.json"});
  ASSERT_THAT(file("one.json"), Not(IsEmpty()));
  EXPECT_EQ(file("four.json"), file("one.json"));
  EXPECT_EQ(file("traced.json"), file("one.json"));
  std::istringstream lines(file("trace.jsonl"));
  int runs = 0;
  for (std::string line; std::getline(lines, line);) runs += nlohmann::json::parse(line).contains("schema") ? 1 : 0;
  EXPECT_EQ(runs, 12);
}

TEST_F(Program, LeavesNothingBesideTheResults) {
  vcpusim({"run", "contended.json", "-o", "out.json"});
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("contended.json", "out.json"));
}

TEST_F(Program, ThePrintedConfigurationIsTheScenario) {
  const ProcessResult config = vcpusim({"run", "contended.json", "--print-config"});
  EXPECT_EQ(config.status, 0);
  write_whole(folder() / "again.json", config.out);
  EXPECT_EQ(vcpusim({"run", "again.json", "--print-config"}).out, config.out);
  EXPECT_EQ(vcpusim({"run", "again.json", "-o", "-"}).out, vcpusim({"run", "contended.json", "-o", "-"}).out);
}

TEST_F(Program, PublishedFiguresStandBesideTheSimulatedOnes) {
  const ProcessResult result = vcpusim({"run", "contended.json"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("vms.g.tasks.t.elapsed_s in us, published and simulated"), HasSubstr("1600"),
                                HasSubstr("2000"), HasSubstr("+25.0 %"),
                                HasSubstr("1 predicted: mean error 25.0 %, worst 25.0 %")));
}

// The elapsed time is 2 ms at each point; at quick size it is 0.2 ms.
void write_experiment(const std::filesystem::path& file, const std::string& figure) {
  std::string text = kContended;
  const std::size_t figures = text.find("\"published\"");
  write_whole(file, text.substr(0, figures) + "\"quick\": {\"settings\": {\"stop.at\": \"200us\"}, \"scale\": 10, " +
                        "\"why\": \"a tenth\"}, \"published\": [{\"metric\": \"vms.g.elapsed_s\", " + figure + "}]}");
}

TEST_F(Program, ReproducesPublishedFigures) {
  write_experiment(folder() / "e.json", R"("what": "the time", "unit": "ms", "value": 1.9, "tolerance": 0.1)");
  const ProcessResult quick = vcpusim({"reproduce", "e.json", "-o", "out.json"});
  EXPECT_EQ(quick.status, 0);
  EXPECT_THAT(quick.err, IsEmpty());
  EXPECT_THAT(quick.out,
              AllOf(HasSubstr("contended: 3 replications, quick size (a tenth)\n"), HasSubstr("the time [ms]"),
                    HasSubstr("+5.3 %"), HasSubstr("+-10 %"), HasSubstr("reproduced")));
  const auto json = nlohmann::json::parse(file("out.json"));
  EXPECT_EQ(json["schema"], "vcpusim.reproduction/1");
  const auto& figure = json["scenarios"][0]["figures"][0];
  EXPECT_EQ(figure["published"], 1.9);
  EXPECT_EQ(figure["simulated"]["n"], 3);
  EXPECT_DOUBLE_EQ(figure["simulated"]["mean"], 2.0);
  EXPECT_EQ(figure["simulated"]["ci95"].size(), 2u);
  EXPECT_EQ(figure["verdict"], "reproduced");

  const ProcessResult full = vcpusim({"reproduce", "e.json", "--full", "--replications", "1", "-o", "-"});
  EXPECT_EQ(full.status, 0);
  const auto one = nlohmann::json::parse(full.out)["scenarios"][0];
  EXPECT_EQ(one["full"], true);
  EXPECT_DOUBLE_EQ(one["figures"][0]["simulated"]["mean"], 2.0);
  EXPECT_TRUE(one["figures"][0]["simulated"]["ci95"].is_null());
  EXPECT_EQ(vcpusim({"reproduce", "e.json", "-o", "-", "-j", "1"}).out, file("out.json"));
}

TEST_F(Program, AMissedFigureIsStatusOne) {
  write_experiment(folder() / "e.json", R"("unit": "ms", "value": 1.9, "at_most": 1.95)");
  const ProcessResult result = vcpusim({"reproduce", "e.json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("<= 1.95"), HasSubstr("missed")));
}

TEST_F(Program, ReproducesNothingThatIsWrong) {
  EXPECT_EQ(vcpusim({"reproduce", "spinlock-microbenchmork"}).err.substr(0, 97),
            "vcpusim reproduce: no scenario \"spinlock-microbenchmork\"; did you mean \"spinlock-microbenchmark\"?");
  EXPECT_EQ(vcpusim({"reproduce", "nothing"}).status, 2);
  EXPECT_EQ(vcpusim({"reproduce", "nothing.json"}).status, 3);
  const ProcessResult smallest = vcpusim({"reproduce", kSmallest});
  EXPECT_EQ(smallest.status, 2);
  EXPECT_THAT(smallest.err, HasSubstr("the scenario has no published figures"));
  write_experiment(folder() / "e.json", R"("value": 2)");
  EXPECT_EQ(vcpusim({"reproduce", "e.json", "-o", "no/folder.json"}).status, 3);
  EXPECT_EQ(vcpusim({"reproduce", "e.json", "--replications", "0"}).status, 2);
}

TEST_F(Program, AFailedExpectationIsStatusOne) {
  const ProcessResult result = vcpusim({"run", "contended.json", "--set", "expect.0.at_least=1e9", "-o", "out.json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("expectation failed at vms.g.tasks.t.count=1 vms.g.guest.locks.l.kind=ticket: "
                                    "vms.g.tasks.t.operations is "));
  EXPECT_THAT(result.err, HasSubstr(", expected >= 1000000000 (they work)\n"));
  EXPECT_THAT(file("out.json"), Not(IsEmpty()));
}

TEST_F(Program, ASettingFixesAnAxis) {
  const auto json = nlohmann::json::parse(
      vcpusim({"run", "contended.json", "--set", "vms.g.guest.locks.l=mcs", "--seed", "9", "-o", "-"}).out);
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][1]["metrics"]["vms"]["g"]["locks"]["l"]["kind"], "mcs");
  EXPECT_EQ(json["runs"][1]["seed"], 9);
}

TEST_F(Program, AReaderThatGoesAwayIsNoError) {
  const ProcessResult result = vcpusim({"run", "contended.json", "-o", "out.json"}, {.closed_stdout = true});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(file("out.json"), Not(IsEmpty()));
}

TEST_F(Program, AnInterruptSavesWhatIsFinished) {
  // The first point ends at once, the second would take hours.
  const ProcessResult result = vcpusim({"run", "contended.json", "-j", "1", "-o", "out.json", "--set", "expect=[]",
                                        "--set", "published=[]", "--set", R"(vary={"stop.at": ["1ms", "100h"]})"},
                                       {.interrupt_after = 1500ms});
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.err, HasSubstr("interrupted after 1 of 2 runs"));
  EXPECT_EQ(nlohmann::json::parse(file("out.json"))["runs"].size(), 1u);
}

TEST_F(Program, ListsAndDescribesTheCatalogue) {
  EXPECT_THAT(vcpusim({"list", "locks"}).out, AllOf(HasSubstr("ticket"), Not(HasSubstr("westmere"))));
  EXPECT_THAT(vcpusim({"list", "machines", "metrics"}).out,
              AllOf(HasSubstr("westmere-ex-4s"), HasSubstr("vms.VM.tasks.TASK.elapsed_s")));
  EXPECT_THAT(vcpusim({"describe", "qspinlock"}).out, AllOf(HasSubstr("pending_rereads"), HasSubstr("Source: ")));
  EXPECT_THAT(vcpusim({"describe", "repeat"}).out, HasSubstr("integer >= 1 or \"forever\""));
}

TEST_F(Program, ValidatesManyFilesAtOnce) {
  write_whole(folder() / "bad.json", "{}");
  const ProcessResult result = vcpusim({"validate", "contended.json", "bad.json", kSmallest});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "contended.json: valid\n" + kSmallest + ": valid\n");
  EXPECT_THAT(result.err, HasSubstr("bad.json:1:1: /: the key \"vms\" is missing\n"));
}

}  // namespace
}  // namespace vcpusim
