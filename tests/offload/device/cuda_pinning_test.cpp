// The driver keeps the error of a refused call until somebody asks: the next launch would be blamed
// for it. A refused pin, and a refused unpin, leave none behind.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "offload/device/cuda/cuda_memory.h"
#include "offload/device/host/mapped_pages.h"
#include "src/base/bytes.h"

namespace ferry::test {
namespace {

TEST(CudaPinning, ARefusedPinLeavesNoErrorBehind) {
  if (const CudaProbe probe = probe_cuda(); !probe.usable)
    GTEST_SKIP() << "no CUDA device: " << probe.why_not;
  constexpr int64_t kBytes = 8 * kMiB;
  const auto device = make_cuda_device();
  const MappedPages pages(kBytes, "pages of a test", "free some memory");
  std::fill_n(pages.data(), kBytes, std::byte{3});
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);

  const auto pinned = make_cuda_pinning(INT64_MAX);
  pinned->add(pages.data(), {0, kBytes});
  ASSERT_EQ(pinned->bytes().pinned, kBytes);
  {
    // The driver pins no page twice.
    const auto refused = make_cuda_pinning(INT64_MAX);
    refused->add(pages.data(), {0, kBytes});
    EXPECT_TRUE(refused->has_ring());
    EXPECT_EQ(refused->bytes().unpinned, kBytes);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);

  // The pages that were pinned first still are, and copies go there and back.
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pages.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  const auto on_gpu = allocate_gpu<std::byte>(kBytes);
  std::vector<std::byte> back(kBytes);
  FERRY_CUDA(cudaMemcpy(on_gpu.get(), pages.data(), kBytes, cudaMemcpyHostToDevice));
  FERRY_CUDA(cudaMemcpy(back.data(), on_gpu.get(), kBytes, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::ranges::equal(back, std::vector<std::byte>(kBytes, std::byte{3})));

  FERRY_CUDA(cudaHostUnregister(pages.data()));
  pinned->remove(pages.data());  // refused: nothing is pinned there any more
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  FERRY_CUDA(cudaMemset(on_gpu.get(), 5, kBytes));  // a kernel of the driver's
  FERRY_CUDA(cudaMemcpy(back.data(), on_gpu.get(), kBytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(back.front(), std::byte{5});
  EXPECT_EQ(back.back(), std::byte{5});
}

/** A context takes half a GiB of a GPU. */
TEST(OnDevice, LeavesNoContextOnTheGpuBefore) {
  int n_gpus = 0;
  if (cudaGetDeviceCount(&n_gpus) != cudaSuccess || n_gpus < 2) GTEST_SKIP() << "wants two GPUs";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto use_second_gpu = [] {
    {
      const OnDevice on_second(1);
      cudaFree(nullptr);
    }
    std::exit(has_context(1) && !has_context(0) ? 0 : 1);
  };
  EXPECT_EXIT(use_second_gpu(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ferry::test
