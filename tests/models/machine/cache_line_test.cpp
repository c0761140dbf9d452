// The cost of cache lines under contention, by hand.
#include "models/machine/cache_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "models/catalogue.h"
#include "sim/engine.h"

namespace vcpusim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Optional;

constexpr SimTime at(Duration since_zero) { return kTimeZero + since_zero; }

// Two sockets of four cores with two threads each, with costs that are easy to tell apart.
MachineConfig two_sockets() {
  MachineConfig m = find_machine_kind("ideal")->make();
  m.sockets = 2;
  m.cores_per_socket = 4;
  m.threads_per_core = 2;
  m.costs.local_access = 1ns;
  m.costs.local_atomic = 10ns;
  m.costs.snoop_share = 0.5;
  m.costs.same_core = {.load = 4ns, .load_shared = 2ns, .store = 6ns};
  m.costs.same_socket = {.load = 100ns, .load_shared = 20ns, .store = 200ns};
  m.costs.one_hop = {.load = 300ns, .load_shared = 250ns, .store = 500ns};
  return m;
}
constexpr PcpuId kCpu0{0};
constexpr PcpuId kSibling{1};
constexpr PcpuId kCpu2{2};  // of the same socket, as 4 and 6
constexpr PcpuId kCpu4{4};
constexpr PcpuId kCpu6{6};
constexpr PcpuId kOtherSocket{8};

class CacheLineTest : public testing::Test {
 protected:
  void advance_to(SimTime t) { engine_.run_until(t); }
  // Waits for a request that has been queued.
  void served(SimTime t) { advance_to(t); }
  CacheLine owned_by(PcpuId pcpu) {
    CacheLine line(machine_);
    line.store(pcpu);
    return line;
  }

  Engine engine_;
  Machine machine_{two_sockets(), 16, engine_};
  CacheLine line_{machine_};
};

// Spins until `flag`.
class Spinner final : public LineWatcher {
 public:
  Spinner(const bool& flag, PcpuId where) : pcpu(where), flag_(flag) {}

  const PcpuId pcpu;
  std::optional<SimTime> sees;  // nothing if it does not, or does no longer
  int losses = 0;

 private:
  bool condition() const override { return flag_; }
  void sees_condition(SimTime when) override { sees = when; }
  void loses_condition() override {
    sees.reset();
    ++losses;
  }

  const bool& flag_;
};

class SpinnersTest : public CacheLineTest {
 protected:
  // Writes through the core's own cache or, at the end of the transfer, from elsewhere.
  void write(PcpuId pcpu, bool value) {
    served(line_.store(pcpu));
    flag_ = value;
    line_.written();
  }

  bool flag_ = false;
  Spinner on2_{flag_, kCpu2};
  Spinner on4_{flag_, kCpu4};
  Spinner on6_{flag_, kCpu6};
};

// ---- single transfers ------------------------------------------------------------------------------------------

TEST_F(CacheLineTest, TheFirstToTouchALineGetsItForNothing) {
  EXPECT_EQ(CacheLine(machine_).load(kCpu0), at(1ns));
  EXPECT_EQ(CacheLine(machine_).store(kCpu0), at(1ns));
  EXPECT_EQ(CacheLine(machine_).atomic(kCpu0), at(10ns));
}

TEST_F(CacheLineTest, AnOwnerHitsItsOwnCache) {
  served(line_.store(kCpu0));
  advance_to(at(1us));
  EXPECT_EQ(line_.load(kCpu0), at(1us + 1ns));
  EXPECT_EQ(line_.store(kCpu0), at(1us + 1ns));
  EXPECT_EQ(line_.atomic(kCpu0), at(1us + 10ns));
}

TEST_F(CacheLineTest, ATransferCostsByDistance) {
  CacheLine near = owned_by(kCpu0);
  CacheLine socket = owned_by(kCpu0);
  CacheLine far = owned_by(kCpu0);
  CacheLine near_load = owned_by(kCpu0);
  CacheLine socket_load = owned_by(kCpu0);
  CacheLine far_load = owned_by(kCpu0);
  advance_to(at(1us));
  EXPECT_EQ(near.store(kSibling), at(1us + 6ns + 1ns));
  EXPECT_EQ(socket.store(kCpu2), at(1us + 200ns + 1ns));
  EXPECT_EQ(far.atomic(kOtherSocket), at(1us + 500ns + 10ns));
  EXPECT_EQ(near_load.load(kSibling), at(1us + 4ns + 1ns));
  EXPECT_EQ(socket_load.load(kCpu2), at(1us + 100ns + 1ns));
  EXPECT_EQ(far_load.load(kOtherSocket), at(1us + 300ns + 1ns));
}

