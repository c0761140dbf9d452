#include "scenarios/text_forms.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "scenarios/sha256.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;

std::optional<Duration> duration(std::string_view text) {
  const auto value = parse_span(text).value;
  if (!value || !std::holds_alternative<Duration>(*value)) return {};
  return std::get<Duration>(*value);
}

TEST(DurationText, IsExactToThePicosecond) {
  EXPECT_EQ(duration("2ms"), 2ms);
  EXPECT_EQ(duration("13.5ns"), Duration{13'500});
  EXPECT_EQ(duration("0.001ns"), Duration{1});
  EXPECT_EQ(duration("1.000000000001s"), Duration{1'000'000'000'001});
  EXPECT_EQ(duration("0.1us"), 100ns);
  EXPECT_EQ(duration("1.5min"), 90s);
  EXPECT_EQ(duration("2h"), 2h);
  EXPECT_EQ(duration("-3us"), -3us);
  EXPECT_EQ(duration("1.50000000000000000000000000ns"), Duration{1'500});
  EXPECT_EQ(std::get<Cycles>(*parse_span("4096cycles").value), Cycles{4096});
}

TEST(DurationText, TakesTheWholeTextOrNothing) {
  for (const char* text :
       {"",      "2",     "ms",    "2 ms",  " 2ms", "2ms ", "2ms3",       "+2ms",    "2.ms", ".5ms",
        "2e3ms", "0x2ms", "2,5ms", "--2ms", "2MS",  "2m",   "2\xC2\xB5s", "2.5.1ms", "nan",  "1.0cycles"}) {
    EXPECT_FALSE(parse_span(text).value) << text;
  }
}

TEST(DurationText, RefusesWhatItCannotHold) {
  EXPECT_EQ(parse_span("0.0001ns").problem, "finer than a picosecond");
  EXPECT_EQ(parse_span("1.0000000000001s").problem, "finer than a picosecond");
  EXPECT_TRUE(parse_span("9223372036854775807ps").value);
  EXPECT_FALSE(parse_span("9223372036854775808ps").value);
  EXPECT_FALSE(parse_span(std::string(100'000, '9').append("h")).value);
  EXPECT_FALSE(parse_span("0." + std::string(100'000, '9') + "h").value);
}

TEST(DurationText, IsWrittenInTheShortestExactForm) {
  EXPECT_EQ(format_duration(Duration{13'500}), "13.5ns");
  EXPECT_EQ(format_duration(0ns), "0s");
  EXPECT_EQ(format_duration(3600s), "1h");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(-3us), "-3us");
  EXPECT_EQ(format_duration(Duration{1}), "1ps");
}

TEST(DurationText, IsReadBackAsItWasWritten) {
  rc::check([](std::int64_t picoseconds) {
    if (picoseconds == std::numeric_limits<std::int64_t>::min()) return;
    RC_ASSERT(duration(format_duration(Duration{picoseconds})) == Duration{picoseconds});
  });
}

TEST(Suggestions, ComeOnlyForSlips) {
  const std::vector<std::string> known{"ticket", "ttas", "tas", "vcpus", "acquisitions"};
  EXPECT_EQ(nearest_name("tiket", known), "ticket");
  EXPECT_EQ(nearest_name("vcpsu", known), "vcpus") << "a swap is one slip";
  EXPECT_EQ(nearest_name("tass", known), "tas");
  EXPECT_EQ(nearest_name("acquisition", known), "acquisitions");
  EXPECT_EQ(nearest_name("mutex", known), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'x'), known), std::nullopt);
  EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

TEST(Names, CanStandInDottedPaths) {
  EXPECT_TRUE(is_name("web-1_a"));
  EXPECT_TRUE(is_name(std::string(64, 'a')));
  for (const std::string& text : {std::string(), std::string("0"), std::string("-a"), std::string("a.b"),
                                  std::string("a b"), std::string("\xC3\xA4"), std::string(65, 'a')}) {
    EXPECT_FALSE(is_name(text)) << text;
  }
}

// FIPS 180-4 examples, and the lengths around a block.
TEST(Sha256, MatchesThePublishedExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace vcpusim
