// GPUs that share a run have one plan.

#include "src/train/prepare/machine.h"

#include <gmock/gmock.h>

#include "src/base/bytes.h"

namespace ferry::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CudaProbe gpu_of(const char* name, int64_t free_bytes) {
  return {.usable = true,
          .gpu_name = name,
          .compute_capability = 86,
          .free_bytes = free_bytes,
          .total_bytes = 24 * kGiB};
}

TEST(TakeGpus, OfOneModelKeepTheMemoryOfEach) {
  const CudaProbe alike[] = {gpu_of("RTX 3090", 23 * kGiB), gpu_of("RTX 3090", 20 * kGiB),
                             gpu_of("RTX 3090", 22 * kGiB)};
  Machine machine;
  take_gpus(alike, std::vector{0, 2, 3}, machine);
  EXPECT_EQ(machine.note, "");
  EXPECT_FALSE(machine.has_unlike_gpus);
  ASSERT_EQ(machine.plan.gpus.size(), 3u);
  EXPECT_EQ(machine.plan.gpus[1].free_bytes, 20 * kGiB);
  EXPECT_EQ(machine.plan.gpus[1].taken_bytes, 4 * kGiB);

  const CudaProbe same[] = {alike[0], alike[0]};
  Machine of_same;
  take_gpus(same, std::vector{0, 1}, of_same);
  EXPECT_TRUE(of_same.plan.gpus.empty()) << "each is as the first";
  EXPECT_EQ(of_same.plan.gpu_free_bytes, 23 * kGiB);
}

TEST(TakeGpus, OfUnlikeModelsAreNamed) {
  const CudaProbe unlike[] = {gpu_of("RTX 4090", 23 * kGiB), gpu_of("RTX 3060", 11 * kGiB)};
  Machine machine;
  machine.note = "a note";
  take_gpus(unlike, std::vector{1, 4}, machine);
  EXPECT_TRUE(machine.has_unlike_gpus);
  EXPECT_EQ(machine.device_name, "RTX 4090") << "whose speed the plan knows";
  ASSERT_EQ(machine.plan.gpus.size(), 2u);
  EXPECT_EQ(machine.plan.gpus[1].free_bytes, 11 * kGiB);
  EXPECT_THAT(machine.note,
              AllOf(HasSubstr("a note; the GPUs are of several models (RTX 4090 and RTX 3060"),
                    HasSubstr("GPU 4 has the least memory free (11.00 GiB)")));
}

}  // namespace
}  // namespace ferry::test