TEST_F(CacheLineTest, ACleanLineIsReadFromItsNearestSharerAndOwnedByTheFarthest) {
  served(line_.load(kCpu0));
  advance_to(at(1us));
  EXPECT_EQ(line_.load(kOtherSocket), at(1us + 250ns + 1ns));
  advance_to(at(2us));
  EXPECT_EQ(line_.load(kCpu2), at(2us + 20ns + 1ns));
  advance_to(at(3us));
  EXPECT_EQ(line_.load(kCpu2), at(3us + 1ns)) << "it has a copy now";
  EXPECT_EQ(line_.store(kCpu2), at(3us + 500ns + 1ns)) << "one copy to invalidate is in the other socket";
  advance_to(at(4us));
  EXPECT_EQ(line_.store(kCpu0), at(4us + 200ns + 1ns)) << "only the last owner has it";
}

// ---- queued requests -------------------------------------------------------------------------------------------

TEST_F(CacheLineTest, TransfersAreServedOneAfterTheOther) {
  served(line_.store(kCpu0));
  advance_to(at(1us));
  EXPECT_EQ(line_.load(kCpu2), at(1us + 100ns + 1ns));
  EXPECT_EQ(line_.load(kCpu4), at(1us + 120ns + 1ns));
  EXPECT_EQ(line_.load(kCpu6), at(1us + 140ns + 1ns));
  EXPECT_EQ(line_.store(kCpu4), at(1us + 140ns + 200ns + 1ns)) << "the copies are invalidated after the last read";
  EXPECT_EQ(line_.load(kCpu6), at(1us + 341ns + 100ns + 1ns));
}

TEST_F(CacheLineTest, OwnershipThatWaitsForAnotherWriterHasItsWayToTheHolderBehindIt) {
  served(line_.store(kCpu0));
  advance_to(at(1us));
  EXPECT_EQ(line_.atomic(kCpu2), at(1us + 210ns));
  EXPECT_EQ(line_.atomic(kCpu4), at(1us + 210ns + 110ns));
  EXPECT_EQ(line_.atomic(kCpu6), at(1us + 210ns + 220ns));
  advance_to(at(1us + 400ns));
  EXPECT_EQ(line_.store(kCpu0), at(1us + 500ns + 101ns)) << "70 ns of its way, until 1500, are not behind it";
}

TEST_F(CacheLineTest, AHolderHitsUntilTheSnoopArrivesAndNotAfter) {
  const SimTime asked = at(1us);
  const SimTime snooped = asked + 100ns;
  for (const Duration before : {Duration(1), Duration(0)}) {
    Engine engine;
    Machine machine(two_sockets(), 16, engine);
    CacheLine line(machine);
    line.store(kCpu0);
    engine.run_until(asked);
    EXPECT_EQ(line.store(kCpu2), asked + 201ns);
    engine.run_until(snooped - before);
    if (before > Duration::zero()) {
      EXPECT_EQ(line.load(kCpu0), snooped - before + 1ns);
      EXPECT_EQ(line.atomic(kCpu0), snooped - before + 10ns);
    } else {
      EXPECT_EQ(line.atomic(kCpu0), asked + 201ns + 100ns + 10ns);
    }
  }
}

TEST_F(CacheLineTest, AReadLeavesTheHolderACleanCopy) {
  served(line_.store(kCpu0));
  advance_to(at(1us));
  EXPECT_EQ(line_.load(kCpu2), at(1us + 101ns));
  advance_to(at(1us + 49ns));
  EXPECT_EQ(line_.atomic(kCpu0), at(1us + 59ns)) << "the snoop is still on its way";
  advance_to(at(1us + 50ns));
  EXPECT_EQ(line_.load(kCpu0), at(1us + 51ns));
  EXPECT_EQ(line_.atomic(kCpu0), at(1us + 100ns + 200ns + 10ns));
}

TEST_F(CacheLineTest, AHolderCompletesTheAccessForWhichItGotTheLine) {
  served(line_.store(kCpu0));
  advance_to(at(1us));
  const SimTime first = line_.atomic(kCpu2);
  EXPECT_EQ(line_.atomic(kCpu4), first + 110ns) << "its snoop waits for the end of the first";
  advance_to(first - Duration(1));
  EXPECT_EQ(line_.load(kCpu2), first - Duration(1) + 1ns);
  advance_to(first);
  EXPECT_EQ(line_.load(kCpu2), first + 110ns + 100ns + 1ns) << "now the other one has it";
}

TEST_F(CacheLineTest, AnAccessThatFollowsAQueuedOneOfTheSameCoreWaitsForItAndHits) {
  served(line_.store(kCpu0));
  advance_to(at(1us));
  EXPECT_EQ(line_.store(kCpu2), at(1us + 201ns));
  EXPECT_EQ(line_.load(kCpu2), at(1us + 201ns));
  EXPECT_EQ(line_.store(kCpu2), at(1us + 201ns));
}

// ---- spinning --------------------------------------------------------------------------------------------------

