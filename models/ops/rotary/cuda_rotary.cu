// Rotary positions on CUDA, in place on the queries and keys of a packed row. A thread takes the
// same pairs of several heads, so that an angle's sine is computed once for all of them.

#include <algorithm>

#include "models/ops/cuda/cuda_common.h"
#include "models/ops/rotary/rotary.h"

namespace ferry::ops::cuda {
namespace {

constexpr int64_t kThreads = 256;

/** The frequency of each pair. It is a kernel's argument, so that the host's rounding of it is
 * everybody's. */
struct Frequencies {
  float at[kRotaryPairs_max];
};

/** Threads (packs of half a head, heads at a time, tokens of a block). */
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    rotate_heads(int64_t n_tokens,
                 int n_heads,
                 int n_rotated,
                 int half_packs,
                 float direction,
                 const int32_t* __restrict__ position_ids,
                 const __grid_constant__ Frequencies frequencies,
                 T* x) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  if (token >= n_tokens) return;
  const auto position = static_cast<float>(position_ids[token]);
  float cosine[N], sine[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    sincosf(position * frequencies.at[threadIdx.x * N + i], &sine[i], &cosine[i]);
    sine[i] *= direction;
  }
  for (int head = static_cast<int>(threadIdx.y); head < n_rotated;
       head += static_cast<int>(blockDim.y)) {
    const int64_t pack = (token * n_heads + head) * 2 * half_packs + threadIdx.x;
    float first[N], second[N];
    load(x, pack, first);
    load(x, pack + half_packs, second);
#pragma unroll
    for (int i = 0; i < N; i++) {
      const float a = first[i], b = second[i];
      first[i] = a * cosine[i] - b * sine[i];
      second[i] = b * cosine[i] + a * sine[i];
    }
    store(first, x, pack);
    store(second, x, pack + half_packs);
  }
}

void rotate(const Rotate& its, const Launch& on) {
  if (its.T == 0) return;
  const int64_t half = its.head_width / 2;
  expect(its.head_width % 2 == 0 && half <= kRotaryPairs_max, "heads of an even width up to 512",
         static_cast<double>(its.head_width));
  Frequencies of_pairs = {};
  std::copy_n(its.frequencies, half, of_pairs.at);
  with_packs(
      its.type, half,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        constexpr int64_t kHeads_each = 4;
        const int64_t half_packs = half / kPack;
        const int64_t heads = std::min(ceil_div(its.n_rotated, kHeads_each), kThreads / half_packs);
        const int64_t tokens = std::min<int64_t>(kThreads / (half_packs * heads), 64);
        const dim3 block(static_cast<unsigned>(half_packs), static_cast<unsigned>(heads),
                         static_cast<unsigned>(tokens));
        rotate_heads<E, kPack>
            <<<static_cast<unsigned>(ceil_div(its.T, tokens)), block, 0, as_stream(on.stream)>>>(
                its.T, static_cast<int>(its.n_heads), static_cast<int>(its.n_rotated),
                static_cast<int>(half_packs), its.back ? -1.0f : 1.0f, its.position_ids, of_pairs,
                as<E>(its.x));
      },
      its.x);
  check_launch("rotate_heads");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::RotaryKernels ferry::ops::kCudaRotary = {.rotate = cuda::rotate};
