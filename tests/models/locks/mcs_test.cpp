// The MCS lock: hand-over through the nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/locks/contention.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

TEST(Mcs, HandsOverByOneStoreToTheNodeOfTheSuccessor) {
  const Results r = simulate_to_the_end(contenders("mcs", in_turn(8, 2us)));
  // The store invalidates the successor's copy, which then reads the node: 201 and 101 ns, whoever else waits.
  for (std::size_t n = 1; n < 8; ++n) EXPECT_EQ(hand_over(r, n), 302ns) << n;
}

TEST(Mcs, AReleaserWaitsForASuccessorThatHasNotLinkedItselfYet) {
  // The second owner releases before, while and after the third one queues: it swaps the tail at about 110 us and
  // then needs 201 ns for the link, since the second has spun on its node.
  Duration longest{};
  int settled = 0;
  int alone = 0;
  for (Duration hold_for = 8us; hold_for < Duration(10us); hold_for += 20ns) {
    std::vector<Program> programs = in_turn(2, hold_for);
    programs.push_back({user(always(110us)), hold(0, always(1us))});
    const Results r = simulate_to_the_end(contenders("mcs", programs));
    ASSERT_THAT(owners(r), ElementsAre(0u, 1u, 2u));
    const std::vector<Section> all = sections(r);
    const Section& second = all[1];
    const Section& third = all[2];
    if (third.acquired < second.released + 250ns) {
      ++alone;  // it came later, to a free lock
    } else if (hand_over(r, 2) == 302ns) {
      ++settled;
    } else {
      longest = std::max(longest, hand_over(r, 2));
    }
  }
  EXPECT_GT(settled, 10);
  EXPECT_GT(alone, 3);
  // An atomic that fails, since the tail has changed; the rest of the link; a read of it; then the usual hand-over.
  EXPECT_GT(longest, 302ns + 210ns);
  EXPECT_LT(longest, 302ns + 210ns + 201ns + 101ns + 210ns);
}

}  // namespace
}  // namespace vcpusim::testing
