#include "scenarios/results_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/points.h"
#include "scenarios/results.h"
#include "tests/support/process.h"

namespace vcpusim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;
using testing::write_whole;

// What is in a file, or what is wrong with it: with the file's name left out.
struct Contents {
  ResultsHeader header;
  std::vector<RunRecord> records;
  std::vector<std::string> texts;
  std::string error;
  bool unreadable = false;
};

Contents read_file_at(const std::filesystem::path& file) {
  Contents contents;
  InputErrors errors;
  const ResultsVisitor visitor{.header = [&](const ResultsHeader& header) { contents.header = header; },
                               .run =
                                   [&](const RunRecord& record, std::string_view text) {
                                     contents.records.push_back(record);
                                     contents.texts.emplace_back(text);
                                   }};
  const bool read = read_results(file, visitor, errors);
  EXPECT_EQ(read, errors.empty());
  EXPECT_LE(errors.size(), 1u);
  if (!errors.empty()) contents.error = errors.lines().front().substr(file.string().size() + 1);
  contents.unreadable = errors.unreadable();
  return contents;
}

Contents read_text(const std::string& text) {
  const TemporaryFolder folder;
  write_whole(folder.path() / "r.json", text);
  return read_file_at(folder.path() / "r.json");
}

constexpr std::string_view kScenario = R"({"schema": "vcpusim.scenario/1", "name": "s", "seed": 7,
 "stop": {"at": "2ms"}, "host": {"machine": "generic", "pcpus": 4},
 "vms": [{"name": "g", "vcpus": 4, "guest": {"locks": {"l": "ticket"}},
   "tasks": [{"name": "t", "count": 4, "program": [
     {"repeat": "forever", "do": [{"user": {"exponential": "10us"}}, {"lock": "l", "hold": {"exponential": "5us"}}]}]}]}],
 "vary": {"vms.g.tasks.t.count": [1, 2], "vms.g.guest.locks.l": ["ticket", {"kind": "pv_ticket", "spin_threshold": 9}]}})";

TEST(ResultsFile, ReadsBackWhatRunsWere) {
  InputErrors errors;
  const auto document = ScenarioDocument::parse(kScenario, "s.json", "", errors);
  const auto scenario = document->load({}, errors);
  ASSERT_TRUE(scenario) << errors.lines().front();
  const std::atomic<bool> interrupt{false};
  const auto outcome = run_points({*document, {}, all_points(scenario->vary), 2, 2, {}}, interrupt, {});
  const auto summary = summarise_points(outcome.records);
  const std::string text = results_text(*scenario, outcome.records, summary);

  const Contents contents = read_text(text);
  ASSERT_EQ(contents.error, "");
  EXPECT_EQ(contents.header.scenario, "s");
  EXPECT_EQ(contents.header.digest, digest(*scenario));
  const auto resolved = ScenarioDocument::parse(contents.header.resolved, "resolved", "", errors)->load({}, errors);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(digest(*resolved), contents.header.digest);
  ASSERT_EQ(contents.records.size(), 8u);
  EXPECT_EQ(contents.records[7].result.sim_time, outcome.records[7].result.sim_time);
  EXPECT_THAT(contents.texts[7], AllOf(::testing::StartsWith("{\n"), HasSubstr("spin_threshold"),
                                       HasSubstr("\"seed\": 8"), ::testing::EndsWith("}")));
  EXPECT_EQ(results_text(*scenario, contents.records, summary), text) << "nothing is lost";
}

const std::string kStart = R"({"schema": "vcpusim.results/1", "vcpusim": "0.1.0",
 "scenario": {"name": "s", "digest": "d", "resolved": {"a": [1, {}]}},
 "runs": [
)";
const std::string kRun = R"({"point": {"a": 1}, "seed": 3, "replication": 0, "ended": "at", "sim_time_s": 0.5,
 "metrics": {"m": {"x": 1, "y": 2.0}, "kind": "k", "none": null}})";

TEST(ResultsFile, MetricsKeepTheirTypes) {
  const Contents contents = read_text(kStart + kRun + "]}");
  ASSERT_EQ(contents.error, "");
  ASSERT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.records[0].result.metrics,
            (Metrics{{"m.x", std::int64_t{1}}, {"m.y", 2.0}, {"kind", std::string("k")}}));
  EXPECT_EQ(contents.texts[0], kRun);
  EXPECT_EQ(contents.header.resolved, R"({"a": [1, {}]})");
}

