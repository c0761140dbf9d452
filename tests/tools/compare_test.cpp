// vcpusim compare, beside the program whose words it uses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/made_results.h"
#include "tests/support/process.h"

namespace vcpusim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::made_results;
using testing::MadeRun;
using ::testing::Not;
using testing::ProcessResult;
using ::testing::StartsWith;
using testing::write_whole;

class Compare : public ::testing::Test {
 protected:
  ProcessResult compare(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {VCPUSIM_PROGRAM, "compare"});
    return testing::run_process(arguments, {.folder = folder_.path()});
  }
  void write(const std::string& name, const std::vector<MadeRun>& runs) const {
    write_whole(folder_.path() / name, made_results(runs));
  }
  // Three runs for each value of the axis n from 1 on, with a wait of that many microseconds.
  void write_waits(const std::string& name, std::uint64_t seed, const std::vector<double>& waits) const {
    std::vector<MadeRun> runs;
    for (std::size_t n = 1; n <= waits.size(); ++n) {
      for (const double noise : {-0.1, 0.0, 0.1}) {
        const double wait = waits[n - 1] + noise;
        runs.push_back({{{"n", n}}, seed + runs.size() % 3, {{"locks", {{"l", {{"wait_us", {{"p99", wait}}}}}}}}});
      }
    }
    write(name, runs);
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

std::string column(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}\n", value);
  return text;
}

