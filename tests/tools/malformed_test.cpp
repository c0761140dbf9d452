// Files that are no scenarios: each has its exact messages beside it. In those, {locks}, {machines} and the like
// stand for the names of the catalogue, so that a new kind does not change them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "models/catalogue.h"
#include "scenarios/text_forms.h"
#include "tests/support/process.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using testing::run_process;

const std::filesystem::path kFolder = std::filesystem::path(VCPUSIM_SOURCE_DIR) / "tests/scenarios/malformed";

std::vector<std::string> names_of_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

template <class Kinds>
void fill_in(std::string& text, const std::string& placeholder, const Kinds& kinds) {
  std::vector<std::string> names;
  for (const auto& kind : kinds) names.emplace_back(kind.name);
  for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder)) {
    text.replace(at, placeholder.size(), comma_list(names));
  }
}

class MalformedScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(MalformedScenario, IsRefusedWithItsMessages) {
  std::string expected = testing::read_whole(kFolder / (GetParam() + ".expected"));
  ASSERT_FALSE(expected.empty());
  fill_in(expected, "{assists}", assist_kinds());
  fill_in(expected, "{locks}", lock_kinds());
  fill_in(expected, "{schedulers}", scheduler_kinds());
  fill_in(expected, "{machines}", machine_kinds());
  fill_in(expected, "{operations}", operation_kinds());
  for (const char* command : {"validate", "run"}) {
    const auto result = run_process({VCPUSIM_PROGRAM, command, GetParam() + ".json"}, {.folder = kFolder});
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, expected);
    EXPECT_EQ(result.out, "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, MalformedScenario, ::testing::ValuesIn(names_of_files()),
                         [](const auto& file) { return file.param; });

class HugeFile : public ::testing::TestWithParam<std::pair<const char*, std::size_t>> {};

TEST_P(HugeFile, EndsSoonAndSmall) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() / "huge.json";
  testing::write_whole(file, std::string(GetParam().second, GetParam().first[0]));
  const auto result = run_process({VCPUSIM_PROGRAM, "validate", file});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, ::testing::StartsWith(file));
  EXPECT_THAT(result.err, ::testing::EndsWith("\n"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(result.cpu_time, 1s);
  EXPECT_LT(result.peak_kilobytes, 200 * 1024);
#endif
}

INSTANTIATE_TEST_SUITE_P(All, HugeFile,
                         ::testing::Values(std::pair("[", 100'000'000), std::pair("[", 15'000'000),
                                           std::pair("{", 15'000'000), std::pair(" ", 15'000'000),
                                           std::pair("1", 15'000'000), std::pair("\"", 15'000'000)));

}  // namespace
}  // namespace vcpusim
