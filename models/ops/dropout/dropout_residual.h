#pragma once
// Dropout, alone and with the residual sum that pre-norm layers end with.

#include "models/ops/dropout_mask.h"
#include "models/ops/operation.h"

namespace ferry::ops {

/** out = dropout(x), on the forward's input as on the backward's gradient. out may be x. */
struct DropoutRows {
  Extent extent;
  Dropout dropout;
  const void* x = nullptr;  // (T, W)
  void* out = nullptr;      // (T, W)
};

/** y = dropout(a + bias) + residual. y may be a or residual. */
struct DropoutResidualForward {
  Extent extent;
  Dropout dropout;
  const void* a = nullptr;         // (T, W)
  const void* bias = nullptr;      // (W) or null
  const void* residual = nullptr;  // (T, W)
  void* y = nullptr;               // (T, W)
};

/** da = dropout'(dy) and its column sum dbias. da may be dy. Scratch: column_sum_scratch_bytes. */
struct DropoutResidualBackward {
  Extent extent;
  Dropout dropout;
  const void* dy = nullptr;  // (T, W)
  void* da = nullptr;        // (T, W), or null when p == 0: it is dy
  void* dbias = nullptr;     // (W)
};

struct DropoutKernels {
  Kernel<DropoutRows> dropout;
  Kernel<DropoutResidualForward> dropout_residual_forward;
  Kernel<DropoutResidualBackward> dropout_residual_backward;
};
extern const DropoutKernels kCpuDropout, kCudaDropout;

/** The dropout of one operation of a block in its micro-batch, of a tensor with so many columns and
 * a row for each token. */
Dropout dropout_of(const RandomKey& key, int operation, float p, int64_t columns);

/** The same on tensors, undefined standing for null. */
void dropout(const at::Tensor& x, Dropout dropout, at::Tensor& out);
void dropout_residual_forward(const at::Tensor& a,
                              const at::Tensor& bias,
                              const at::Tensor& residual,
                              Dropout dropout,
                              at::Tensor& y);
void dropout_residual_backward(const at::Tensor& dy,
                               Dropout dropout,
                               const at::Tensor& da,
                               at::Tensor& dbias,
                               Scratch& scratch);

}  // namespace ferry::ops
