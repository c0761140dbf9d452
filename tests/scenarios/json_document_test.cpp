#include "scenarios/json_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "scenarios/dotted_path.h"

namespace vcpusim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const auto kSource = std::make_shared<const std::string>("f");

std::optional<Json> parse(std::string_view text, std::vector<std::string>* lines = nullptr) {
  InputErrors errors;
  auto json = parse_json(text, kSource, errors);
  if (lines != nullptr) *lines = errors.lines();
  return json;
}

std::string place(const Json* json) {
  return json == nullptr ? "nowhere" : std::to_string(json->place.line) + ":" + std::to_string(json->place.column);
}

TEST(JsonDocument, EveryValueKnowsWhereItStarts) {
  const auto json = parse("{\n  \"a\\\"\\\\\": -12.5e3 ,\"b\":[true,\n null, \"x\\u0041\\\\\", {}],\"\xC3\xA4\":7}");
  ASSERT_TRUE(json);
  EXPECT_EQ(place(&*json), "1:1");
  EXPECT_EQ(place(json->find("a\"\\")), "2:12");
  EXPECT_EQ(json->find("a\"\\")->text, "-12.5e3");
  EXPECT_EQ(json->members[1].place.column, 21u);
  EXPECT_EQ(place(json->find("b")), "2:25");
  EXPECT_EQ(place(find_path(*json, "b.0")), "2:26");
  EXPECT_EQ(place(find_path(*json, "b.1")), "3:2");
  EXPECT_EQ(place(find_path(*json, "b.2")), "3:8");
  EXPECT_EQ(find_path(*json, "b.2")->text, "xA\\");
  EXPECT_EQ(place(find_path(*json, "b.3")), "3:21");
  EXPECT_EQ(place(json->find("\xC3\xA4")), "3:30") << "columns count bytes";
}

TEST(JsonDocument, ANumberAtTheVeryEndKeepsItsLastDigit) {
  EXPECT_EQ(parse("42")->text, "42");
  EXPECT_EQ(parse("42\n")->text, "42");
  EXPECT_EQ(parse("[1,-2]")->items[1].text, "-2");
}

TEST(JsonDocument, NumbersAreKeptAsWritten) {
  EXPECT_EQ(parse("9007199254740993")->as_integer(), 9007199254740993);
  EXPECT_EQ(parse("9223372036854775808")->as_integer(), std::nullopt);
  EXPECT_EQ(parse("2.0")->as_integer(), std::nullopt);
  EXPECT_EQ(parse("2.5")->as_real(), 2.5);
  EXPECT_EQ(parse("1000000000000000000000000000000")->text, "1000000000000000000000000000000");
}

TEST(JsonDocument, ReportsEachDuplicateKeyAndGoesOn) {
  std::vector<std::string> lines;
  const auto json = parse("{\"a\":1,\"b\":{\"c\":1,\"c\":2},\"a\":3,\n\"a\":4}", &lines);
  EXPECT_THAT(lines, ElementsAre("f:1:19: /b/c: the key stands twice in this object",
                                 "f:1:26: /a: the key stands twice in this object",
                                 "f:2:1: /a: the key stands twice in this object"));
  EXPECT_EQ(json->find("a")->text, "1");
}

TEST(JsonDocument, DepthIsLimitedExactly) {
  std::vector<std::string> lines;
  EXPECT_TRUE(parse(std::string(kDeepestJson, '[') + std::string(kDeepestJson, ']'), &lines));
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_FALSE(parse(std::string(kDeepestJson + 1, '[') + std::string(kDeepestJson + 1, ']'), &lines));
  EXPECT_EQ(lines.size(), 1u);
}

TEST(JsonDocument, NumberOfValuesIsLimited) {
  std::string text = "[0";
  for (std::size_t i = 2; i < kMostJsonValues; ++i) text += ",0";
  EXPECT_TRUE(parse(text + "]"));
  EXPECT_FALSE(parse(text + ",0]"));
}

TEST(JsonDocument, ManyKeysDoNotTakeQuadraticTime) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 400'000; ++i) text += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_TRUE(parse(text + "}"));  // the test's time limit is the assertion
}

TEST(JsonDocument, PointersEscapeTheirTwoSpecialCharacters) {
  EXPECT_EQ(child_pointer("/a", "b/c~d"), "/a/b~1c~0d");
  EXPECT_EQ(child_pointer("", 3), "/3");
}

TEST(JsonDocument, ValuesAreEqualHoweverTheyAreWritten) {
  EXPECT_TRUE(same_value(*parse("{\"a\":1,\"b\":[2.50]}"), *parse("{\"b\":[25e-1],\"a\":1.0}")));
  EXPECT_FALSE(same_value(*parse("1"), *parse("\"1\"")));
  EXPECT_FALSE(same_value(*parse("{\"a\":1}"), *parse("{\"a\":1,\"b\":1}")));
}

TEST(DottedPath, FindsItemsByNameBeforeIndex) {
  const auto json = parse(R"({"vms": [{"name": "web", "n": 1}, {"name": "db", "n": 2}]})");
  EXPECT_EQ(find_path(*json, "vms.db.n")->text, "2");
  EXPECT_EQ(find_path(*json, "vms.0.n")->text, "1");
  EXPECT_EQ(find_path(*json, "vms.2.n"), nullptr);
  EXPECT_EQ(find_path(*json, "vms.mail.n"), nullptr);
}

TEST(DottedPath, SettingABareNamesParameterKeepsTheName) {
  auto json = parse(R"({"locks": {"l": "ticket"}})");
  InputErrors errors;
  ASSERT_TRUE(set_path(*json, "locks.l.spin", *parse("3"), errors));
  EXPECT_EQ(json->find("locks")->find("l")->bare_name, "ticket");
  EXPECT_EQ(find_path(*json, "locks.l.spin")->text, "3");
}

TEST(DottedPath, EmptyPartsAreRefused) {
  for (const char* path : {"", ".", "a.", ".a", "a..b"}) {
    auto json = parse("{\"a\": {}}");
    InputErrors errors;
    EXPECT_FALSE(set_path(*json, path, *parse("1"), errors)) << path;
  }
}

}  // namespace
}  // namespace vcpusim