TEST(ResultsFile, RunsMayHaveUnlikePointsAndMetrics) {
  const auto with = [](const char* point, const char* metrics) {
    return std::string(R"({"later": [[{"seed": "x"}], 2], "point": )") + point +
           R"(, "seed": 18446744073709551615, "replication": 1, "ended": "deadlock", "why": "w", "sim_time_s": 1,)"
           R"("metrics": )" +
           metrics + "}";
  };
  const Contents contents = read_text(kStart + with("{}", R"({"a": 1, "b": {"c": 2, "d": {}}})") + "," +
                                      with(R"({"p": "x"})", R"({"b": 3})") + "," + kRun + "," + with("{}", "{}") +
                                      R"(], "summary": [{"a": [1]}], "more": {"runs": 1}})");
  ASSERT_EQ(contents.error, "");
  ASSERT_EQ(contents.records.size(), 4u);
  EXPECT_EQ(contents.records[0].seed, 18446744073709551615u);
  EXPECT_EQ(contents.records[0].result.ended, RunResult::Ended::kDeadlock);
  EXPECT_EQ(contents.records[0].result.why, "w");
  EXPECT_THAT(contents.records[0].point, IsEmpty());
  EXPECT_EQ(describe_point(contents.records[1].point), "p=x");
  EXPECT_EQ(contents.records[1].result.metrics, (Metrics{{"b", std::int64_t{3}}}));
  EXPECT_EQ(describe_point(contents.records[2].point), "a=1");
  EXPECT_EQ(contents.records[2].result.why, "") << "that was another run's";
  EXPECT_THAT(contents.records[3].result.metrics, IsEmpty());
}

TEST(ResultsFile, SaysWhereItIsWrong) {
  const std::string run = kStart + kRun;
  const auto run_with = [&](const std::string& from, const std::string& to) {
    std::string text = run + "]}";
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> files{
      {"", "1:1: /: the file is empty (expected a JSON object)"},
      {"x", "1:1: /: not JSON: invalid literal"},
      {"[]", "1:1: /: expected an object"},
      {"{}", "1:2: /: has no \"schema\""},
      {R"({"schema": 3})", "1:12: /schema: expected a text"},
      {R"({"schema": "vcpusim.results/2"})",
       "1:12: /schema: expected \"vcpusim.results/1\": this version of vcpusim does not know others"},
      {R"({"schema": "vcpusim.scenario/1"})",
       "1:12: /schema: expected \"vcpusim.results/1\": this is a scenario; vcpusim run makes results of it"},
      {R"({"runs": []})", "1:10: /runs: expected \"schema\", \"vcpusim\" and \"scenario\" before the runs"},
      {R"({"scenario": {"name": "s", "digest": "d", "resolved": {}}})",
       "1:57: /scenario: expected \"schema\" and \"vcpusim\" before the scenario"},
      {R"({"schema": "vcpusim.results/1", "scenario": {"name": "s"}})", "1:57: /scenario: has no \"digest\""},
      {run, "5:66: /runs/1: not JSON: unexpected end of input; expected ']'"},
      {run + "]", "5:67: /runs: not JSON: unexpected end of input; expected '}'"},
      {run + "]} x", "5:69: /: not JSON: invalid literal; expected end of input"},
      {run + ",3]}", "5:67: /runs/1: expected an object"},
      {run + std::string("]\0}", 3), "5:67: /runs: a NUL byte (expected text in UTF-8)"},
      {run_with("{\"a\": 1}", "[]"), "4:11: /runs/0/point: expected an object"},
      {run_with("{\"a\": 1}", "{\"a\": 1, \"a\": 2}"), "4:26: /runs/0/point: expected each path once"},
      {run_with("\"seed\": 3", "\"seed\": -3"), "4:29: /runs/0/seed: expected a whole number from 0 on"},
      {run_with("\"seed\": 3", "\"seed\": 3, \"seed\": 3"), "4:40: /runs/0/seed: the key stands twice in this object"},
      {run_with("\"seed\": 3, ", ""), "/runs/0: has no \"seed\""},
      {run_with("\"at\"", "\"later\""),
       "/runs/0/ended: expected \"at\", \"workloads_done\", \"at_most\" or \"deadlock\""},
      {run_with("0.5", "1e300"), "/runs/0/sim_time_s: expected from 0 to 9000000 seconds"},
      {run_with("0.5", "1e3000"), "/runs/0/sim_time_s: not JSON that a computer can hold: a number beyond"},
      {run_with("2.0", "[2.0]"), "/runs/0/metrics/m/y: expected a number or a text"},
      {run_with("2.0", "true"), "5:33: /runs/0/metrics/m/y: expected a number or a text"},
      {run_with("\"y\"", "\"x\""), "/runs/0: has the metric m.x twice"},
      {run_with("2.0", std::string(200, '[')), "/runs/0/metrics/m/y: expected a number or a text"},
      {run_with("\"k\"", "\"\x80\""), "/runs/0/metrics/kind: not JSON: invalid string: ill-formed UTF-8 byte"},
      {kStart + std::string(R"({"x": )") + std::string(200, '['), "nested deeper than 128 levels"}};
  for (const auto& [text, error] : files) {
    const Contents contents = read_text(text);
    EXPECT_THAT(contents.error, HasSubstr(error)) << text;
    EXPECT_FALSE(contents.unreadable);
  }
}

TEST(ResultsFile, EveryBeginningOfAFileIsRefused) {
  const std::string whole = kStart + kRun + "," + kRun + R"(], "summary": [{"a": 1}]})";
  const TemporaryFolder folder;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_whole(folder.path() / "r.json", whole.substr(0, length));
    EXPECT_NE(read_file_at(folder.path() / "r.json").error, "") << length;
  }
  EXPECT_EQ(read_text(whole).error, "");
}

