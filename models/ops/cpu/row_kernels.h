#pragma once
// One row of fp32 at a time: the arithmetic of the operations on the CPU (their cpu_*.cpp spread
// rows over threads and convert 16-bit types). Compiled twice, for baseline x86-64 and for AVX2,
// with the same bits: 8 lanes, no fused multiply-add, sums in a fixed order.

#include <cstdint>

#include "models/ops/activation_kind.h"

namespace ferry::ops {

/** All rows have n elements; `keep` holds 1 or 0 per element, or is null for no dropout; pointers
 * marked "or null" are optional. Outputs may be the input of the same shape. */
struct RowKernels {
  /** z = dropout(a + bias) + residual. bias, residual or null. */
  void (*combine)(float* z,
                  const float* a,
                  const float* bias,
                  const float* residual,
                  const uint8_t* keep,
                  float keep_scale,
                  int64_t n);
  /** mean and 1 / sqrt(variance + eps), in two passes. */
  void (*moments)(const float* z, int64_t n, float eps, float* mean, float* rstd);
  /** y = dropout((z - mean) * rstd * gamma + beta). */
  void (*normalise)(float* y,
                    const float* z,
                    float mean,
                    float rstd,
                    const float* gamma,
                    const float* beta,
                    const uint8_t* keep,
                    float keep_scale,
                    int64_t n);
  /** dz of normalise, plus d_sum (or null); dgamma and dbeta are added to. */
  void (*norm_backward)(float* dz,
                        const float* dy,
                        const float* z,
                        float mean,
                        float rstd,
                        const float* gamma,
                        const float* d_sum,
                        const uint8_t* keep,
                        float keep_scale,
                        float* dgamma,
                        float* dbeta,
                        int64_t n);
  /** da = dz * keep * keep_scale, dbias += da. dbias or null. */
  void (*combine_backward)(
      float* da, const float* dz, const uint8_t* keep, float keep_scale, float* dbias, int64_t n);
  /** h = a + bias. */
  void (*add_bias)(float* h, const float* a, const float* bias, int64_t n);
  /** g = f(h), by Activation. */
  void (*activate[kActivations])(float* g, const float* h, int64_t n);
  /** dh = dg * f'(h), dbias += dh, g = f(h). dbias, g or null. */
  void (*activate_backward[kActivations])(
      float* dh, float* g, const float* dg, const float* h, float* dbias, int64_t n);
  /** sum += x. */
  void (*add)(float* sum, const float* x, int64_t n);
  /** p = softmax(scale * s), stored as -p where dropped; dropped = p * keep * keep_scale (untouched
   * when keep is null). p may be s. scale > 0. */
  void (*softmax)(float* p,
                  float* dropped,
                  const float* s,
                  float scale,
                  const uint8_t* keep,
                  float keep_scale,
                  int64_t n);
  /** Computes ds (may be d_dropped), and `dropped` again, from p as softmax stored it. */
  void (*softmax_backward)(float* ds,
                           float* dropped,
                           const float* p,
                           const float* d_dropped,
                           float scale,
                           float keep_scale,
                           int64_t n);
  /** Takes n more logits of a row into its running largest, sum of exp(x - largest), and plain sum.
   */
  void (*take_logits)(const float* x, int64_t n, float* largest, float* sum_exp, float* sum);
  /** d = (exp(x - lse) - uniform) * factor. d may be x. */
  void (*logits_backward)(
      float* d, const float* x, float lse, float uniform, float factor, int64_t n);
  /** x = cap * tanh(scale * x / cap). */
  void (*soft_cap)(float* x, float scale, float cap, int64_t n);
  /** d, the gradient of what soft_cap gave, becomes that of what it took. */
  void (*soft_cap_backward)(float* d, const float* capped, float scale, float cap, int64_t n);
  /** 1 / sqrt(mean of the squares + eps). */
  float (*root_mean_square)(const float* z, int64_t n, float eps);
  /** y = z * rstd * weight. */
  void (*rms_normalise)(float* y, const float* z, float rstd, const float* weight, int64_t n);
  /** dz of rms_normalise, plus d_sum (or null); dweight is added to. */
  void (*rms_backward)(float* dz,
                       const float* dy,
                       const float* z,
                       float rstd,
                       const float* weight,
                       const float* d_sum,
                       float* dweight,
                       int64_t n);
  /** Cosine and sine of position * frequency (rounded to fp32 first); |the product| < 2^20. */
  void (*angles)(float* cos, float* sin, const float* frequency, float position, int64_t n);
  /** Rotates n pairs (x[i], x[i + n]) in place by the angles, or back. */
  void (*rotate)(float* x, const float* cos, const float* sin, bool back, int64_t n);
  /** The same of n pairs (x[2 i], x[2 i + 1]). */
  void (*rotate_neighbours)(float* x, const float* cos, const float* sin, bool back, int64_t n);
  /** out = f(gate) * up, by Activation. */
  void (*gate[kActivations])(float* out, const float* gate, const float* up, int64_t n);
  /** out = f(gate) * up again, or null. Outputs may be inputs. */
  void (*gate_backward[kActivations])(float* d_gate,
                                      float* d_up,
                                      float* out,
                                      const float* d_out,
                                      const float* gate,
                                      const float* up,
                                      int64_t n);
};

/** The kernels for the instruction set that simd::level() names; AVX-512 machines run the AVX2
 * form. */
const RowKernels& row_kernels();

const RowKernels& row_kernels_baseline();
const RowKernels& row_kernels_avx2();

}  // namespace ferry::ops
