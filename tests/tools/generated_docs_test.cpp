// The generated parts of the documentation are what the program prints now. `tools/dev docs` writes them anew.
//
// In a Markdown file, the lines from `<!-- describe KIND -->` to `<!-- end -->` hold the output of
// `vcpusim describe KIND`; those from `<!-- table FILE METRIC -->` on hold a table of one metric of a scenario: the
// values of its first axis down, those of its second axis, if it has one, across; those from
// `<!-- reproduce NAME -->` on hold what `vcpusim reproduce NAME` prints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace vcpusim {
namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path kRoot = VCPUSIM_SOURCE_DIR;

// A figure that is missed (status 1) is part of what is documented.
std::string output_of(std::vector<std::string> command) {
  const int worst = command.front() == "reproduce" ? 1 : 0;
  command.insert(command.begin(), VCPUSIM_PROGRAM);
  const testing::ProcessResult result = testing::run_process(command, {.folder = kRoot});
  EXPECT_LE(result.status, worst) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string table(const std::string& file, const std::string& metric) {
  const Json results = Json::parse(output_of({"run", file, "-o", "-"}));
  const Json& axes = results["scenario"]["resolved"]["vary"];
  const auto rows = axes.begin();
  auto columns = rows;
  if (++columns == axes.end()) columns = rows;
  const bool one_axis = columns == rows;
  const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  const Json across = one_axis ? Json::array({metric}) : *columns;
  std::string text = fmt::format("| {} |", last(rows.key()));
  for (const Json& value : across) {
    text += one_axis ? fmt::format(" {} |", metric) : fmt::format(" {} = {} |", last(columns.key()), text_of(value));
  }
  text += "\n|---|";
  for (std::size_t i = 0; i < across.size(); ++i) text += "---:|";
  std::size_t point = 0;
  for (const Json& row : *rows) {
    text += fmt::format("\n| {} |", text_of(row));
    for (std::size_t i = 0; i < across.size(); ++i) {
      const double mean = results["summary"][point++]["metrics"][metric]["mean"];
      text += mean >= 1000 ? fmt::format(" {:.0f} |", mean) : fmt::format(" {:.3g} |", mean);
    }
  }
  return text + "\n";
}

std::string generated(const std::string& what) {
  std::istringstream words(what);
  std::string kind;
  std::string first;
  std::string second;
  words >> kind >> first >> second;
  if (kind == "reproduce") return "```\n" + output_of({"reproduce", first}) + "```\n";
  if (kind == "describe") return "```\n" + output_of({"describe", first}) + "```\n";
  return table(first, second);
}

// The file with its generated parts made anew.
std::string renewed(const std::string& old) {
  std::istringstream lines(old);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    text += line + "\n";
    const auto is = [&line](const char* kind) { return line.starts_with(std::string("<!-- ") + kind + " "); };
    if (!is("describe") && !is("table") && !is("reproduce")) continue;
    text += generated(line.substr(5, line.size() - 9));
    while (std::getline(lines, line) && line != "<!-- end -->") {
    }
    text += "<!-- end -->\n";
  }
  return text;
}

void renew_or_compare(const std::string& name) {
  const std::string old = testing::read_whole(kRoot / name);
  const std::string now = renewed(old);
  if (std::getenv("VCPUSIM_WRITE_DOCS") != nullptr) {
    testing::write_whole(kRoot / name, now);
  } else {
    EXPECT_EQ(now, old) << name << ": run tools/dev docs";
  }
}

TEST(GeneratedDocs, AreWhatTheProgramPrints) { renew_or_compare("models/README.md"); }

TEST(GeneratedDocs, HaveEveryPublishedExperiment) {
  const std::string page = testing::read_whole(kRoot / "scenarios/published/README.md");
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "scenarios/published")) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = Json::parse(testing::read_whole(entry.path()))["name"];
    EXPECT_NE(page.find("<!-- reproduce " + name + " -->\n"), std::string::npos) << name;
  }
}

TEST(GeneratedDocsSlow, PublishedFiguresAreWhatTheProgramPrints) { renew_or_compare("scenarios/published/README.md"); }

}  // namespace
}  // namespace vcpusim
