#pragma once
// Code that the CUDA kernels of models/ops share (included from .cu files only): vectors of 16
// bytes of each element type, conversion to and from fp32, the dropout mask, reductions in a warp,
// and the choice of a kernel's instance by type and alignment.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "models/ops/cuda/cuda_checks.h"
#include "models/ops/dropout_mask.h"
#include "models/ops/operation.h"
#include "simd/philox.h"
#include "src/base/dtype.h"

namespace ferry::ops::cuda {

constexpr int kWarp = 32;

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__half x) {
  return __half2float(x);
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline void store_rounded(float x, float& out) {
  out = x;
}
__device__ inline void store_rounded(float x, __half& out) {
  out = __float2half_rn(x);
}
__device__ inline void store_rounded(float x, __nv_bfloat16& out) {
  out = __float2bfloat16_rn(x);
}

/** N elements moved by one access. */
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T at[N];
};

template <typename T, int N>
__device__ inline void load(const T* from, int64_t pack, float (&to)[N]) {
  const auto packed = reinterpret_cast<const Pack<T, N>*>(from)[pack];
#pragma unroll
  for (int i = 0; i < N; i++)
    to[i] = to_float(packed.at[i]);
}

template <typename T, int N>
__device__ inline void store(const float (&from)[N], T* to, int64_t pack) {
  Pack<T, N> packed;
#pragma unroll
  for (int i = 0; i < N; i++)
    store_rounded(from[i], packed.at[i]);
  reinterpret_cast<Pack<T, N>*>(to)[pack] = packed;
}

/** The value that a store leaves in memory, as fp32. */
template <typename T>
__device__ inline float rounded(float x) {
  T stored;
  store_rounded(x, stored);
  return to_float(stored);
}

/** Dropout as a kernel wants it. */
struct Mask {
  uint64_t key = 0;
  const uint64_t* key_at = nullptr;
  int64_t first_element = 0;
  uint32_t threshold = 0;
  float scale = 1;
  bool on = false;

  explicit Mask(Dropout dropout)
      : key(dropout.key),
        key_at(dropout.key_at),
        first_element(dropout.first_element),
        threshold(simd::dropout_threshold(dropout.p)),
        scale(simd::dropout_scale(dropout.p)),
        on(dropout.p > 0) {
    expect(dropout.p >= 0 && dropout.p < 1, "0 <= dropout p < 1", dropout.p);
  }

  /** First thing in a kernel. */
  __device__ void load_key() {
    if (on && key_at != nullptr) key = *key_at;
  }
};

/** x[i] = dropped or scaled, for the N elements from index pack * N on. Packs fill rows, and the
 * mask begins with one. */
template <int N>
__device__ inline void apply_dropout(const Mask& mask, int64_t pack, float (&x)[N]) {
  if (!mask.on) return;
  pack += mask.first_element / N;
  if constexpr (N == 1) {
    const uint32_t word = simd::philox_element(pack, mask.key);
    x[0] = word >= mask.threshold ? x[0] * mask.scale : 0.0f;
  } else {
    static_assert(N % 4 == 0);
#pragma unroll
    for (int group = 0; group < N / 4; group++) {
      const simd::PhiloxWords words = simd::philox(pack * (N / 4) + group, mask.key);
#pragma unroll
      for (int lane = 0; lane < 4; lane++) {
        float& value = x[group * 4 + lane];
        value = words.word[lane] >= mask.threshold ? value * mask.scale : 0.0f;
      }
    }
  }
}

/** The sum over the warp, in every lane. */
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFu, x, distance);
  }
  return x;
}

inline cudaStream_t as_stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

/** The address of elements. */
template <typename T>
const T* as(const void* data) {
  return static_cast<const T*>(data);
}
template <typename T>
T* as(void* data) {
  return static_cast<T*>(data);
}

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/** Throws the error that CUDA returned, after a launch or a call. */
inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) launch_failed(what, cudaGetErrorString(error));
}
inline void check_launch(const char* kernel) {
  check_cuda(cudaGetLastError(), kernel);
}

/** Zero bytes. */
inline void zero(const Launch& on, void* data, int64_t n_bytes) {
  if (n_bytes == 0) return;
  check_cuda(cudaMemsetAsync(data, 0, static_cast<size_t>(n_bytes), as_stream(on.stream)),
             "cudaMemsetAsync");
}

template <typename T>
struct TypeIs {
  using type = T;
};

/** Calls work(TypeIs<element type>). */
template <typename Work>
void with_type(DType type, Work&& work) {
  switch (type) {
    case DType::f32:
      return work(TypeIs<float>{});
    case DType::f16:
      return work(TypeIs<__half>{});
    case DType::bf16:
      return work(TypeIs<__nv_bfloat16>{});
    default:
      expect(false, "type f32, f16 or bf16", static_cast<double>(type));
  }
}

template <int N>
struct IntIs {
  static constexpr int value = N;
};

/** True when rows of `width` elements at all these addresses can be moved 16 bytes at a time. */
template <typename... Pointers>
bool is_vectorisable(DType type, int64_t width, const Pointers*... pointers) {
  const bool aligned = ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
  return aligned && width * static_cast<int64_t>(size_of(type)) % 16 == 0;
}

/** Calls work(TypeIs<element type>, IntIs<elements an access>). */
template <typename Work, typename... Pointers>
void with_packs(DType type, int64_t width, Work&& work, const Pointers*... pointers) {
  const bool vectorised = is_vectorisable(type, width, pointers...);
  with_type(type, [&](auto element) {
    using T = typename decltype(element)::type;
    if (vectorised) {
      work(element, IntIs<16 / sizeof(T)>{});
    } else {
      work(element, IntIs<1>{});
    }
  });
}

}  // namespace ferry::ops::cuda
