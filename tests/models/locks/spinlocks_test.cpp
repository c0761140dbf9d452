// What every spinlock must do, and what tells the families apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/locks/contention.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class Spinlock : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, Spinlock,
                         ::testing::Values("ideal", "tas", "ttas", "ticket", "mcs", "qspinlock", "unfair_qspinlock"),
                         [](const auto& kind) { return kind.param; });

class FairSpinlock : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, FairSpinlock, ::testing::Values("ticket", "mcs", "qspinlock"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Spinlock, HasOneOwnerAtATime) {
  // Sections from shorter than a transfer to longer than many.
  for (const Duration mean : {Duration(5ns), Duration(300ns), Duration(3us)}) {
    const Program program{repeat(300, {user(exponential(2us)), hold(0, exponential(mean))})};
    const Results r = simulate_to_the_end(contenders(GetParam(), 8, program));
    const std::vector<Section> all = sections(r);
    ASSERT_EQ(all.size(), 8u * 300u);
    for (std::size_t i = 1; i < all.size(); ++i) ASSERT_GE(all[i].acquired, all[i - 1].released) << i;
    EXPECT_GT(r.count("vms.g.locks.l.contended"), 20) << "the lock was hardly contended";
  }
}

TEST_P(Spinlock, SpinsOnlyWhileItWaits) {
  const Results r = simulate_to_the_end(contenders(GetParam(), in_turn(2, 1us)));
  EXPECT_THAT(owners(r), ElementsAre(0u, 1u));
  EXPECT_EQ(r.count("vms.g.locks.l.contended"), 1);
  // The second one came 1 us after the first and waited for the rest of its 100 us.
  EXPECT_NEAR(r.number("vms.g.time_s.spin"), 99e-6, 1e-6);
  EXPECT_NEAR(r.number("vms.g.time_s.hold"), 101e-6, 1e-6);
}

TEST_P(FairSpinlock, ServesInTheOrderOfArrival) {
  const Results r = simulate_to_the_end(contenders(GetParam(), in_turn(8, 500ns)));
  EXPECT_THAT(owners(r), ElementsAre(0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u));
  EXPECT_EQ(r.count("vms.g.locks.l.contended"), 7);
}

TEST_P(FairSpinlock, LetsNobodyPassWhoComesBackAtOnce) {
  // The first one wants the lock again the moment it has released it, when the others have not even seen that.
  std::vector<Program> programs = in_turn(4, 500ns);
  programs[0].push_back(hold(0, always(500ns)));
  const Results r = simulate_to_the_end(contenders(GetParam(), programs));
  EXPECT_THAT(owners(r), ElementsAre(0u, 1u, 2u, 3u, 0u));
}

TEST(Ttas, LetsTheReleaserPassWhoComesBackAtOnce) {
  std::vector<Program> programs = in_turn(4, 500ns);
  programs[0].push_back(hold(0, always(500ns)));
  const Results r = simulate_to_the_end(contenders("ttas", programs));
  ASSERT_EQ(owners(r).size(), 5u);
  EXPECT_EQ(owners(r)[1], 0u);
}

TEST(Ticket, EveryWaiterAddsOneReadToTheHandOver) {
  // The spinners read the line again one after the other, and the next release waits for all of them.
  EXPECT_NEAR(period("ticket", 5) - period("ticket", 4), 20, 2);
  EXPECT_NEAR(period("ticket", 8) - period("ticket", 5), 60, 4);
}

TEST(Mcs, TheHandOverDoesNotDependOnTheNumberOfWaiters) {
  EXPECT_NEAR(period("mcs", 4), period("mcs", 8), 0.02 * period("mcs", 8));
}

TEST(Qspinlock, TheHandOverDoesNotDependOnTheNumberOfWaiters) {
  EXPECT_NEAR(period("qspinlock", 5), period("qspinlock", 8), 0.02 * period("qspinlock", 8));
}

TEST(Tas, TheReleaseQueuesUpBehindTheAtomicsOfAllWaiters) {
  const auto release_delay = [](std::size_t tasks) {
    return hand_over(simulate_to_the_end(contenders("tas", in_turn(tasks, 1us))), 1);
  };
  EXPECT_EQ(release_delay(4) - release_delay(3), 110ns + 20ns) << "one more atomic, and one more to read the word";
  EXPECT_EQ(release_delay(8) - release_delay(4), 4 * 130ns);
}

TEST(Ideal, CostsNothing) {
  const Results r = simulate_to_the_end(contenders("ideal", in_turn(8, 1us)));
  for (std::size_t n = 1; n < 8; ++n) EXPECT_EQ(hand_over(r, n), Duration::zero());
}

}  // namespace
}  // namespace vcpusim::testing
