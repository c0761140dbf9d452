// The unfair queue lock: whoever comes may take the lock byte, and the queue goes on behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/locks/contention.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

TEST(UnfairQspinlock, TheReleaserStealsTheLockFromTheQueue) {
  std::vector<Program> programs = in_turn(4, 2us);
  programs[0].push_back(hold(0, always(2us)));
  const Results r = simulate_to_the_end(contenders("unfair_qspinlock", programs));
  EXPECT_THAT(owners(r), ElementsAre(0u, 0u, 1u, 2u, 3u));
  EXPECT_EQ(r.count("vms.g.locks.l.steals"), 1);
}

TEST(UnfairQspinlock, TheQueueIsServedInOrderIfNobodySteals) {
  const Results r = simulate_to_the_end(contenders("unfair_qspinlock", in_turn(6, 2us)));
  EXPECT_THAT(owners(r), ElementsAre(0u, 1u, 2u, 3u, 4u, 5u));
  EXPECT_EQ(r.count("vms.g.locks.l.steals"), 0);
}

TEST(UnfairQspinlock, TheHeadTakesTheLockByAnAtomic) {
  const Results r = simulate_to_the_end(contenders("unfair_qspinlock", in_turn(2, 2us)));
  // It sees the release after 302 ns, then owns the line and does its atomic; as the last in the queue another one.
  EXPECT_EQ(hand_over(r, 1), 302ns + 210ns + 10ns);
}

TEST(UnfairQspinlock, AHeadFromWhomTheLockIsStolenWaitsAgain) {
  // One releases and takes again, over and over, and never leaves the lock alone for as long as a read takes.
  std::vector<Program> programs = in_turn(2, 1us);
  programs[0] = {repeat(50, {hold(0, always(3us))})};
  const Results r = simulate_to_the_end(contenders("unfair_qspinlock", programs));
  EXPECT_EQ(r.count("vms.g.locks.l.steals"), 49);
  EXPECT_EQ(owners(r).back(), 1u);
  EXPECT_EQ(r.count("vms.g.locks.l.acquisitions"), 51);
}

TEST(UnfairQspinlock, IsFasterThanTheFairOneBecauseOfThat) {
  EXPECT_LT(period("unfair_qspinlock", 8), 0.8 * period("qspinlock", 8));
  EXPECT_LT(period("unfair_qspinlock", 8), 0.8 * period("ticket", 8));
}

}  // namespace
}  // namespace vcpusim::testing
