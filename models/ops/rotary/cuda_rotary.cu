// Rotary positions on CUDA, in place on the queries and keys of a packed row. A thread takes the
// same pairs of several heads, so that an angle's sine is computed once for all of them.

#include <algorithm>
#include <numeric>

#include "models/core/long_position.h"
#include "models/ops/cuda/cuda_common.h"
#include "models/ops/rotary/rotary.h"

namespace ferry::ops::cuda {
namespace {

constexpr int64_t kThreads = 256;

/** The frequency of each pair, then those of positions with kLongPosition. They are a kernel's
 * argument, so that the host's rounding of them is everybody's. */
struct Frequencies {
  float at[2][kRotaryPairs_max];
};

/** Threads (packs of half of what is rotated of a head, heads at a time, tokens of a block). */
template <bool kInterleaved, typename T, int N>
__global__ void __launch_bounds__(kThreads)
    rotate_heads(int64_t n_tokens,
                 int n_heads,
                 int n_rotated,
                 int head_packs,
                 int half_packs,
                 float factor,
                 float direction,
                 const int32_t* __restrict__ position_ids,
                 const __grid_constant__ Frequencies frequencies,
                 T* x) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  if (token >= n_tokens) return;
  const int32_t id = position_ids[token];
  const int is_long = (id & kLongPosition) != 0;
  const auto position = static_cast<float>(id & ~kLongPosition);
  float cosine[N], sine[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    sincosf(position * frequencies.at[is_long][threadIdx.x * N + i], &sine[i], &cosine[i]);
    cosine[i] *= factor;
    sine[i] *= direction;
  }
  for (int head = static_cast<int>(threadIdx.y); head < n_rotated;
       head += static_cast<int>(blockDim.y)) {
    const int64_t begin = (token * n_heads + head) * head_packs;
    const int64_t pack = begin + (kInterleaved ? 2 * threadIdx.x : threadIdx.x);
    const int64_t other = pack + (kInterleaved ? 1 : half_packs);
    float parts[2][N];
    load(x, pack, parts[0]);
    load(x, other, parts[1]);
#pragma unroll
    for (int i = 0; i < N; i++) {
      float& first = kInterleaved ? parts[2 * i / N][2 * i % N] : parts[0][i];
      float& second = kInterleaved ? parts[(2 * i + 1) / N][(2 * i + 1) % N] : parts[1][i];
      const float a = first, b = second;
      first = a * cosine[i] - b * sine[i];
      second = b * cosine[i] + a * sine[i];
    }
    store(parts[0], x, pack);
    store(parts[1], x, other);
  }
}

void rotate(const Rotate& its, const Launch& on) {
  if (its.T == 0) return;
  const int64_t half = its.n_pairs;
  expect(half > 0 && half <= kRotaryPairs_max, "up to 256 pairs of a head",
         static_cast<double>(half));
  Frequencies of_pairs = {};
  std::copy_n(its.frequencies, half, of_pairs.at[0]);
  if (its.long_frequencies) std::copy_n(its.long_frequencies, half, of_pairs.at[1]);
  with_packs(
      its.type, std::gcd(half, its.head_width),
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        constexpr int64_t kHeads_each = 4;
        const int64_t half_packs = half / kPack;
        const int64_t heads = std::min(ceil_div(its.n_rotated, kHeads_each), kThreads / half_packs);
        const int64_t tokens = std::min<int64_t>(kThreads / (half_packs * heads), 64);
        const dim3 block(static_cast<unsigned>(half_packs), static_cast<unsigned>(heads),
                         static_cast<unsigned>(tokens));
        const auto kernel =
            its.interleaved ? rotate_heads<true, E, kPack> : rotate_heads<false, E, kPack>;
        kernel<<<static_cast<unsigned>(ceil_div(its.T, tokens)), block, 0, as_stream(on.stream)>>>(
            its.T, static_cast<int>(its.n_heads), static_cast<int>(its.n_rotated),
            static_cast<int>(its.head_width / kPack), static_cast<int>(half_packs), its.factor,
            its.back ? -its.factor : its.factor, its.position_ids, of_pairs, as<E>(its.x));
      },
      its.x);
  check_launch("rotate_heads");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::RotaryKernels ferry::ops::kCudaRotary = {.rotate = cuda::rotate};
