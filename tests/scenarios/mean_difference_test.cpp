#include "scenarios/mean_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <variant>
#include <vector>

#include "models/simulation.h"
#include "scenarios/scenario.h"

namespace vcpusim {
namespace {

using enum DifferenceTest;
using Sample = std::vector<double>;

// Extra hours of sleep with two drugs (Student, Biometrika 6, 1908), on which R documents its t.test.
const Sample kFirst{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const Sample kSecond{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

TEST(MeanDifference, AgreesWithAPublishedExample) {
  const auto welch = compare_means(kFirst, kSecond, kWelch);
  EXPECT_NEAR(welch->difference, 1.58, 1e-9);
  EXPECT_NEAR(welch->degrees, 17.776, 0.001);
  EXPECT_NEAR(welch->difference - welch->half_width, -0.2054832, 1e-6);
  EXPECT_NEAR(welch->difference + welch->half_width, 3.3654832, 1e-6);
  EXPECT_FALSE(welch->proven);

  const auto paired = compare_means(kFirst, kSecond, kPaired);
  EXPECT_EQ(paired->pairs, 10u);
  EXPECT_NEAR(paired->difference - paired->half_width, 0.7001142, 1e-6);
  EXPECT_NEAR(paired->difference + paired->half_width, 2.4598858, 1e-6);
  EXPECT_TRUE(paired->proven);

  const auto surer = compare_means(kFirst, kSecond, kPaired, 0.999);
  EXPECT_NEAR(surer->half_width / paired->half_width, 4.780913 / 2.262157, 1e-6) << "from a table of t";
  EXPECT_FALSE(surer->proven);
}

TEST(MeanDifference, NeedsTwoValuesOfEach) {
  EXPECT_FALSE(compare_means(Sample{1}, Sample{2, 3}, kWelch));
  EXPECT_FALSE(compare_means(Sample{1, 2}, Sample{2}, kPooled));
  EXPECT_FALSE(compare_means(Sample{}, Sample{}, kPaired));
}

TEST(MeanDifference, WhatDoesNotVaryIsCertain) {
  for (const DifferenceTest test : {kWelch, kPooled, kPaired}) {
    const auto other = compare_means(Sample{2, 2, 2}, Sample{3, 3, 3}, test);
    EXPECT_TRUE(other->proven);
    EXPECT_EQ(other->half_width, 0);
    EXPECT_EQ(other->relative, 0.5);
    EXPECT_EQ(other->relative_interval, std::pair(0.5, 0.5));
    // A mean of tenths depends on how many there are, in its last bit.
    EXPECT_FALSE(compare_means(Sample(3, 0.1), Sample(test == kPaired ? 3 : 10, 0.1 + 1e-17), test)->proven);
  }
  EXPECT_FALSE(compare_means(Sample{0, 0}, Sample{1, 1}, kWelch)->relative);
}

TEST(MeanDifference, RelativeAndAbsoluteIntervalsSayTheSame) {
  std::mt19937_64 random(1);
  const auto draw = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  int proven = 0;
  int bounded = 0;
  for (int i = 0; i < 2000; ++i) {
    Sample a;
    Sample b;
    const double shift = draw();
    for (int k = 0; k < 5; ++k) {
      a.push_back(draw() + 0.2);
      b.push_back(0.5 * a.back() + draw() + shift);
    }
    for (const DifferenceTest test : {kWelch, kPaired}) {
      const auto d = compare_means(a, b, test);
      proven += d->proven;
      if (!d->relative_interval) continue;
      ++bounded;
      const auto& [low, high] = *d->relative_interval;
      EXPECT_EQ(low > 0 || high < 0, d->proven);
      EXPECT_LE(low, *d->relative);
      EXPECT_GE(high, *d->relative);
    }
  }
  EXPECT_GT(proven, 400);
  EXPECT_LT(proven, 3600);
  EXPECT_GT(bounded, 2000);
}

// 1,000 pairs of experiments of five runs each with other random numbers: five per cent are to look different.
TEST(MeanDifference, EqualConfigurationsDifferAsOftenAsTheConfidenceSays) {
  constexpr std::string_view kScenario = R"({"schema": "vcpusim.scenario/1", "name": "s", "stop": {"at": "1ms"},
   "host": {"machine": "generic", "pcpus": 2},
   "vms": [{"name": "g", "vcpus": 2, "guest": {"locks": {"l": "ticket"}},
     "tasks": [{"name": "t", "count": 2, "program": [
       {"repeat": "forever", "do": [{"user": {"exponential": "10us"}}, {"lock": "l", "hold": {"exponential": "5us"}}]}]}]}]})";
  InputErrors errors;
  const auto document = ScenarioDocument::parse(kScenario, "s.json", "", errors);
  auto scenario = document->load({}, errors);
  ASSERT_TRUE(scenario) << errors.lines().front();
  std::uint64_t seed = 1;
  const auto experiment = [&] {
    Sample sample;
    for (int run = 0; run < 5; ++run) {
      scenario->simulation.seed = seed++;
      for (const auto& [path, value] : Simulation(scenario->simulation, nullptr).run().metrics) {
        if (path == "vms.g.tasks.t.operations_per_s") sample.push_back(std::get<double>(value));
      }
    }
    return sample;
  };
  std::map<DifferenceTest, int> differences;
  int slower = 0;
  for (int i = 0; i < 1000; ++i) {
    const Sample a = experiment();
    const Sample b = experiment();
    ASSERT_EQ(a.size(), 5u);
    for (const DifferenceTest test : {kWelch, kPooled, kPaired}) differences[test] += compare_means(a, b, test)->proven;
    Sample c = b;
    for (double& value : c) value *= 0.8;
    slower += compare_means(a, c, kWelch)->proven;
  }
  for (const auto& [test, count] : differences) {
    EXPECT_GE(count, 35) << static_cast<int>(test);
    EXPECT_LE(count, 65) << static_cast<int>(test);
  }
  EXPECT_GT(slower, 900) << "and what is slower by a fifth is found";
}

}  // namespace
}  // namespace vcpusim
