// The scenarios of scenarios/published: what they may fit, and that they are right at both of their sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/points.h"
#include "scenarios/reproduction.h"

namespace vcpusim {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(VCPUSIM_SOURCE_DIR) / "scenarios" / "published";

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json") all.push_back(entry.path().stem());
  }
  std::ranges::sort(all);
  return all;
}

class PublishedScenario : public ::testing::TestWithParam<std::string> {
 protected:
  PublishedScenario() {
    document_ = ScenarioDocument::open(kFolder / (GetParam() + ".json"), errors_);
    if (document_) scenario_ = document_->load({}, errors_);
  }
  void SetUp() override { ASSERT_TRUE(scenario_) << errors_.lines().front(); }

  InputErrors errors_;
  std::optional<ScenarioDocument> document_;
  std::optional<Scenario> scenario_;
};
INSTANTIATE_TEST_SUITE_P(All, PublishedScenario, ::testing::ValuesIn(names()),
                         [](const auto& file) { return file.param; });

TEST_P(PublishedScenario, HasAtMostHalfAsManyFittedNumbersAsFiguresItIsJudgedOn) {
  const auto judged = std::ranges::count_if(
      scenario_->published, [](const PublishedFigure& f) { return f.tolerance || f.at_least || f.at_most; });
  EXPECT_LE(2 * fitted_numbers(*scenario_), static_cast<std::size_t>(judged));
}

TEST_P(PublishedScenario, SaysWhatWasFittedIfAFigureWas) {
  const bool fitted = std::ranges::any_of(scenario_->published, &PublishedFigure::fitted);
  EXPECT_EQ(fitted, !scenario_->calibrated.empty());
}

TEST_P(PublishedScenario, LoadsAtItsQuickSizeWithAReason) {
  const auto settings = size_settings(*scenario_, false);
  EXPECT_EQ(settings.empty(), scenario_->quick.why.empty());
  const auto quick = document_->load(settings, errors_);
  ASSERT_TRUE(quick) << errors_.lines().front();
  EXPECT_TRUE(check_points(*document_, settings, all_points(quick->vary), errors_));
}

TEST_P(PublishedScenario, CitesItsSources) { EXPECT_FALSE(scenario_->sources.empty()); }

}  // namespace
}  // namespace vcpusim
