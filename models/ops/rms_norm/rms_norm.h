#pragma once
// RMSNorm on tensors, with the residual sum before it. Tensors are dense, of one type unless said;
// T tokens, W width.

#include <ATen/core/Tensor.h>

#include "models/block.h"

namespace ferry::ops {

/** z = a + residual, y = RMSNorm(z) * weight, with rstd (T) fp32 = 1 / sqrt(mean(z^2) + eps) of
 * each row. Without residual z is a, and undefined here. z or y may be a, z may be residual. */
void residual_rms_norm_forward(const at::Tensor& a,
                               const at::Tensor& residual,
                               const at::Tensor& weight,  // (W)
                               float eps,
                               const at::Tensor& z,
                               at::Tensor& rstd,
                               at::Tensor& y);
/** dz, which is the residual's gradient too, with d_sum (may be undefined) added: the gradient that
 * reaches z past the norm; dweight (W). dz may be dy or d_sum. */
void residual_rms_norm_backward(const at::Tensor& dy,
                                const at::Tensor& z,
                                const at::Tensor& weight,
                                const at::Tensor& rstd,
                                const at::Tensor& d_sum,
                                at::Tensor& dz,
                                at::Tensor& dweight,
                                Scratch& scratch);
/** y again, from the rstd that the forward kept: the same bits. */
void rms_norm_apply(const at::Tensor& z,
                    const at::Tensor& weight,
                    const at::Tensor& rstd,
                    at::Tensor& y);

}  // namespace ferry::ops
