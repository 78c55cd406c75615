#pragma once
// The activation functions on CUDA, with their derivatives (included from .cu files only). No
// epilogue of cuBLASLt computes them: its GELU is the tanh form, and which bits it gives changes
// with the algorithm that the product's size makes it take.

#include "models/ops/activation_kind.h"
#include "models/ops/cuda/cuda_common.h"

namespace ferry::ops::cuda {

/** An activation function at x, and its derivative there. */
struct Activated {
  float value;
  float slope;
};

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

/** A 16-bit result carries 2e-4, so the quick exponential does for it. */
template <typename T>
__device__ inline float sigmoid(float x) {
  if constexpr (sizeof(T) == 4) {
    return 1.0f / (1.0f + expf(-x));
  } else {
    return __fdividef(1.0f, 1.0f + __expf(-x));
  }
}

/** For elements of type T. */
template <Activation kKind, typename T>
__device__ inline Activated activated(float x) {
  if constexpr (kKind == Activation::gelu) {
    const Normal normal = normal_at<T>(x);
    return {x * normal.cdf, fmaf(x, normal.pdf, normal.cdf)};
  } else if constexpr (kKind == Activation::gelu_tanh) {
    // (1 + tanh u) / 2 is the sigmoid of 2u. Beyond 20 the function is x or 0, and the square of x
    // could overflow.
    constexpr float kTwiceSqrt2_pi = 1.5957691216057308f, kCubic = 0.044715f;
    const float square = fminf(x * x, 400.0f);
    const float s = sigmoid<T>(kTwiceSqrt2_pi * x * fmaf(kCubic, square, 1.0f)), y = x * s;
    return {y, fmaf(y * (1.0f - s), kTwiceSqrt2_pi * fmaf(3 * kCubic, square, 1.0f), s)};
  } else if constexpr (kKind == Activation::relu) {
    return {x < 0 ? 0.0f : x, x > 0 ? 1.0f : 0.0f};
  } else if constexpr (kKind == Activation::silu) {
    const float s = sigmoid<T>(x), y = x * s;
    return {y, fmaf(y, 1.0f - s, s)};
  } else {
    const float s = sigmoid<T>(1.702f * x), y = x * s;
    return {y, fmaf(1.702f, y * (1.0f - s), s)};
  }
}

template <Activation kKind>
struct ActivationIs {
  static constexpr Activation value = kKind;
};

/** Calls work(ActivationIs<kind>). */
template <typename Work>
void with_activation(Activation kind, Work&& work) {
  switch (kind) {
    case Activation::gelu:
      return work(ActivationIs<Activation::gelu>{});
    case Activation::gelu_tanh:
      return work(ActivationIs<Activation::gelu_tanh>{});
    case Activation::relu:
      return work(ActivationIs<Activation::relu>{});
    case Activation::silu:
      return work(ActivationIs<Activation::silu>{});
    case Activation::quick_gelu:
      return work(ActivationIs<Activation::quick_gelu>{});
  }
}

}  // namespace ferry::ops::cuda
