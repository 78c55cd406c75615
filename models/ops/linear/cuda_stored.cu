// Parts of stored matrices on CUDA.

#include <algorithm>

#include "models/ops/cuda/cuda_common.h"
#include "models/ops/linear/stored.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

/** The matrix and the table that all threads read. */
struct Codes {
  const uint8_t* codes;
  const float* scales;
  int64_t row_bytes, row_scales, first_row, first_column;
  float nf4[16];
};

/** blockIdx.x = row of the tile, blockIdx.y = kThreads packs of it. */
template <Storage kStorage, typename T, int N>
__global__ void __launch_bounds__(kThreads) read_packs(Codes from, int row_packs, T* out) {
  __shared__ float nf4[16];
  if constexpr (kStorage == Storage::nf4) {
    if (threadIdx.x < 16) nf4[threadIdx.x] = from.nf4[threadIdx.x];
    __syncthreads();
  }
  const auto pack = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (pack >= row_packs) return;
  const int64_t tile_row = blockIdx.x, row = from.first_row + tile_row;
  const int64_t first = from.first_column + int64_t{pack} * N;
  const uint8_t* codes = from.codes + row * from.row_bytes;
  const float* scales = from.scales + row * from.row_scales;
  float x[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int64_t column = first + i;
    if constexpr (kStorage == Storage::int8) {
      x[i] = static_cast<float>(static_cast<int8_t>(codes[column])) * scales[0] * kInt8_step;
    } else {
      const int pair = codes[column / 2];
      x[i] = nf4[column % 2 == 0 ? pair >> 4 : pair & 15] * scales[column / kNf4Values_per_scale];
    }
  }
  store(x, out, tile_row * row_packs + pack);
}

void read_tile(const ReadTile& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  const StoredMatrix& matrix = its.matrix;
  const auto* codes = as<uint8_t>(its.stored);
  Codes from = {.codes = codes,
                .scales = reinterpret_cast<const float*>(codes + matrix.scales_begin),
                .row_bytes = matrix.row_bytes,
                .row_scales = matrix.row_scales,
                .first_row = its.first_row,
                .first_column = its.first_column,
                .nf4 = {}};
  std::copy(kNf4.begin(), kNf4.end(), from.nf4);
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const auto row_packs = static_cast<int>(W / kPack);
        const dim3 grid(static_cast<unsigned>(T),
                        static_cast<unsigned>(ceil_div(row_packs, kThreads)));
        const auto kernel = matrix.storage == Storage::nf4 ? read_packs<Storage::nf4, E, kPack>
                                                           : read_packs<Storage::int8, E, kPack>;
        kernel<<<grid, kThreads, 0, as_stream(on.stream)>>>(from, row_packs, as<E>(its.out));
      },
      its.out);
  check_launch("read_packs");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::StoredKernels ferry::ops::kCudaStored = {.read_tile = cuda::read_tile};
