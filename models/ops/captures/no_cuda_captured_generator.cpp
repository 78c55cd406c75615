// Stands in for cuda_captured_generator.cpp in a build without CUDA: nothing captures there.

#include <fmt/format.h>

#include "models/ops/captures/captured_generator.h"
#include "src/base/error.h"

namespace ferry::ops::gpu {

void seed_captured_generator(const uint64_t*) {
  FERRY_CHECK(false, "built without CUDA");
}

}  // namespace ferry::ops::gpu
