#pragma once
// Dropout on tensors, alone and with the residual sum that pre-norm layers end with. Tensors are
// dense and of one type; T tokens, W width.

#include <ATen/core/Tensor.h>

#include "models/block.h"
#include "models/ops/dropout.h"

namespace ferry::ops {

/** The dropout of one operation of a block in its micro-batch. */
inline Dropout dropout_of(const RandomKey& key, int operation, float p) {
  if (!key.training) return {};
  return {p, key.of(operation), key.on_gpu ? key.on_gpu + operation : nullptr};
}

/** out = dropout(x), on the forward's input as on the backward's gradient; (n, W). out may be x. */
void dropout(const at::Tensor& x, Dropout dropout, at::Tensor& out);

/** y = dropout(a + bias) + residual; bias may be undefined. y may be a or residual. */
void dropout_residual_forward(const at::Tensor& a,
                              const at::Tensor& bias,
                              const at::Tensor& residual,
                              Dropout dropout,
                              at::Tensor& y);
/** da = dropout'(dy) (undefined without dropout: it is dy) and dbias, its column sum. da may be dy.
 */
void dropout_residual_backward(const at::Tensor& dy,
                               Dropout dropout,
                               const at::Tensor& da,
                               at::Tensor& dbias,
                               Scratch& scratch);

}  // namespace ferry::ops
