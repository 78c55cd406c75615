// The norm tree on a GPU: 64 threads per chunk, one per lane; then one warp adds the chunks in
// order.

#include "simd/cuda/cuda_kernels.h"
#include "simd/cuda/cuda_launch.h"

namespace ferry::simd::cuda {
namespace {

constexpr int kChunksPerBlock = kBlockThreads / static_cast<int>(kNormLanes);

__device__ double canonical(double x) {
  return x != x ? __longlong_as_double(0x7ff8000000000000ll) : x;
}

/** The tree of one chunk of n elements by the 64 threads of a lane group; lane 0 returns the sum.
 * All threads of the block must call it: it synchronises. */
template <class Grad>
__device__ double chunk_sum(const Grad* grad, int64_t n) {
  __shared__ double upper[kChunksPerBlock][32];
  const int lane = threadIdx.x % kNormLanes, group = threadIdx.x / kNormLanes;
  double sum = 0.0;
#pragma unroll 8
  for (int64_t i = lane; i < n; i += kNormLanes) {
    const double g = static_cast<double>(to_float(grad[i]));
    sum = __fma_rn(g, g, sum);
  }
  if (lane >= 32) upper[group][lane - 32] = sum;
  __syncthreads();
  if (lane < 32) {
    sum = __dadd_rn(sum, upper[group][lane]);
    for (int half = 16; half > 0; half /= 2)
      sum = __dadd_rn(sum, __shfl_down_sync(0xffffffffu, sum, half));
  }
  return canonical(sum);
}

template <class Grad>
__global__ void __launch_bounds__(kBlockThreads)
    sum_chunks(const Grad* grads, int64_t n, double* chunk_sums) {
  const int64_t chunk =
      static_cast<int64_t>(blockIdx.x) * kChunksPerBlock + threadIdx.x / kNormLanes;
  const int64_t begin = chunk * kNormChunk;
  // A group past the last chunk only synchronises.
  const int64_t rest = n > begin ? n - begin : 0;
  const double sum = chunk_sum(grads + begin, rest < kNormChunk ? rest : kNormChunk);
  if (rest > 0 && threadIdx.x % kNormLanes == 0) chunk_sums[chunk] = sum;
}

/** One warp adds values in order. What takes time is the chain of additions: each lane has the next
 * values on their way meanwhile. */
__device__ void warp_sum(const double* values, int64_t n, double* out) {
  constexpr int kLanes = 32, kPerLane = 8, kBatch = kLanes * kPerLane;
  __shared__ double batch[kBatch];
  double next[kPerLane];
  const auto fetch = [&](int64_t begin) {
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      const int64_t i = begin + k * kLanes + threadIdx.x;
      next[k] = i < n ? values[i] : 0.0;
    }
  };
  double sum = 0.0;
  fetch(0);
  for (int64_t begin = 0; begin < n; begin += kBatch) {
    __syncwarp();  // the batch before has been added
#pragma unroll
    for (int k = 0; k < kPerLane; ++k)
      batch[k * kLanes + threadIdx.x] = next[k];
    __syncwarp();
    fetch(begin + kBatch);
    const int count = n - begin < kBatch ? static_cast<int>(n - begin) : kBatch;
#pragma unroll 16
    for (int k = 0; k < count; ++k)
      sum = __dadd_rn(sum, batch[k]);
  }
  if (threadIdx.x == 0) *out = canonical(sum);
}

__global__ void __launch_bounds__(32) sum_values(const double* values, int64_t n, double* out) {
  warp_sum(values, n, out);
}

}  // namespace

void sum_in_order(const double* values, int64_t n, double* sum, void* stream) {
  sum_values<<<1, 32, 0, static_cast<cudaStream_t>(stream)>>>(values, n, sum);
  check(cudaGetLastError(), "sum_in_order");
}

void square_sum_chunks(
    const void* grad, DType grad_type, int64_t n, double* chunk_sums, void* stream) {
  const int64_t n_chunks = norm_chunks(n);
  if (n_chunks == 0) return;
  const auto queue = static_cast<cudaStream_t>(stream);
  const auto grid = static_cast<unsigned>((n_chunks + kChunksPerBlock - 1) / kChunksPerBlock);
  with_type(grad_type, "square_sum", [&]<class Grad>(Grad*) {
    sum_chunks<<<grid, kBlockThreads, 0, queue>>>(static_cast<const Grad*>(grad), n, chunk_sums);
  });
  check(cudaGetLastError(), "square_sum");
}

void square_sum(
    const void* grad, DType grad_type, int64_t n, double* sum, double* chunk_sums, void* stream) {
  square_sum_chunks(grad, grad_type, n, chunk_sums, stream);
  sum_in_order(chunk_sums, norm_chunks(n), sum, stream);
}

}  // namespace ferry::simd::cuda
