// GELU (exact form) with its bias on CUDA: forward keeps h = a + bias, backward gives dh and the
// bias's gradient in one pass over dg and h. Called by the feed-forward operation. No epilogue of
// cuBLASLt: its GELU is the tanh form, up to 4e-4 beside BERT's, and which bits it gives changes
// with the algorithm that the product's size makes it take.

#include "models/ops/cuda/cuda_reduce.h"
#include "models/ops/gelu/gelu.h"

namespace ferry::ops::cuda {
namespace {

constexpr float kInvSqrt2Pi = 0.3989422804014327f;

/** The normal distribution at x: cdf(x) and pdf(x). gelu = x cdf, its derivative cdf + x pdf. */
struct Normal {
  float cdf;
  float pdf;
};

template <typename T>
__device__ inline Normal normal_at(float x) {
  if constexpr (sizeof(T) == 4) {
    return {0.5f * erfcf(x * -0.7071067811865476f), kInvSqrt2Pi * expf(-0.5f * x * x)};
  } else {
    // This needs no branch and uses the exponential that both need: cdf(-u) = exp(-u^2/2) q(1/(1 +
    // 0.36u)), q a polynomial fitted to 9e-7 relative over u in [0, 14]; a 16-bit result carries
    // 2e-4.
    const float u = fabsf(x);
    const float t = __fdividef(1.0f, fmaf(0.36f, u, 1.0f));
    const float e = exp2f(x * x * -0.7213475204444817f);
    float q = 0.047056208509f;
    q = fmaf(q, t, -0.179764433638f);
    q = fmaf(q, t, 0.180953674254f);
    q = fmaf(q, t, 0.026549549113f);
    q = fmaf(q, t, 0.139719187501f);
    q = fmaf(q, t, 0.141772466341f);
    q = fmaf(q, t, 0.143713044656f);
    const float tail = q * t * e;
    return {x < 0 ? tail : 1.0f - tail, kInvSqrt2Pi * e};
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(256) bias_gelu(
    int64_t n_packs, uint32_t row_packs, const T* a, const T* __restrict__ bias, T* h, T* g) {
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pack >= n_packs) return;
  float x[N], b[N], y[N];
  load(a, pack, x);
  load(bias, pack % row_packs, b);
#pragma unroll
  for (int i = 0; i < N; i++) {
    x[i] = rounded<T>(x[i] + b[i]);
    y[i] = x[i] * normal_at<T>(x[i]).cdf;
  }
  store(x, h, pack);
  store(y, g, pack);
}

/** Backward of one pack; what sum_columns adds up is dh. */
template <typename T, int N>
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
      const Normal normal = normal_at<T>(x[i]);
      out[i] = dy[i] * fmaf(x[i], normal.pdf, normal.cdf);
      y[i] = x[i] * normal.cdf;
    }
    store(out, dh, pack);
    if (g != nullptr) store(y, g, pack);
  }
};

void bias_gelu_forward(const GeluForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t n_packs = T * W / kPack;
        bias_gelu<E, kPack><<<ceil_div(n_packs, 256), 256, 0, as_stream(on.stream)>>>(
            n_packs, static_cast<uint32_t>(W / kPack), as<E>(its.a), as<E>(its.bias), as<E>(its.h),
            as<E>(its.g));
      },
      its.a, its.bias, its.h, its.g);
  check_launch("bias_gelu");
}

void gelu_backward(const GeluBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const BackwardPacks<E, kPack> source{as<E>(its.dg), as<E>(its.h), as<E>(its.dh),
                                             as<E>(its.g)};
        sum_columns<E, kPack>(on, T, W, source, as<E>(its.dbias));
      },
      its.dg, its.h, its.dh, its.dbias, its.g);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::GeluKernels ferry::ops::kCudaGelu = {.bias_gelu_forward = cuda::bias_gelu_forward,
                                                       .gelu_backward = cuda::gelu_backward};
