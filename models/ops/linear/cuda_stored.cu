// Tiles of stored matrices on CUDA.

#include <algorithm>

#include "models/core/nested_scales.h"
#include "models/ops/cuda/cuda_common.h"
#include "models/ops/linear/stored.h"
#include "simd/block_formats.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

/** The matrix and the tables that all threads read. */
struct Codes {
  const uint8_t* codes;
  const uint8_t* scales;
  const float* nested;
  int64_t row_bytes, row_scales, first_row, first_column;
  float nf4[16];
};
/** The values of nested scales' codes. */
struct NestedMap {
  float values[256];
};

__device__ int nf4_code(const uint8_t* codes, int64_t column) {
  const int pair = codes[column / 2];
  return column % 2 == 0 ? pair >> 4 : pair & 15;
}

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
  const float* scales = reinterpret_cast<const float*>(from.scales) + row * from.row_scales;
  float x[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int64_t column = first + i;
    if constexpr (kStorage == Storage::int8) {
      x[i] = static_cast<float>(static_cast<int8_t>(codes[column])) * scales[0] * kInt8_step;
    } else {
      x[i] = nf4[nf4_code(codes, column)] * scales[column / kNf4Values_per_scale];
    }
  }
  store(x, out, tile_row * row_packs + pack);
}

/** The same of nested scales. */
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    read_nested_packs(Codes from, NestedMap map, int row_packs, T* out) {
  __shared__ float nf4[16];
  __shared__ float scale_values[256];
  static_assert(kThreads == 256);
  scale_values[threadIdx.x] = map.values[threadIdx.x];
  if (threadIdx.x < 16) nf4[threadIdx.x] = from.nf4[threadIdx.x];
  __syncthreads();
  const auto pack = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (pack >= row_packs) return;
  const int64_t tile_row = blockIdx.x, row = from.first_row + tile_row;
  const int64_t first = from.first_column + int64_t{pack} * N;
  const uint8_t* codes = from.codes + row * from.row_bytes;
  // A pack lies within the values of one scale.
  const int64_t at = row * from.row_scales + first / kNf4Values_per_scale;
  const float scaled = scale_values[from.scales[at]] * from.nested[1 + at / kNested_scales];
  const float scale = scaled + from.nested[0];
  float x[N];
#pragma unroll
  for (int i = 0; i < N; i++)
    x[i] = nf4[nf4_code(codes, first + i)] * scale;
  store(x, out, tile_row * row_packs + pack);
}

/** The same of rows of blocks. */
template <typename Format, typename T, int N>
__global__ void __launch_bounds__(kThreads) read_block_packs(Codes from, int row_packs, T* out) {
  const auto pack = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (pack >= row_packs) return;
  const int64_t tile_row = blockIdx.x, row = from.first_row + tile_row;
  const int64_t first = from.first_column + int64_t{pack} * N;
  // A pack lies within the values of one scale.
  static_assert(simd::kBlockGroup % N == 0);
  const uint8_t* block =
      from.codes + row * from.row_bytes + first / Format::kValues * Format::kBytes;
  const auto in_block = static_cast<int>(first % Format::kValues);
  const simd::BlockScale scale =
      Format::scale(block, in_block / simd::kBlockGroup * simd::kBlockGroup);
  float x[N];
#pragma unroll
  for (int i = 0; i < N; i++)
    x[i] = simd::block_value<Format>(scale, block, in_block + i);
  store(x, out, tile_row * row_packs + pack);
}

template <typename E, int kPack>
void launch(const StoredMatrix& matrix,
            const Codes& from,
            dim3 grid,
            int row_packs,
            E* out,
            cudaStream_t stream) {
  const auto run = [&](auto kernel) {
    kernel<<<grid, kThreads, 0, stream>>>(from, row_packs, out);
  };
  switch (matrix.storage) {
    case Storage::int8:
      return run(read_packs<Storage::int8, E, kPack>);
    case Storage::nf4:
      return run(read_packs<Storage::nf4, E, kPack>);
    case Storage::nf4_nested: {
      NestedMap map;
      std::ranges::copy(nested_map(), map.values);
      read_nested_packs<E, kPack><<<grid, kThreads, 0, stream>>>(from, map, row_packs, out);
      return;
    }
    case Storage::q8_0:
      return run(read_block_packs<simd::BlockQ8_0, E, kPack>);
    case Storage::q4_0:
      return run(read_block_packs<simd::BlockQ4_0, E, kPack>);
    case Storage::q4_1:
      return run(read_block_packs<simd::BlockQ4_1, E, kPack>);
    case Storage::q4_k:
      return run(read_block_packs<simd::BlockQ4_K, E, kPack>);
    case Storage::q6_k:
      return run(read_block_packs<simd::BlockQ6_K, E, kPack>);
    default:
      return run(read_block_packs<simd::BlockMxfp4, E, kPack>);
  }
}

void read_tile(const ReadTile& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  const StoredMatrix& matrix = its.matrix;
  const auto* bytes = as<uint8_t>(its.stored);
  Codes from = {.codes = bytes + matrix.begin,
                .scales = bytes + matrix.scales_begin,
                .nested = reinterpret_cast<const float*>(bytes + matrix.nested_begin),
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
        launch<E, kPack>(matrix, from, grid, row_packs, as<E>(its.out), as_stream(on.stream));
      },
      its.out);
  check_launch("read_packs");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::StoredKernels ferry::ops::kCudaStored = {.read_tile = cuda::read_tile};
