// vcpusim sweep and merge from outside: the same bytes whatever happens on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
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
using testing::ProcessResult;
using testing::read_whole;
using testing::write_whole;

constexpr const char* kScenario = R"({"schema": "vcpusim.scenario/1", "name": "swept", "seed": 7,
 "stop": {"at": "2ms"}, "host": {"machine": "ideal", "pcpus": 4},
 "vms": [{"name": "g", "vcpus": 4, "guest": {"locks": {"l": "ticket"}},
   "tasks": [{"name": "t", "count": 4, "program": [
     {"repeat": "forever", "do": [{"user": {"exponential": "10us"}}, {"lock": "l", "hold": {"exponential": "5us"}}]}]}]}],
 "overcommit": {"by": "pcpus"},
 "vary": {"vms.g.tasks.t.count": [1, 2, 4]}})";

class Sweep : public ::testing::Test {
 protected:
  Sweep() { write_whole(folder() / "swept.json", kScenario); }

  ProcessResult vcpusim(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), VCPUSIM_PROGRAM);
    return testing::run_process(arguments, {.folder = folder()});
  }
  // 3 counts x 2 locks x 3 ratios x 2 replications.
  ProcessResult sweep(const std::string& output, const std::vector<std::string>& more = {}) const {
    return vcpusim(sweep_arguments(output, more));
  }
  void killed_after(double seconds, const std::string& output, const std::vector<std::string>& more) const {
    std::vector<std::string> command{"/usr/bin/timeout", "-s", "KILL", std::to_string(seconds), VCPUSIM_PROGRAM};
    for (std::string& argument : sweep_arguments(output, more)) command.push_back(std::move(argument));
    testing::run_process(command, {.folder = folder()});
  }
  std::string file(const std::string& name) const { return read_whole(folder() / name); }
  nlohmann::json results(const std::string& name) const { return nlohmann::json::parse(file(name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder() / name); }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  static std::vector<std::string> sweep_arguments(const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "sweep",        "swept.json", "--vary",         "vms.g.guest.locks.l.kind=ticket,ttas",
        "--overcommit", "1:2:0.5",    "--replications", "2",
        "-o",           output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  testing::TemporaryFolder folder_;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(Sweep, RunsTheCrossProductWithTheSameSeedsAtEveryPoint) {
  const ProcessResult swept = sweep("out.json");
  EXPECT_EQ(swept.status, 0) << swept.err;
  EXPECT_THAT(swept.out, HasSubstr("operations_per_s"));
  const auto out = results("out.json");
  ASSERT_EQ(out["runs"].size(), 36u);
  ASSERT_EQ(out["summary"].size(), 18u);
  EXPECT_EQ(out["runs"][0]["point"].dump(),
            R"({"overcommit":1,"vms.g.guest.locks.l.kind":"ticket","vms.g.tasks.t.count":1})");
  EXPECT_EQ(out["runs"][35]["point"].dump(),
            R"({"overcommit":2,"vms.g.guest.locks.l.kind":"ttas","vms.g.tasks.t.count":4})");
  std::size_t halved = 0;
  for (std::size_t i = 0; i < 36; ++i) {
    EXPECT_EQ(out["runs"][i]["seed"], 7 + i % 2);
    if (out["runs"][i]["point"]["overcommit"] == 2) {
      EXPECT_DOUBLE_EQ(out["runs"][i]["metrics"]["host"]["overcommit"], 2.0);
      ++halved;
    }
  }
  EXPECT_EQ(halved, 12u);
  EXPECT_FALSE(exists("out.json.partial"));
}

TEST_F(Sweep, HasTheBytesOfRunWhereThatCanDoTheSame) {
  EXPECT_EQ(vcpusim({"sweep", "swept.json", "--replications", "2", "-o", "swept.out.json"}).status, 0);
  EXPECT_EQ(vcpusim({"run", "swept.json", "--replications", "2", "-o", "run.out.json"}).status, 0);
  EXPECT_EQ(file("swept.out.json"), file("run.out.json"));
}

TEST_F(Sweep, ThreadsAndShardsGiveTheSameBytes) {
  EXPECT_EQ(sweep("one.json", {"-j", "1"}).status, 0);
  EXPECT_EQ(sweep("two.json", {"-j", "2"}).status, 0);
  EXPECT_EQ(sweep("many.json", {"-j", "7"}).status, 0);
  EXPECT_EQ(file("two.json"), file("one.json"));
  EXPECT_EQ(file("many.json"), file("one.json"));
  for (const char* k : {"1", "2", "3"}) {
    EXPECT_EQ(sweep(std::string("shard") + k + ".json", {"--shard", std::string(k) + "/3"}).status, 0);
    EXPECT_EQ(results(std::string("shard") + k + ".json")["runs"].size(), 12u);
  }
  const ProcessResult merged = vcpusim({"merge", "shard3.json", "shard1.json", "shard2.json", "-o", "merged.json"});
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(file("merged.json"), file("one.json"));
}

TEST_F(Sweep, GnuParallelGivesTheSameBytes) {
  if (!std::filesystem::exists("/usr/bin/parallel")) GTEST_SKIP() << "GNU parallel is not installed";
  EXPECT_EQ(sweep("one.json").status, 0);
  ::setenv("VCPUSIM", VCPUSIM_PROGRAM, 1);
  const ProcessResult run = testing::run_process(
      {VCPUSIM_SOURCE_DIR "/tools/cluster/parallel_sweep", "4", "parallel.json", "swept.json", "--vary",
       "vms.g.guest.locks.l.kind=ticket,ttas", "--overcommit", "1:2:0.5", "--replications", "2"},
      {.folder = folder()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(file("parallel.json"), file("one.json"));
}

TEST_F(Sweep, MergeRefusesWhatIsNoWholeSweep) {
  for (const char* k : {"1", "2", "3"}) sweep(std::string("shard") + k + ".json", {"--shard", std::string(k) + "/3"});
  const auto refused = [&](const std::vector<std::string>& files, const char* why) {
    std::vector<std::string> arguments{"merge", "-o", "merged.json"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    const ProcessResult merged = vcpusim(arguments);
    EXPECT_THAT(merged.err, HasSubstr(why));
    EXPECT_FALSE(exists("merged.json"));
    return merged.status;
  };
  EXPECT_EQ(refused({"shard1.json", "shard3.json"}, "6 of the sweep's 18 points are in none of the files"), 2);
  EXPECT_EQ(refused({"shard1.json", "shard2.json", "shard1.json"}, "expected each shard once"), 2);
  sweep("other.json", {"--set", "stop.at=1ms"});
  EXPECT_EQ(refused({"shard1.json", "other.json"}, "is of another sweep than shard1.json"), 2);
  EXPECT_EQ(refused({"shard1.json", "swept.json"}, "this is a scenario"), 2);
  EXPECT_EQ(refused({"shard1.json", "nothing.json"}, "No such file"), 3);
  std::string cut = file("shard2.json");
  write_whole(folder() / "cut.json", cut.substr(0, cut.size() / 2));
  EXPECT_EQ(refused({"shard1.json", "cut.json"}, "cut.json:"), 2);
}

TEST_F(Sweep, ResumeRunsOnlyWhatChanged) {
  EXPECT_EQ(sweep("out.json").status, 0);
  const std::string whole = file("out.json");
  const ProcessResult again = sweep("out.json", {"--resume"});
  EXPECT_THAT(again.err, HasSubstr("36 of 36 runs were there already"));
  EXPECT_EQ(file("out.json"), whole);

  // A value more on one axis: what is there of the others stays.
  const std::vector<std::string> wider{"--vary", "vms.g.tasks.t.count=1,2,3", "--resume"};
  const ProcessResult widened = sweep("out.json", wider);
  EXPECT_THAT(widened.err, HasSubstr("24 of 36 runs were there already"));
  EXPECT_EQ(sweep("fresh.json", {"--vary", "vms.g.tasks.t.count=1,2,3"}).status, 0);
  EXPECT_EQ(file("out.json"), file("fresh.json"));

  // Another simulation: nothing of it.
  const ProcessResult changed = sweep("out.json", {"--set", "stop.at=1ms", "--resume"});
  EXPECT_THAT(changed.err, IsEmpty());
  EXPECT_EQ(sweep("fresh.json", {"--set", "stop.at=1ms"}).status, 0);
  EXPECT_EQ(file("out.json"), file("fresh.json"));
}

TEST_F(Sweep, ResumeTakesNothingOverFromOtherModels) {
  EXPECT_EQ(sweep("out.json").status, 0);
  const std::string whole = file("out.json");
  std::string old = whole;
  old.replace(old.find("\"models\": \"") + 11, 4, "xxxx");
  write_whole(folder() / "out.json", old);
  EXPECT_THAT(sweep("out.json", {"--resume"}).err, IsEmpty());
  EXPECT_EQ(file("out.json"), whole);
}

TEST_F(Sweep, KilledTwentyTimesItStillEndsWithTheSameBytes) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(sweep("whole.json", {"--set", "stop.at=200ms"}).status, 0);
  const std::chrono::duration<double> undisturbed = std::chrono::steady_clock::now() - start;
  const std::vector<std::string> resumed{"--set", "stop.at=200ms", "--resume"};
  std::mt19937 random(1);
  std::size_t kills_with_runs = 0;
  std::size_t most = 0;
  for (int kill = 0; kill < 20; ++kill) {
    const double after = undisturbed.count() * (0.02 + 0.2 * static_cast<double>(random() % 1000) / 1000);
    killed_after(after, "out.json", resumed);
    if (exists("out.json")) {  // it was quicker
      EXPECT_EQ(file("out.json"), file("whole.json"));
      std::filesystem::remove(folder() / "out.json");
      std::filesystem::remove(folder() / "out.json.partial");
      most = 0;
      continue;
    }
    // Nothing is lost but what was under way.
    const std::size_t runs = count(exists("out.json.partial") ? file("out.json.partial") : "", "\n  },");
    EXPECT_GE(runs, most);
    most = runs;
    if (runs > 0) ++kills_with_runs;
  }
  const ProcessResult last = sweep("out.json", resumed);
  EXPECT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(file("out.json"), file("whole.json"));
  EXPECT_GE(kills_with_runs, 5u) << "there was hardly anything to lose";
  EXPECT_FALSE(exists("out.json.partial"));
}

TEST_F(Sweep, InterruptedItSavesWhatIsDone) {
  std::vector<std::string> arguments{VCPUSIM_PROGRAM,  "sweep", "swept.json", "--set",   "stop.at=200ms",
                                     "--replications", "200",   "-o",         "out.json"};
  const ProcessResult interrupted = testing::run_process(arguments, {.folder = folder(), .interrupt_after = 1500ms});
  EXPECT_EQ(interrupted.status, 130);
  EXPECT_THAT(interrupted.err, AllOf(HasSubstr("interrupted after"), HasSubstr("--resume goes on")));
  const auto out = results("out.json");
  EXPECT_GT(out["missing_runs"], 0);
  EXPECT_EQ(out["runs"].size() + out["missing_runs"].get<std::size_t>(), 600u);
  EXPECT_TRUE(exists("out.json.partial"));
  EXPECT_THAT(vcpusim({"sweep", "swept.json", "-o", "out.json"}).err, HasSubstr("expected --resume"));
  EXPECT_THAT(vcpusim({"merge", "out.json", "-o", "merged.json"}).err, HasSubstr("of its runs are missing"));
}

TEST_F(Sweep, AFullDiskLeavesTheEarlierResults) {
  const auto small = folder() / "small";
  std::filesystem::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here (needs root)";
  }
  write_whole(small / "out.json", "earlier");
  const ProcessResult full = sweep("small/out.json");
  const std::string left = read_whole(small / "out.json");
  ::umount(small.c_str());
  EXPECT_EQ(full.status, 3);
  EXPECT_THAT(full.err, HasSubstr("cannot be written: No space left on device"));
  EXPECT_EQ(std::ranges::count(full.err, '\n'), 1) << full.err;
  EXPECT_EQ(left, "earlier");
}

TEST_F(Sweep, ReplicatesUntilAnIntervalIsNarrow) {
  const ProcessResult narrowed =
      vcpusim({"sweep", "swept.json", "--until-ci", "vms.g.tasks.t.operations_per_s=2%", "-o", "out.json"});
  EXPECT_EQ(narrowed.status, 0) << narrowed.err;
  EXPECT_THAT(narrowed.err, IsEmpty());
  std::set<std::size_t> counts;
  const auto out = results("out.json");
  for (const auto& point : out["summary"]) {
    const auto& metric = point["metrics"]["vms.g.tasks.t.operations_per_s"];
    const double mean = metric["mean"];
    EXPECT_LE(metric["ci95"][1].get<double>() - mean, 0.02 * mean);
    counts.insert(metric["n"].get<std::size_t>());
  }
  EXPECT_GT(*counts.rbegin(), 3u);
  // What is known beyond what is needed does not get into the results.
  const std::string narrow = file("out.json");
  vcpusim({"sweep", "swept.json", "--replications", "20", "-o", "out.json", "--resume"});
  EXPECT_NE(file("out.json"), narrow);
  vcpusim({"sweep", "swept.json", "--until-ci", "vms.g.tasks.t.operations_per_s=2%", "-o", "out.json", "--resume"});
  EXPECT_EQ(file("out.json"), narrow);

  const ProcessResult wide = vcpusim({"sweep", "swept.json", "--until-ci", "vms.g.tasks.t.operations_per_s=0.01%",
                                      "--at-most", "5", "-o", "wide.json"});
  EXPECT_THAT(wide.err, HasSubstr("3 points: vms.g.tasks.t.operations_per_s is less certain than asked for after 5"));
}

TEST_F(Sweep, WritesATableWithOneRowARun) {
  EXPECT_EQ(sweep("out.json", {"--csv", "out.csv"}).status, 0);
  std::istringstream lines(file("out.csv"));
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(
      line,
      HasSubstr("vms.g.tasks.t.count,vms.g.guest.locks.l.kind,overcommit,seed,replication,ended,sim_time_s,host."));
  const auto columns = std::ranges::count(line, ',');
  std::size_t rows = 0;
  for (; std::getline(lines, line); ++rows) EXPECT_EQ(std::ranges::count(line, ','), columns);
  EXPECT_EQ(rows, 36u);
  EXPECT_THAT(file("out.csv"), HasSubstr("\n1,ticket,1,7,0,at,0.002,1,"));
}

TEST_F(Sweep, RefusesWrongCommandLines) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const ProcessResult result = sweep("out.json", arguments);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_FALSE(exists("out.json"));
    return result.err;
  };
  EXPECT_THAT(refused({"--shard", "4/3"}), HasSubstr("1 <= K <= N"));
  EXPECT_THAT(refused({"--until-ci", "x"}), HasSubstr("METRIC=P%"));
  EXPECT_THAT(refused({"--at-most", "7"}), HasSubstr("--until-ci"));
  EXPECT_THAT(refused({"--vary", "nothing=1,2"}), HasSubstr("/nothing: unknown key"));
  EXPECT_THAT(refused({"--vary", "overcommit=1,2"}), HasSubstr("twice"));
  EXPECT_THAT(refused({"--vary", "vms.g.tasks.t.count=0,1"}), HasSubstr("count"));
  EXPECT_THAT(vcpusim({"sweep", "swept.json"}).err, HasSubstr("-o OUT.json"));
}

}  // namespace
}  // namespace vcpusim
