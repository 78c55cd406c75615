// The build without CUDA: the same header, no GPU, a clear error.

#include <gtest/gtest.h>

#include "simd/cuda/cuda_kernels.h"
#include "src/base/error.h"

namespace ferry::simd {
namespace {

TEST(NoCudaKernels, SaySo) {
  EXPECT_FALSE(cuda::is_available());
  try {
    cuda::update({}, nullptr);
    ADD_FAILURE() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::machine);
    EXPECT_NE(std::string(error.what()).find("no CUDA kernels"), std::string::npos);
  }
}

}  // namespace
}  // namespace ferry::simd
