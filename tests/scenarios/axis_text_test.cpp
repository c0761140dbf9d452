#include "scenarios/axis_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/points.h"

namespace vcpusim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> values(std::string_view text) {
  InputErrors errors;
  const auto axis = parse_axis("--vary", text, errors);
  EXPECT_TRUE(axis && errors.empty()) << text;
  std::vector<std::string> texts;
  for (const Json& value : axis ? axis->values : std::vector<Json>()) texts.push_back(value_text(value));
  return texts;
}

std::string error(std::string_view text) {
  InputErrors errors;
  parse_axis("--vary", text, errors);
  return errors.empty() ? "" : errors.lines().front();
}

TEST(AxisText, ListsValues) {
  EXPECT_THAT(values("a.b=ticket,ttas"), ElementsAre("ticket", "ttas"));
  EXPECT_THAT(values("a=1,2.5,true"), ElementsAre("1", "2.5", "true"));
  EXPECT_THAT(values("a=7"), ElementsAre("7"));
  EXPECT_THAT(values(R"(a=[1,2],{"exponential":"2us"},"x,y")"),
              ElementsAre("[1,2]", R"({"exponential":"2us"})", "x,y"));
}

TEST(AxisText, StepsThroughRangesExactly) {
  EXPECT_THAT(values("overcommit=1:2:0.5"), ElementsAre("1", "1.5", "2"));
  EXPECT_THAT(values("a=0.1:0.5:0.1"), ElementsAre("0.1", "0.2", "0.3", "0.4", "0.5"));
  EXPECT_THAT(values("a=1:4:2"), ElementsAre("1", "3"));
  EXPECT_THAT(values("a=-1:1:1"), ElementsAre("-1", "0", "1"));
  EXPECT_THAT(values("a=5us:6us:0.5us"), ElementsAre("5us", "5.5us", "6us"));
  EXPECT_THAT(values("a=4096cycles:8192cycles:4096cycles"), ElementsAre("4096cycles", "8192cycles"));
}

TEST(AxisText, RefusesWhatIsNoAxis) {
  EXPECT_THAT(error("ticket"), HasSubstr("expected PATH=VALUE"));
  EXPECT_THAT(error("=1"), HasSubstr("expected PATH=VALUE"));
  EXPECT_THAT(error("a=1:4:0"), HasSubstr("STEP > 0"));
  EXPECT_THAT(error("a=4:1:1"), HasSubstr("LO <= HI"));
  EXPECT_THAT(error("a=1us:4ms:1us"), HasSubstr("one unit"));
  EXPECT_THAT(error("a=0:1000000000:1"), HasSubstr("at most 100000 values"));
  EXPECT_THAT(error("a=1,,2"), HasSubstr("empty"));
  EXPECT_THAT(error("a=1,2,1.0"), HasSubstr("twice"));
}

}  // namespace
}  // namespace vcpusim
