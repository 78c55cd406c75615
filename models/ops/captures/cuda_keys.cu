#include "models/ops/captures/cuda_keys.h"

#include "models/ops/cuda/cuda_common.h"

namespace ferry::ops::cuda {
namespace {

struct Keys {
  uint64_t at[kKeys_max];
};

__global__ void store(Keys keys, int n, uint64_t* to) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < n) to[i] = keys.at[i];
}

}  // namespace

void store_keys(void* stream, const uint64_t* keys, int n, uint64_t* to) {
  expect(n > 0 && n <= kKeys_max, "0 < n <= kKeys_max", n);
  Keys held{};
  for (int i = 0; i < n; i++)
    held.at[i] = keys[i];
  store<<<1, kKeys_max, 0, as_stream(stream)>>>(held, n, to);
  check_launch("store_keys");
}

}  // namespace ferry::ops::cuda
