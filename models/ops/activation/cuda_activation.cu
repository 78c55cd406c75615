// An activation function with its bias on CUDA: forward keeps h = a + bias, backward gives dh and
// the bias's gradient in one pass over dg and h. Called by the feed-forward operation.

#include "models/ops/activation/activation.h"
#include "models/ops/cuda/cuda_activations.h"
#include "models/ops/cuda/cuda_reduce.h"

namespace ferry::ops::cuda {
namespace {

template <Activation kKind, typename T, int N>
__global__ void __launch_bounds__(256) bias_activation(
    int64_t n_packs, uint32_t row_packs, const T* a, const T* __restrict__ bias, T* h, T* g) {
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pack >= n_packs) return;
  float x[N], b[N] = {}, y[N];
  load(a, pack, x);
  if (bias != nullptr) load(bias, pack % row_packs, b);
#pragma unroll
  for (int i = 0; i < N; i++) {
    x[i] = rounded<T>(x[i] + b[i]);
    y[i] = activated<kKind, T>(x[i]).value;
  }
  if (bias != nullptr || h != a) store(x, h, pack);
  store(y, g, pack);
}

/** Backward of one pack; what sum_columns adds up is dh. */
template <Activation kKind, typename T, int N>
struct BackwardPacks {
  const T* dg;
  const T* h;
  T* dh;
  T* g;

  __device__ void operator()(int64_t, int64_t, int64_t pack, float (&out)[N]) const {
    float x[N], dy[N], y[N];
    load(dg, pack, dy);
    load(h, pack, x);
#pragma unroll
    for (int i = 0; i < N; i++) {
      const Activated at = activated<kKind, T>(x[i]);
      out[i] = dy[i] * at.slope;
      y[i] = at.value;
    }
    store(out, dh, pack);
    if (g != nullptr) store(y, g, pack);
  }
};

/** The backward where no column sum is wanted. */
template <Activation kKind, typename T, int N>
__global__ void __launch_bounds__(256)
    activation_grad(int64_t n_packs, BackwardPacks<kKind, T, N> backward) {
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pack >= n_packs) return;
  float d[N];
  backward(0, 0, pack, d);
}

void activation_forward(const ActivationForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_activation(its.kind, [&]<Activation kKind>(ActivationIs<kKind>) {
    with_packs(
        type, W,
        [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
          const int64_t n_packs = T * W / kPack;
          bias_activation<kKind, E, kPack>
              <<<ceil_div(n_packs, 256), 256, 0, as_stream(on.stream)>>>(
                  n_packs, static_cast<uint32_t>(W / kPack), as<E>(its.a), as<E>(its.bias),
                  as<E>(its.h), as<E>(its.g));
        },
        its.a, its.bias, its.h, its.g);
  });
  check_launch("bias_activation");
}

void activation_backward(const ActivationBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0 && its.dbias == nullptr) return;
  with_activation(its.kind, [&]<Activation kKind>(ActivationIs<kKind>) {
    with_packs(
        type, W,
        [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
          const BackwardPacks<kKind, E, kPack> source{as<E>(its.dg), as<E>(its.h), as<E>(its.dh),
                                                      as<E>(its.g)};
          if (its.dbias != nullptr)
            return sum_columns<E, kPack>(on, T, W, source, as<E>(its.dbias));
          const int64_t n_packs = T * W / kPack;
          activation_grad<kKind, E, kPack>
              <<<ceil_div(n_packs, 256), 256, 0, as_stream(on.stream)>>>(n_packs, source);
          check_launch("activation_grad");
        },
        its.dg, its.h, its.dh, its.dbias, its.g);
  });
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::ActivationKernels ferry::ops::kCudaActivation = {
    .activation_forward = cuda::activation_forward,
    .activation_backward = cuda::activation_backward};