TEST_F(SpinnersTest, AReleaseInvalidatesTheirCopiesAndTheirReadsQueueUp) {
  served(line_.atomic(kCpu0));
  for (Spinner* spinner : {&on2_, &on4_, &on6_}) line_.watch(*spinner, spinner->pcpu);
  advance_to(at(1us));
  EXPECT_EQ(on2_.sees, std::nullopt);
  write(kCpu0, true);
  EXPECT_EQ(engine_.now(), at(1us + 200ns + 1ns)) << "the copies of the spinners are invalidated first";
  EXPECT_THAT(on2_.sees, Optional(engine_.now() + 100ns + 1ns));
  EXPECT_THAT(on4_.sees, Optional(engine_.now() + 120ns + 1ns));
  EXPECT_THAT(on6_.sees, Optional(engine_.now() + 140ns + 1ns));
  EXPECT_EQ(line_.store(kCpu0), engine_.now() + 1ns) << "not yet snooped";
  advance_to(engine_.now() + 50ns);
  EXPECT_EQ(line_.store(kCpu0), engine_.now() - 50ns + 140ns + 200ns + 1ns) << "the next write waits for the reads";
  for (Spinner* spinner : {&on2_, &on4_, &on6_}) line_.unwatch(*spinner);
  EXPECT_EQ(line_.watchers(), 0u);
}

TEST_F(SpinnersTest, NobodyIsAlwaysFirst) {
  for (Spinner* spinner : {&on2_, &on4_, &on6_}) line_.watch(*spinner, spinner->pcpu);
  std::vector<PcpuId> first;
  for (int k = 0; k < 4; ++k) {
    advance_to(engine_.now() + 1us);
    write(kCpu0, true);
    for (Spinner* spinner : {&on2_, &on4_, &on6_}) {
      if (spinner->sees == engine_.now() + 101ns) first.push_back(spinner->pcpu);
    }
    advance_to(engine_.now() + 1us);
    write(kCpu0, false);
  }
  EXPECT_THAT(first, ElementsAre(kCpu2, kCpu6, kCpu4, kCpu2));
}

TEST_F(SpinnersTest, AWriteThatDoesNotConcernASpinnerMakesItReadAgainAndWait) {
  line_.watch(on2_, on2_.pcpu);
  advance_to(at(1us));
  write(kCpu0, false);
  EXPECT_EQ(on2_.sees, std::nullopt);
  EXPECT_EQ(on2_.losses, 0);
  advance_to(engine_.now() + 50ns);
  EXPECT_EQ(line_.store(kCpu0), engine_.now() + 50ns + 200ns + 1ns) << "its read took the line";
}

TEST_F(SpinnersTest, ASpinnerThatHasNotReadYetLosesWhatAnotherTakesFirst) {
  served(line_.store(kCpu0));
  line_.watch(on2_, on2_.pcpu);
  advance_to(at(1us));
  write(kCpu0, true);
  const SimTime released = engine_.now();
  EXPECT_THAT(on2_.sees, Optional(released + 101ns));
  advance_to(released + 49ns);
  write(kCpu0, false);  // it still has the line
  EXPECT_EQ(on2_.sees, std::nullopt);
  EXPECT_EQ(on2_.losses, 1);
}

TEST_F(SpinnersTest, AStoreThatNobodyWaitsForIsSeenAfterItIsServed) {
  served(line_.store(kCpu0));
  line_.watch(on2_, on2_.pcpu);
  advance_to(at(1us));
  const SimTime done = line_.store(kCpu0);
  flag_ = true;
  line_.written();
  EXPECT_EQ(done, at(1us + 201ns));
  EXPECT_THAT(on2_.sees, Optional(done + 101ns));
}

TEST_F(SpinnersTest, WhoeverIsOffItsPcpuSeesNothingUntilItIsBack) {
  served(line_.store(kCpu0));
  line_.watch(on2_, on2_.pcpu);
  line_.pause(on2_);
  advance_to(at(1us));
  write(kCpu0, true);
  EXPECT_EQ(on2_.sees, std::nullopt);
  advance_to(at(2us));
  line_.resume(on2_, kOtherSocket);
  EXPECT_THAT(on2_.sees, Optional(at(2us + 300ns + 1ns)));
}

TEST_F(SpinnersTest, SomethingBesideTheLineCostsNoTransfer) {
  served(line_.store(kCpu0));
  line_.watch(on2_, on2_.pcpu);
  advance_to(at(1us));
  flag_ = true;
  line_.look_again();
  EXPECT_TRUE(on2_.sees.has_value());
  EXPECT_LE(*on2_.sees, engine_.now());
}

TEST_F(SpinnersTest, WithAtomicsTheyKeepTheLineFromItsOwner) {
  served(line_.atomic(kCpu0));
  for (Spinner* spinner : {&on2_, &on4_}) line_.watch(*spinner, spinner->pcpu);
  advance_to(at(1us));
  line_.queue_atomics_of_watchers();
  // The first invalidates the copies; the others follow from owner to owner.
  EXPECT_EQ(line_.store(kCpu0), at(1us + 210ns + 110ns + 101ns));
}

}  // namespace
}  // namespace vcpusim
