#include "models/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sim/check.h"

namespace vcpusim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

template <class Entry>
void expect_sorted_and_described(std::span<const Entry> kinds) {
  EXPECT_FALSE(kinds.empty());
  EXPECT_TRUE(std::ranges::is_sorted(kinds, {}, &Entry::name));
  for (const Entry& kind : kinds) {
    EXPECT_FALSE(kind.summary.empty()) << kind.name;
    EXPECT_NE(kind.make, nullptr) << kind.name;
  }
}

TEST(Catalogue, IsSortedAndDescribed) {
  expect_sorted_and_described(lock_kinds());
  expect_sorted_and_described(operation_kinds());
  expect_sorted_and_described(machine_kinds());
}

TEST(Catalogue, FindsKindsByTheirWholeName) {
  for (const LockKind& kind : lock_kinds()) EXPECT_EQ(find_lock_kind(kind.name), &kind);
  for (const OperationKind& kind : operation_kinds()) EXPECT_EQ(find_operation_kind(kind.name), &kind);
  for (const MachineKind& kind : machine_kinds()) EXPECT_EQ(find_machine_kind(kind.name), &kind);
  EXPECT_EQ(find_lock_kind("tick"), nullptr);
  EXPECT_EQ(find_lock_kind("ticket2"), nullptr);
  EXPECT_EQ(find_lock_kind(""), nullptr);
}

// One parameter of each type.
struct Settings {
  enum class Mode { kSlow, kFast };

  Duration delay{5};
  Cycles window{10};
  std::int64_t tries = 3;
  double share = 0.5;
  bool fair = false;
  Mode mode = Mode::kSlow;
  std::int64_t inner_tries = 7;

  void describe(ParamVisitor& visitor) {
    static constexpr std::array<std::string_view, 2> kModes{"slow", "fast"};
    visitor.duration("delay", delay, kAnyDuration, "");
    visitor.cycles("window", window, {0, 100}, "");
    visitor.integer("tries", tries, {0, 100}, "");
    visitor.real("share", share, {0, 1}, "");
    visitor.flag("fair", fair, "");
    visitor.choice("mode", mode, kModes, "");
    visitor.group("inner", "", [this](ParamVisitor& inner) { inner.integer("tries", inner_tries, {0, 100}, ""); });
  }

  void apply(std::map<std::string, ParamValue> params) {
    apply_params(Kind{"sample", std::move(params)}, [this](ParamVisitor& visitor) { describe(visitor); });
  }
};

TEST(ApplyParams, SetsEveryType) {
  Settings settings;
  settings.apply({{"delay", Duration{50}},
                  {"window", Cycles{100}},
                  {"tries", std::int64_t{30}},
                  {"share", 0.75},
                  {"fair", true},
                  {"mode", std::string("fast")},
                  {"inner.tries", std::int64_t{70}}});
  EXPECT_EQ(settings.delay, Duration{50});
  EXPECT_EQ(settings.window, Cycles{100});
  EXPECT_EQ(settings.tries, 30);
  EXPECT_EQ(settings.share, 0.75);
  EXPECT_TRUE(settings.fair);
  EXPECT_EQ(settings.mode, Settings::Mode::kFast);
  EXPECT_EQ(settings.inner_tries, 70);
}

TEST(ApplyParams, LeavesWhatIsNotNamed) {
  Settings settings;
  settings.apply({{"inner.tries", std::int64_t{70}}});
  EXPECT_EQ(settings.inner_tries, 70);
  EXPECT_EQ(settings.tries, 3);
  EXPECT_EQ(settings.delay, Duration{5});
  EXPECT_EQ(settings.mode, Settings::Mode::kSlow);
}

TEST(ApplyParams, RefusesWhatNoVisitorAccepted) {
  Settings settings;
  const auto apply = [&settings](const char* key, ParamValue value) {
    return [&settings, key, value] { settings.apply({{key, value}}); };
  };
  EXPECT_THAT(apply("trys", std::int64_t{1}), ThrowsMessage<InvariantError>(HasSubstr("no parameter")));
  EXPECT_THAT(apply("tries", 1.0),
              ThrowsMessage<InvariantError>(HasSubstr("sample.tries has a value of another type")));
  EXPECT_THAT(apply("mode", std::string("slowest")),
              ThrowsMessage<InvariantError>(HasSubstr("sample.mode cannot be slowest")));
}

}  // namespace
}  // namespace vcpusim
