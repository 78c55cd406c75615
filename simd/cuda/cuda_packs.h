#pragma once
// Private to simd/'s .cu files: element-wise operations on packs of four elements, or on single
// ones where a pointer is not aligned for four.

#include "simd/cuda/cuda_launch.h"

namespace ferry::simd::cuda {

template <class T, int kPack>
struct alignas(kPack * sizeof(T)) Pack {
  T x[kPack];
};

template <int kPack, class T>
__device__ Pack<T, kPack> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kPack>*>(from);
}
template <int kPack, class T>
__device__ void store_pack(T* to, const Pack<T, kPack>& pack) {
  *reinterpret_cast<Pack<T, kPack>*>(to) = pack;
}

/** op.run<kPack>(first element) for every whole pack, then op.run<1> for the rest. */
template <int kPack, class Op>
__global__ void __launch_bounds__(kBlockThreads) over_packs(Op op, int64_t n) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  const int64_t n_threads = static_cast<int64_t>(gridDim.x) * kBlockThreads;
  const int64_t n_packs = n / kPack;
  for (int64_t pack = thread; pack < n_packs; pack += n_threads)
    op.template run<kPack>(pack * kPack);
  const int64_t rest = n_packs * kPack + thread;
  if (rest < n) op.template run<1>(rest);
}

/** True if `pointer` is aligned for packs of four T, or null: nothing is there. */
template <class T>
bool fits_packs(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % (4 * sizeof(T)) == 0;
}

template <class Op>
void launch(const Op& op, int64_t n, bool packs, void* stream, const char* name) {
  if (n <= 0) return;
  const int64_t n_work = packs ? (n + 3) / 4 : n;
  const int64_t n_blocks = (n_work + kBlockThreads - 1) / kBlockThreads;
  constexpr int64_t kMaxBlocks = int64_t{1} << 20;
  const auto grid = static_cast<unsigned>(n_blocks < kMaxBlocks ? n_blocks : kMaxBlocks);
  const auto queue = static_cast<cudaStream_t>(stream);
  if (packs) {
    over_packs<4><<<grid, kBlockThreads, 0, queue>>>(op, n);
  } else {
    over_packs<1><<<grid, kBlockThreads, 0, queue>>>(op, n);
  }
  check(cudaGetLastError(), name);
}

}  // namespace ferry::simd::cuda
