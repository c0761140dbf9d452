// The fair queue lock: pending waiter, head of the queue, nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/locks/contention.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// A release that finds copies to invalidate is served after 201 ns; a spinner then reads the word in 101 ns.
constexpr Duration kReleaseIsSeen = 201ns + 101ns;

TEST(Qspinlock, ASecondContenderWaitsOnTheWordAndTakesItByAPlainStore) {
  const Results r = simulate_to_the_end(contenders("qspinlock", in_turn(2, 1us)));
  ASSERT_THAT(owners(r), ElementsAre(0u, 1u));
  EXPECT_EQ(hand_over(r, 1), kReleaseIsSeen);
}

TEST(Qspinlock, TheLastInTheQueueNeedsAnAtomicToTakeTheLockAndEmptyTheQueue) {
  const Results r = simulate_to_the_end(contenders("qspinlock", in_turn(3, 1us)));
  ASSERT_THAT(owners(r), ElementsAre(0u, 1u, 2u)) << "the pending waiter precedes the queue";
  EXPECT_EQ(hand_over(r, 2), kReleaseIsSeen + 200ns + 10ns);
}

TEST(Qspinlock, TheHeadPollsTheWordSinceHeadShipPassesAtAcquisition) {
  const Results r = simulate_to_the_end(contenders("qspinlock", in_turn(6, 1us)));
  ASSERT_THAT(owners(r), ElementsAre(0u, 1u, 2u, 3u, 4u, 5u));
  // The second in the queue has become its head while the first one held the lock. Otherwise the hand-over would
  // have its node in it, another 302 ns.
  EXPECT_EQ(hand_over(r, 3), kReleaseIsSeen);
  EXPECT_EQ(hand_over(r, 4), kReleaseIsSeen);
}

TEST(Qspinlock, ASectionShorterThanThePassingOfHeadShipIsWaitedFor) {
  const Results r = simulate_to_the_end(contenders("qspinlock", in_turn(6, 10ns)));
  ASSERT_THAT(owners(r), ElementsAre(0u, 1u, 2u, 3u, 4u, 5u));
  EXPECT_GT(hand_over(r, 4), kReleaseIsSeen);
}

// For how many moments of its arrival, while the lock passes to the pending waiter, a newcomer becomes the next
// pending waiter.
int newcomers_that_become_pending(std::int64_t rereads) {
  int pending = 0;
  for (Duration comes = 100us; comes < Duration(102us); comes += 10ns) {
    std::vector<Program> programs = in_turn(2, 2us);
    programs.push_back({user(always(comes)), hold(0, always(1us))});
    SimulationConfig config = contenders("qspinlock", programs);
    config.vms[0].guest.locks[0].kind.params["pending_rereads"] = rereads;
    const Results r = simulate_to_the_end(config);
    EXPECT_THAT(owners(r), ElementsAre(0u, 1u, 2u)) << comes.count();
    if (hand_over(r, 2) == kReleaseIsSeen) ++pending;
  }
  return pending;
}

TEST(Qspinlock, ANewcomerWaitsForAPendingWaiterThatIsTakingOver) {
  // Without patience it queues in these moments. Later ones see the pending waiter own the lock in any case.
  const int impatient = newcomers_that_become_pending(0);
  EXPECT_GT(impatient, 0);
  EXPECT_GT(newcomers_that_become_pending(512), impatient + 5);
}

}  // namespace
}  // namespace vcpusim::testing
