// Dropout alone on CUDA, and the residual sum without a norm after it: dropout(a + bias) +
// residual, as pre-norm layers end, and its backward with the bias's gradient.

#include "models/ops/cuda/cuda_reduce.h"
#include "models/ops/dropout/dropout_residual.h"

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

void dropout_residual_forward(const DropoutResidualForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t n_packs = T * W / kPack;
        add_residual<E, kPack>
            <<<static_cast<unsigned>(ceil_div(n_packs, 256)), 256, 0, as_stream(on.stream)>>>(
                n_packs, static_cast<uint32_t>(W / kPack), Mask(its.dropout), as<E>(its.a),
                as<E>(its.bias), as<E>(its.residual), as<E>(its.y));
      },
      its.a, its.bias, its.residual, its.y);
  check_launch("add_residual");
}

void dropout(const DropoutRows& its, const Launch& on) {
  dropout_residual_forward({.extent = its.extent, .dropout = its.dropout, .a = its.x, .y = its.out},
                           on);
}

void dropout_residual_backward(const DropoutResidualBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const DroppedGradient<E, kPack> source{as<E>(its.dy), as<E>(its.da), Mask(its.dropout)};
        sum_columns<E, kPack>(on, T, W, source, as<E>(its.dbias));
      },
      its.dy, its.da);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::DropoutKernels ferry::ops::kCudaDropout = {
    .dropout = cuda::dropout,
    .dropout_residual_forward = cuda::dropout_residual_forward,
    .dropout_residual_backward = cuda::dropout_residual_backward};
