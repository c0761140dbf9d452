#include "sim/engine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/random.h"

namespace vcpusim {
namespace {

// Actors that note when they were called, and then do what the test says.
struct Calls {
  struct Actor {
    void on_expiry() {
      calls->log.emplace_back(calls->engine.now().time_since_epoch().count(), number);
      if (calls->then) calls->then(number);
    }
    Calls* calls;
    std::uint32_t number;
    Engine::TimerId timer;
  };

  explicit Calls(std::uint32_t count) : actors(count) {
    for (std::uint32_t i = 0; i < count; ++i) actors[i] = {this, i, engine.add_timer<&Actor::on_expiry>(actors[i])};
  }
  void schedule(std::uint32_t i, std::int64_t at) { engine.schedule(actors[i].timer, time(at)); }
  static SimTime time(std::int64_t ps) { return SimTime(Duration(ps)); }

  using Log = std::vector<std::pair<std::int64_t, std::uint32_t>>;
  Engine engine;
  std::vector<Actor> actors;
  std::function<void(std::uint32_t)> then;
  Log log;
};

TEST(Engine, RunsInOrderOfTime) {
  Calls c(3);
  c.schedule(0, 30);
  c.schedule(1, 10);
  c.schedule(2, 20);
  c.engine.run_until(kNever);
  EXPECT_EQ(c.log, (Calls::Log{{10, 1}, {20, 2}, {30, 0}}));
  EXPECT_EQ(c.engine.events(), 3U);
}

TEST(Engine, TiesRunInOrderOfScheduling) {
  Calls c(5);
  for (std::uint32_t i : {3U, 0U, 4U, 1U, 2U}) c.schedule(i, 7);
  c.engine.run_until(kNever);
  EXPECT_EQ(c.log, (Calls::Log{{7, 3}, {7, 0}, {7, 4}, {7, 1}, {7, 2}}));
}

TEST(Engine, MovingATimerToItsOwnTimeSendsItToTheEndOfTheTie) {
  Calls c(3);
  for (std::uint32_t i = 0; i < 3; ++i) c.schedule(i, 7);
  c.schedule(0, 7);
  c.engine.run_until(kNever);
  EXPECT_EQ(c.log, (Calls::Log{{7, 1}, {7, 2}, {7, 0}}));
}

TEST(Engine, ACancelledTimerDoesNotRun) {
  Calls c(2);
  c.schedule(0, 5);
  c.schedule(1, 6);
  c.engine.cancel(c.actors[0].timer);
  EXPECT_FALSE(c.engine.pending(c.actors[0].timer));
  EXPECT_EQ(c.engine.expiry(c.actors[0].timer), kNever);
  EXPECT_EQ(c.engine.expiry(c.actors[1].timer), Calls::time(6));
  c.engine.run_until(kNever);
  EXPECT_EQ(c.log, (Calls::Log{{6, 1}}));
}

TEST(Engine, AnEventMayCancelAnotherOfTheSameInstant) {
  Calls c(2);
  c.schedule(0, 5);
  c.schedule(1, 5);
  c.then = [&](std::uint32_t) { c.engine.cancel(c.actors[1].timer); };
  c.engine.run_until(kNever);
  EXPECT_EQ(c.log, (Calls::Log{{5, 0}}));
}

TEST(Engine, ARunningTimerIsNotPendingUntilScheduledAgain) {
  Calls c(1);
  c.schedule(0, 5);
  c.then = [&](std::uint32_t) {
    EXPECT_FALSE(c.engine.pending(c.actors[0].timer));
    c.engine.cancel(c.actors[0].timer);  // nothing to cancel
    if (c.log.size() < 3) {
      c.schedule(0, 5);
      EXPECT_TRUE(c.engine.pending(c.actors[0].timer));
    }
  };
  c.engine.run_until(kNever);
  EXPECT_EQ(c.log, (Calls::Log{{5, 0}, {5, 0}, {5, 0}}));
}

TEST(Engine, RunsEventsAtTheLimitButNotBeyond) {
  Calls c(2);
  c.schedule(0, 10);
  c.schedule(1, 11);
  c.engine.run_until(Calls::time(10));
  EXPECT_EQ(c.log, (Calls::Log{{10, 0}}));
  EXPECT_EQ(c.engine.now(), Calls::time(10));
  c.engine.run_until(Calls::time(20));
  EXPECT_EQ(c.engine.now(), Calls::time(20));
  EXPECT_EQ(c.log.size(), 2U);
}

TEST(Engine, StopLeavesThePresentAtTheEventThatStopped) {
  Calls c(2);
  c.schedule(0, 10);
  c.schedule(1, 11);
  c.then = [&](std::uint32_t) { c.engine.stop(); };
  c.engine.run_until(Calls::time(50));
  EXPECT_EQ(c.engine.now(), Calls::time(10));
  EXPECT_TRUE(c.engine.pending(c.actors[1].timer));
}

TEST(Engine, AdvancesOnlyWhenNothingElseIsDueByThen) {
  Calls c(2);
  c.schedule(0, 10);
  c.schedule(1, 20);
  std::vector<bool> advanced;
  c.then = [&](std::uint32_t i) {
    if (i != 0) return;
    advanced.push_back(c.engine.try_advance(Calls::time(19)));
    EXPECT_EQ(c.engine.now(), Calls::time(19));
    advanced.push_back(c.engine.try_advance(Calls::time(20)));  // the other was scheduled first
    EXPECT_EQ(c.engine.now(), Calls::time(19));
  };
  c.engine.run_until(kNever);
  EXPECT_EQ(advanced, (std::vector<bool>{true, false}));
  EXPECT_EQ(c.engine.events(), 3U);
}

TEST(Engine, AFailedInvariantTellsTheSimulatedTime) {
  Calls c(1);
  c.schedule(0, 123);
  c.then = [](std::uint32_t) { SIM_CHECK(false, "no such luck"); };
  try {
    c.engine.run_until(kNever);
    FAIL();
  } catch (const InvariantError& error) {
    EXPECT_NE(std::string(error.what()).find("at 123 ps"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("no such luck"), std::string::npos) << error.what();
  }
}

// The same random schedules, moves and cancellations on a sorted map of (time, sequence number).
void compare_with_map(std::uint32_t timers, std::int64_t spread, std::size_t events, std::uint64_t seed) {
  using Key = std::pair<std::int64_t, std::uint64_t>;
  std::map<Key, std::uint32_t> expected;
  std::vector<Key> keys(timers, Key{-1, 0});
  std::uint64_t sequence = 0;
  RandomStream random(seed, "engine", "operations");
  Calls c(timers);

  const auto cancel = [&](std::uint32_t i) {
    c.engine.cancel(c.actors[i].timer);
    expected.erase(keys[i]);
  };
  const auto schedule = [&](std::uint32_t i) {
    const std::int64_t at = c.engine.now().time_since_epoch().count() +
                            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(spread)));
    c.schedule(i, at);
    expected.erase(keys[i]);
    keys[i] = {at, sequence++};
    expected.emplace(keys[i], i);
  };
  const auto any = [&] { return static_cast<std::uint32_t>(random.below(timers)); };