TEST(ResultsFile, ThatCannotBeReadIsNotWrong) {
  const TemporaryFolder folder;
  const Contents missing = read_file_at(folder.path() / "none.json");
  EXPECT_EQ(missing.error, " cannot be read: No such file or directory");
  EXPECT_TRUE(missing.unreadable);
  EXPECT_TRUE(read_file_at(folder.path()).unreadable);
}

TEST(ResultsFile, LinesAreCountedInLongFiles) {
  std::string text = kStart;
  for (int i = 0; i < 3000; ++i) text += kRun + ",\n";
  const Contents contents = read_text(text + "\n  3]}");
  EXPECT_EQ(contents.error, std::to_string(3 + 2 * 3000 + 2) + ":3: /runs/3000: expected an object");
  EXPECT_EQ(contents.records.size(), 3000u);
}

TEST(ResultsFile, HugePartsAreRefusedWithoutBeingHeld) {
  const std::string name(20 << 20, 'x');
  EXPECT_THAT(read_text(kStart + R"({"point": {}, "why": ")" + name).error,
              HasSubstr("/runs/0/why: a part of the results is larger than 16 MB"));
  EXPECT_THAT(read_text(std::string(20 << 20, '[')).error, HasSubstr("expected an object"));
  EXPECT_THAT(read_text(std::string(20 << 20, ' ')).error, HasSubstr("larger than 16 MB"));
}

TEST(ResultsFile, OneRunIsHeldAtATime) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "r.json";
  constexpr std::size_t kRuns = 5'000;
  {
    std::ofstream out(file);
    out << kStart;
    for (std::size_t i = 0; i < kRuns; ++i) {
      out << (i == 0 ? "" : ",\n") << R"({"point": {"a": )" << i / 10 << R"(}, "seed": )" << i
          << R"(, "replication": 0, "ended": "at", "sim_time_s": 0.5, "metrics": {"vms": {"g": {)";
      for (int m = 0; m < 100; ++m) out << (m == 0 ? "" : ",\n      ") << "\"some_metric_" << m << "\": " << i << ".5";
      out << "}}}}";
    }
    out << "]}\n";
  }
  ASSERT_GT(std::filesystem::file_size(file), 10u << 20);
  const auto peak = [] {
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  [[maybe_unused]] const long before = peak();
  InputErrors errors;
  double sum = 0;
  const auto add = [&](const RunRecord& record, std::string_view) {
    sum += std::get<double>(record.result.metrics[99].second);
  };
  ASSERT_TRUE(read_results(file, {.header = {}, .run = add}, errors)) << errors.lines().front();
  EXPECT_EQ(sum, kRuns * (kRuns - 1) / 2 + kRuns * 0.5);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(peak() - before, 2 * 1024) << "kilobytes";
#endif
}

}  // namespace
}  // namespace vcpusim