TEST_F(Compare, PooledSaysWhatMinistatSaysToTheLastDigit) {
  std::mt19937_64 random(6);
  const auto draw = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<MadeRun> a;
  std::vector<MadeRun> b;
  std::string expected;
  int differences = 0;
  constexpr int kSets = 20;
  for (int set = 0; set < kSets; ++set) {
    // Odd sizes, because of an even number of values ministat takes the upper of the middle two for the median. The
    // last sets have more degrees of freedom than its table.
    const auto size = [&] { return static_cast<std::size_t>(set < 16 ? 3 + 2 * (random() % 7) : 41 + 2 * set); };
    const double scale = std::pow(10, set % 9 - 4);
    const double shift = set % 2 == 0 ? 0.02 : 0.8;
    std::vector<double> x(size());
    std::vector<double> y(size());
    for (double& value : x) value = scale * (1 + draw());
    for (double& value : y) value = scale * (1 + shift + 2 * draw() * draw());
    for (const double value : x) a.push_back({{{"set", set}}, a.size(), {{"m", value}}});
    for (const double value : y) b.push_back({{{"set", set}}, b.size(), {{"m", value}}});
    write_whole(folder() / "x", column(x));
    write_whole(folder() / "y", column(y));
    const ProcessResult ministat = testing::run_process({"/usr/bin/ministat", "-A", "x", "y"}, {.folder = folder()});
    ASSERT_EQ(ministat.status, 0) << "the Debian package ministat is needed: " << ministat.err;
    ASSERT_THAT(ministat.out, StartsWith("x x\n+ y\n"));
    expected += fmt::format("\nm at set={}\n{}", set, ministat.out.substr(8));
    differences += ministat.out.find("\nDifference at 95.0% confidence\n") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(differences, 5);
  EXPECT_LE(differences, 15);
  write("a.json", a);
  write("b.json", b);
  const ProcessResult result = compare({"a.json", "b.json", "--pooled", "--metric", "m"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "x A: a.json\n+ B: b.json\n" + expected);
}

TEST_F(Compare, ListsWhatDiffersAndSaysHowMuchChanceWould) {
  write_waits("a.json", 1, {1, 2, 3});
  write_waits("b.json", 10, {1, 2, 4});
  const ProcessResult result = compare({"a.json", "b.json"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out,
            "x A: a.json\n+ B: b.json\n"
            "n  metric               A  B                  difference  verdict\n"
            "3  locks.l.wait_us.p99  3  4  +33.33% (+24.79 to +42.64)  Difference at 95.0% confidence\n"
            "1 of 3 comparisons differ; 0.2 would by chance if nothing differed\n");
  const ProcessResult same = compare({"a.json", "a.json", "--confidence", "99.9"});
  EXPECT_THAT(same.out, HasSubstr("\nNo difference proven at 99.9% confidence\n0 of 3 "));
}

TEST_F(Compare, FailsIfWhatIsNamedGotWorse) {
  write_waits("a.json", 1, {1, 2, 3});
  write_waits("b.json", 1, {1, 2, 4});
  const std::string metric = "locks.l.wait_us.p99";
  const ProcessResult worse = compare({"a.json", "b.json", "--fail-if-worse", metric});
  EXPECT_EQ(worse.status, 1);
  EXPECT_EQ(worse.err, "worse: locks.l.wait_us.p99 at n=3: 3 -> 4 (+33.33% (+30.78 to +36.34))\n");
  EXPECT_EQ(compare({"b.json", "a.json", "--fail-if-worse", metric}).status, 0) << "better is not worse";
  EXPECT_EQ(compare({"b.json", "a.json", "--fail-if-worse", metric + ":more"}).status, 1);
  EXPECT_EQ(compare({"a.json", "b.json"}).status, 0) << "nobody asked";
  EXPECT_EQ(compare({"a.json", "a.json", "--fail-if-worse", metric}).status, 0);
}

TEST_F(Compare, WritesAllOfItAsJson) {
  write_waits("a.json", 1, {1, 2, 3});
  write_waits("b.json", 1, {3, 2, 1});
  const ProcessResult result =
      compare({"a.json", "b.json", "--metric", "locks.l.wait_us.p99", "--crossover", "n", "-o", "-"});
  EXPECT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], "vcpusim.comparison/1");
  EXPECT_EQ(json["confidence"], 0.95);
  ASSERT_EQ(json["comparisons"].size(), 3u);
  const auto& first = json["comparisons"][0];
  EXPECT_EQ(first["point"], nlohmann::json({{"n", 1}}));
  EXPECT_EQ(first["test"], "paired");
  EXPECT_EQ(first["verdict"], "difference");
  EXPECT_EQ(first["a"]["n"], 3);
  EXPECT_NEAR(first["relative"], 2, 1e-12);
  EXPECT_EQ(json["comparisons"][1]["verdict"], "no_difference_proven");
  ASSERT_EQ(json["crossovers"].size(), 1u);
  EXPECT_EQ(json["crossovers"][0]["winner"], "b");
  EXPECT_NEAR(json["crossovers"][0]["from"], 2, 1e-9);

  const ProcessResult file = compare({"a.json", "b.json", "-o", "c.json"});
  EXPECT_THAT(file.out, StartsWith("x A: a.json\n"));
  EXPECT_EQ(nlohmann::json::parse(testing::read_whole(folder() / "c.json"))["comparisons"], json["comparisons"]);
  EXPECT_EQ(compare({"a.json", "b.json", "-o", "none/c.json"}).status, 3);
}

TEST_F(Compare, SaysFromWhereOnOneBeatsTheOther) {
  write_waits("a.json", 1, {1, 1, 1, 1});
  write_waits("b.json", 10, {0, 0.5, 1, 1.5});
  const auto last_line = [](const ProcessResult& result) {
    return result.out.substr(result.out.rfind('\n', result.out.size() - 2) + 1);
  };
  EXPECT_THAT(last_line(compare({"a.json", "b.json", "--metric", "locks.l.wait_us.p99", "--crossover", "n"})),
              "locks.l.wait_us.p99 (less is better): A beats B from n 3 on (95.0% confidence: 2.547 up to 3.453)\n");
  EXPECT_THAT(last_line(compare({"b.json", "b.json", "--metric", "locks.l.wait_us.p99", "--crossover", "n"})),
              "locks.l.wait_us.p99 (less is better): No difference proven at 95.0% confidence, at the largest n\n");
}

TEST_F(Compare, ComparesTwoValuesOfAnAxisOfOneFile) {
  std::vector<MadeRun> runs;
  for (const char* const lock : {"ticket", "mcs", "ttas"}) {
    for (int i = 0; i < 6; ++i) runs.push_back({{{"lock", lock}, {"n", i % 2}}, 1u + i / 2, {{"m", lock[0] + i}}});
  }
  write("r.json", runs);
  const ProcessResult result = compare({"r.json", "--by", "lock=mcs,ticket", "--metric", "m"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("x A: r.json lock=mcs\n+ B: r.json lock=ticket\n\nm at n=0\n"));
  EXPECT_THAT(result.out, HasSubstr("\nDifference at 95.0% confidence\n\t7 +/- 0\n"));
  EXPECT_THAT(result.out, HasSubstr("(Student's t, 3 pairs of runs with the same seed)\n"));
  EXPECT_THAT(compare({"r.json", "--by", "lock"}).err, HasSubstr("expected two values; got 3"));
}

TEST_F(Compare, SaysWhatIsWrong) {
  write_waits("a.json", 1, {1, 2});
  write("one.json", {{{}, 1, {{"m", 1}}}});
  write("far.json", {{{{"n", 7}}, 1, {{"m", 1}}}, {{{"n", 8}}, 1, {{"m", 1}}}});
  write_whole(folder() / "broken.json", "{\n \"schema\": 3}");
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> cases{
      {{"a.json"}, 2, "expected two results files, or one and --by; got 1"},
      {{"a.json", "broken.json"}, 2, "broken.json:2:12: /schema: expected a text"},
      {{"a.json", "none.json"}, 3, "none.json: cannot be read"},
      {{"a.json", "a.json", "--metric", "locks.l.wait_us.p9"}, 2, "a.json: no metric \"locks.l.wait_us.p9\"; did you"},
      {{"a.json", "a.json", "--fail-if-worse", "locks.l"}, 2, "say which is better: locks.l:less or locks.l:more"},
      {{"a.json", "a.json", "--fail-if-worse", "locks.l:less"}, 2, "no metric \"locks.l\""},
      {{"a.json", "a.json", "--metric", "locks.l.wait_us.p99:up"}, 2, "expected METRIC:less or METRIC:more"},
      {{"a.json", "a.json", "--crossover", "n"}, 2, "--crossover needs --metric"},
      {{"a.json", "a.json", "--crossover", "k", "--metric", "locks.l.wait_us.p99"}, 2, "expected an axis of numbers"},
      {{"a.json", "a.json", "--confidence", "5"}, 2, "--confidence: expected from 50 to 99.9999; got 5"},
      {{"a.json", "--by", "k"}, 2, "--by k: no such axis in a.json"},
      {{"a.json", "--by", "n=1,4"}, 2, "no value \"4\" (known: 1, 2)"},
      {{"a.json", "far.json"}, 2, "a.json and far.json have no point in common"}};
  for (const auto& [arguments, status, message] : cases) {
    const ProcessResult result = compare(arguments);
    EXPECT_EQ(result.status, status) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_THAT(result.out, IsEmpty());
  }
  const ProcessResult few = compare({"one.json", "one.json"});
  EXPECT_EQ(few.status, 0);
  EXPECT_THAT(few.out, HasSubstr("Too few runs to compare"));
}

}  // namespace
}  // namespace vcpusim