  c.then = [&](std::uint32_t i) {
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(expected.begin()->second, i);
    ASSERT_EQ(expected.begin()->first.first, c.engine.now().time_since_epoch().count());
    expected.erase(expected.begin());
    if (c.log.size() >= events) return c.engine.stop();
    switch (random.below(4)) {
      case 0:
        return;
      case 1:
        schedule(any());
        cancel(any());
        return schedule(any());
      default:
        schedule(i);
        if (random.below(2) == 0) schedule(any());
    }
  };
  while (c.log.size() < events) {
    for (std::uint32_t i = 0; i < timers; ++i) schedule(i);
    c.engine.run_until(Calls::time(c.engine.now().time_since_epoch().count() + 100 * spread));
  }
  for (std::uint32_t i = 0; i < timers; ++i) {
    const auto at = expected.find(keys[i]);
    const bool pending = at != expected.end() && at->second == i;
    ASSERT_EQ(c.engine.pending(c.actors[i].timer), pending);
    ASSERT_EQ(c.engine.expiry(c.actors[i].timer), pending ? Calls::time(keys[i].first) : kNever);
  }
}

TEST(Engine, AgreesWithASortedMap) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    compare_with_map(1 + static_cast<std::uint32_t>(seed), 10, 200, seed);  // many ties
    compare_with_map(100, 1'000, 5'000, seed);
  }
}

TEST(Engine, AgreesWithASortedMapWhenTimersAreMany) {
  compare_with_map(40'000, 50, 60'000, 1);
  compare_with_map(20'000, 1'000'000'000, 60'000, 2);
}

}  // namespace
}  // namespace vcpusim
