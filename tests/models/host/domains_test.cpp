#include "models/host/schedulers/domains.h"

#include <gtest/gtest.h>

#include "sim/engine.h"

namespace vcpusim {
namespace {

MachineConfig config(std::int64_t sockets, std::int64_t cores, std::int64_t threads) {
  MachineConfig c;
  c.sockets = sockets;
  c.cores_per_socket = cores;
  c.threads_per_core = threads;
  return c;
}

struct Built {
  Built(std::int64_t sockets, std::int64_t cores, std::int64_t threads, std::int64_t pcpus)
      : machine(config(sockets, cores, threads), pcpus, engine), domains(machine) {}
  Engine engine;
  Machine machine;
  Domains domains;
};

TEST(Domains, NestCoresSocketsAndTheMachine) {
  const Built b(2, 4, 2, 16);
  const auto& of_nine = b.domains.of(PcpuId{9});
  ASSERT_EQ(of_nine.size(), 3u);
  EXPECT_EQ(of_nine[0]->level, Domains::Level::kCore);
  EXPECT_EQ(of_nine[0]->span.begin, 8u);
  EXPECT_EQ(of_nine[0]->span.end, 10u);
  EXPECT_FALSE(of_nine[0]->above_another);
  EXPECT_EQ(of_nine[1]->level, Domains::Level::kSocket);
  EXPECT_EQ(of_nine[1]->groups.size(), 4u);
  EXPECT_TRUE(of_nine[1]->above_another);
  EXPECT_EQ(of_nine[2]->level, Domains::Level::kMachine);
  EXPECT_EQ(of_nine[2]->groups.size(), 2u);
  EXPECT_EQ(of_nine[2]->groups[1].begin, 8u);
}

TEST(Domains, LeaveOutLevelsOfOneGroup) {
  EXPECT_TRUE(Built(1, 1, 1, 1).domains.of(PcpuId{0}).empty());
  const Built flat(1, 4, 1, 4);
  ASSERT_EQ(flat.domains.of(PcpuId{2}).size(), 1u);
  EXPECT_EQ(flat.domains.of(PcpuId{2})[0]->level, Domains::Level::kSocket);
}

TEST(Domains, FollowAMachineThatIsUsedInPart) {
  const Built b(4, 10, 1, 32);  // 10, 10, 10 and 2
  const auto& of_last = b.domains.of(PcpuId{31});
  ASSERT_EQ(of_last.size(), 2u);
  EXPECT_EQ(of_last[0]->span.size(), 2u);
  EXPECT_EQ(of_last[1]->groups.size(), 4u);
  EXPECT_EQ(b.domains.socket(PcpuId{31}).begin, 30u);
}

TEST(PcpuMask, FindsTheFirstCommonMemberOfARange) {
  PcpuMask a(130);
  PcpuMask b(130);
  for (const std::uint32_t i : {3u, 63u, 64u, 100u, 129u}) a.insert(i);
  for (const std::uint32_t i : {2u, 64u, 100u, 129u}) b.insert(i);
  EXPECT_EQ(a.first_common(b, {0, 130}), 64u);
  EXPECT_EQ(a.first_common(b, {65, 130}), 100u);
  EXPECT_EQ(a.first_common(b, {101, 129}), 129u);  // none: the end
  EXPECT_EQ(a.first_common(b, {101, 130}), 129u);
  b.erase(129);
  EXPECT_EQ(a.first_common(b, {101, 130}), 130u);
  EXPECT_EQ(a.count(), 5u);
  EXPECT_TRUE(PcpuMask(130).empty());
}

}  // namespace
}  // namespace vcpusim
