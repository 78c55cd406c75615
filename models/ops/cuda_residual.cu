// The residual sum without a norm after it on CUDA: dropout(a + bias) + residual, as pre-norm
// layers end, and its backward with the bias's gradient.

#include "models/ops/cuda_common.h"
#include "models/ops/cuda_reduce.h"

namespace ferry::ops::cuda {
namespace {

template <typename T, int N>
__global__ void __launch_bounds__(256) add_residual(int64_t n_packs,
                                                    uint32_t row_packs,
                                                    Mask mask,
                                                    const T* a,
                                                    const T* __restrict__ bias,
                                                    const T* residual,
                                                    T* y) {
  mask.load_key();
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pack >= n_packs) return;
  float x[N], other[N];
  load(a, pack, x);
  if (bias != nullptr) {
    load(bias, pack % row_packs, other);
#pragma unroll
    for (int i = 0; i < N; i++)
      x[i] += other[i];
  }
  apply_dropout(mask, pack, x);
  if (residual != nullptr) {
    load(residual, pack, other);
#pragma unroll
    for (int i = 0; i < N; i++)
      x[i] += other[i];
  }
  store(x, y, pack);
}

/** A pack of dropout'(dy), stored to da (if not null) on the way. */
template <typename T, int N>
struct DroppedGradient {
  const T* dy;
  T* da;
  Mask mask;

  __device__ void operator()(int64_t, int64_t, int64_t pack, float (&out)[N]) const {
    Mask with_key = mask;
    with_key.load_key();
    load(dy, pack, out);
    apply_dropout(with_key, pack, out);
    if (da != nullptr) store(out, da, pack);
  }
};

}  // namespace

void dropout_residual_forward(void* stream,
                              DType type,
                              int64_t T,
                              int64_t W,
                              Dropout dropout,
                              const void* a,
                              const void* bias,
                              const void* residual,
                              void* y) {
  if (T == 0) return;
  with_packs(
      type, W,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        const int64_t n_packs = T * W / kPack;
        add_residual<E, kPack>
            <<<static_cast<unsigned>(ceil_div(n_packs, 256)), 256, 0, as_stream(stream)>>>(
                n_packs, static_cast<uint32_t>(W / kPack), Mask(dropout), static_cast<const E*>(a),
                static_cast<const E*>(bias), static_cast<const E*>(residual), static_cast<E*>(y));
      },
      a, bias, residual, y);
  check_launch("add_residual");
}

void dropout_residual_backward(void* stream,
                               DType type,
                               int64_t T,
                               int64_t W,
                               Dropout dropout,
                               const void* dy,
                               void* da,
                               void* dbias,
                               void* scratch) {
  with_packs(
      type, W,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        const DroppedGradient<E, kPack> source{static_cast<const E*>(dy), static_cast<E*>(da),
                                               Mask(dropout)};
        sum_columns<E, kPack>(stream, T, W, source, static_cast<E*>(dbias),
                              static_cast<float*>(scratch));
      },
      dy, da);
}

}  // namespace ferry::ops::cuda
