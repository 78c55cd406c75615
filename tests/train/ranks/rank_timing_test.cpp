// Ranks that time the same passes.

#include "src/train/ranks/rank_timing.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "src/comm/thread_comm.h"

namespace ferry::test {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kRanks = 2;

RankTiming timing_of_cpus() {
  return {.intra_op_threads = 1,
          .passes = {.type = DType::f32, .width = 40, .length = 6, .tokens = 24}};
}

/** The times that each rank got. */
std::vector<std::vector<double>> time_all(const RankTiming& timing) {
  auto comms = make_thread_comms(kRanks, std::chrono::minutes(2));
  std::vector<std::vector<double>> seconds(kRanks);
  std::vector<std::jthread> ranks;
  for (size_t rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] { seconds[rank] = time_ranks(*comms[rank], timing, 0); });
  ranks.clear();
  return seconds;
}

TEST(RankTiming, GivesAllRanksTheTimesOfAll) {
  const auto seconds = time_all(timing_of_cpus());
  EXPECT_THAT(seconds[0], SizeIs(kRanks));
  EXPECT_THAT(seconds[0], Each(Gt(0)));
  EXPECT_EQ(seconds[0], seconds[1]);
}

TEST(RankTiming, IsLeftOutWhereAllAreAlike) {
  RankTiming timing = timing_of_cpus();
  timing.only_unlike = true;
  EXPECT_THAT(time_all(timing), Each(IsEmpty()));
}

TEST(RankTiming, IsAMessage) {
  const RankTiming sent = {.uses_gpus = true,
                           .only_unlike = true,
                           .deterministic = false,
                           .intra_op_threads = 3,
                           .gpus = {0, 2},
                           .passes = {DType::bf16, 1024, 128, 4096}};
  const auto heard = timing_in(nlohmann::ordered_json::parse(to_json(sent).dump()));
  ASSERT_TRUE(heard);
  EXPECT_EQ(to_json(*heard), to_json(sent));
  EXPECT_EQ(heard->passes.type, DType::bf16);
  EXPECT_EQ(heard->gpu_of(1), 2);
  EXPECT_FALSE(timing_in({{"exit_code", 0}}));
}

}  // namespace
}  // namespace ferry::test
