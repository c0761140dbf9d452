#include "scenarios/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "scenarios/points.h"
#include "scenarios/scenario.h"
#include "tests/support/process.h"

namespace vcpusim {
namespace {

const std::filesystem::path kSource = VCPUSIM_SOURCE_DIR;

// What is wrong only in relation to something else, or beyond what a pattern can say of a number in a text: the
// loader alone can tell.
const std::set<std::string> kOnlyTheLoader{
    // the text, not its values
    "byte_order_mark",
    // duplicates
    "duplicate_key", "duplicate_lock", "duplicate_task", "duplicate_vm", "copy_name_taken",
    // sizes of durations
    "beyond_64_bits", "finer_than_picosecond", "too_long", "zero_stop", "warmup_beyond_stop",
    // names that must exist
    "undefined_lock", "undefined_lock_without_locks", "unknown_program", "program_file_above", "program_file_absolute",
    "program_file_missing", "vary_unknown_item", "vary_unknown_path", "vary_into_a_number", "vary_wrong_value",
    "point_off_the_axes", "relative_to_nothing", "calibrated_differs", "overcommit_no_vm", "flush_without_flags",
    // what a lock is for
    "rcu_read_of_spinlock", "sleep_in_atomic_sections",
    // sums and depths
    "program_in_circles", "program_nested_too_deep", "vary_too_many_points",
    // relations of values
    "more_pcpus_than_machine", "more_vcpus_than_pcpus", "two_native_vms", "native_and_others", "affinity_lists",
    "affinity_pcpu", "overcommit_no_copy", "overcommit_no_way", "uniform_reversed", "expect_without_bound",
    "expect_bounds_crossed", "published_unit", "published_zero", "published_no_figure", "published_sum",
    "published_tolerance", "published_ratio_unit"};

std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

bool loader_accepts(const std::filesystem::path& file) {
  InputErrors errors;
  const auto document = ScenarioDocument::open(file, errors);
  const auto scenario = document ? document->load({}, errors) : std::nullopt;
  if (scenario) check_points(*document, {}, all_points(scenario->vary), errors);
  return errors.empty();
}

class ScenarioSchema : public ::testing::Test {
 protected:
  ScenarioSchema() {
    const auto json = nlohmann::json::parse(schema_text());
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(json), schema_);
  }

  bool accepts(const std::string& text) const {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) return false;
    valijson::Validator validator;
    return validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(json), nullptr);
  }

 private:
  valijson::Schema schema_;
};

TEST_F(ScenarioSchema, RejectsWhatTheLoaderRejects) {
  std::set<std::string> not_found = kOnlyTheLoader;
  for (const auto& file : json_files(kSource / "tests/scenarios/malformed")) {
    const std::string name = file.stem();
    EXPECT_FALSE(loader_accepts(file)) << name;
    EXPECT_EQ(accepts(testing::read_whole(file)), kOnlyTheLoader.contains(name)) << name;
    not_found.erase(name);
  }
  EXPECT_TRUE(not_found.empty()) << *not_found.begin();
}

TEST_F(ScenarioSchema, AcceptsWhatTheLoaderAccepts) {
  for (const char* folder :
       {"tests/scenarios/valid", "scenarios/published", "scenarios/smoke", "scenarios/checklist", "scenarios/sweeps"}) {
    if (!std::filesystem::exists(kSource / folder)) continue;
    for (const auto& file : json_files(kSource / folder)) {
      EXPECT_TRUE(loader_accepts(file)) << file;
      EXPECT_TRUE(accepts(testing::read_whole(file))) << file;
    }
  }
}

TEST_F(ScenarioSchema, AcceptsTheResolvedScenario) {
  InputErrors errors;
  const auto document = ScenarioDocument::open(kSource / "tests/scenarios/valid/everything.json", errors);
  ASSERT_TRUE(document);
  EXPECT_TRUE(accepts(resolved_text(*document->load({}, errors))));
}

TEST_F(ScenarioSchema, ShipsAsItIsPrinted) {
  EXPECT_EQ(testing::read_whole(kSource / "scenarios/scenario.schema.json"), schema_text())
      << "refresh it: vcpusim schema > scenarios/scenario.schema.json";
}

}  // namespace
}  // namespace vcpusim
