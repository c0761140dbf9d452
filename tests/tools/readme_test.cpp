// The commands and the scenario that the README shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace vcpusim {
namespace {

using ::testing::Contains;
using testing::ProcessResult;
using ::testing::SizeIs;

const std::filesystem::path kRoot = VCPUSIM_SOURCE_DIR;

// The fenced blocks that open with `fence`, without their fences.
std::vector<std::string> blocks(const std::string& fence) {
  std::istringstream lines(testing::read_whole(kRoot / "README.md"));
  std::vector<std::string> found;
  bool inside = false;
  bool wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line == fence;
      if (wanted) found.emplace_back();
    } else if (wanted) {
      found.back() += line + "\n";
    }
  }
  return found;
}

// Quotes are for the shell; none of the commands has a space inside of them.
std::vector<std::string> words(std::string line) {
  std::erase(line, '\'');
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

TEST(Readme, ShowsWhatAPlanPrints) {
  const ProcessResult plan = testing::run_process(
      {VCPUSIM_PROGRAM, "plan", kRoot / "scenarios/smoke/overcommit.json", "--target", "vms.web.elapsed_s<=2.5"});
  EXPECT_THAT(blocks("```"), Contains(plan.out));
}

TEST(Readme, ItsCommandsRun) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_symlink(kRoot / "scenarios", folder.path() / "scenarios");
  const auto scenarios = blocks("```json");
  ASSERT_THAT(scenarios, SizeIs(1));
  testing::write_whole(folder.path() / "repairman.json", scenarios[0]);

  constexpr std::string_view kProgram = "build/release/vcpusim";
  std::vector<std::string> commands;
  for (const std::string& block : blocks("```")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      std::vector<std::string> command = words(line);
      if (command.empty() || command[0] != kProgram) continue;
      command[0] = VCPUSIM_PROGRAM;
      commands.push_back(command[1]);
      const ProcessResult result = testing::run_process(command, {.folder = folder.path()});
      EXPECT_EQ(result.status, 0) << line << "\n" << result.err;
    }
  }
  for (const char* const command :
       {"run", "sweep", "merge", "compare", "plan", "validate", "list", "describe", "schema"}) {
    EXPECT_THAT(commands, Contains(command));
  }
}

}  // namespace
}  // namespace vcpusim
