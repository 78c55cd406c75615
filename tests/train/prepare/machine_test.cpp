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

TEST(SmallestGpu, IsPlannedFor) {
  const CudaProbe alike[] = {gpu_of("RTX 3090", 23 * kGiB), gpu_of("RTX 3090", 20 * kGiB),
                             gpu_of("RTX 3090", 22 * kGiB)};
  std::string note;
  EXPECT_EQ(smallest_gpu(alike, std::vector{0, 2, 3}, note).free_bytes, 20 * kGiB);
  EXPECT_EQ(note, "");
}

TEST(SmallestGpu, OfUnlikeModelsIsNamed) {
  const CudaProbe unlike[] = {gpu_of("RTX 4090", 23 * kGiB), gpu_of("RTX 3060", 11 * kGiB)};
  std::string note = "a note";
  const CudaProbe gpu = smallest_gpu(unlike, std::vector{1, 4}, note);
  EXPECT_EQ(gpu.free_bytes, 11 * kGiB);
  EXPECT_EQ(gpu.gpu_name, "RTX 4090") << "whose speed the plan knows";
  EXPECT_THAT(note,
              AllOf(HasSubstr("a note; the GPUs are of several models (RTX 4090 and RTX 3060"),
                    HasSubstr("11.00 GiB free on each, as GPU 4 has")));
}

}  // namespace
}  // namespace ferry::test
