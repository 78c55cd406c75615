#pragma once
// Rows of a matrix on tensors: their sum, some of them by number, and the gradient of these.
// Tensors are dense and, but for row numbers, of one type.

#include <ATen/core/Tensor.h>

#include "models/block.h"

namespace ferry::ops {

/** out (N) = column sum of x (T, N). */
void column_sum(const at::Tensor& x, const at::Tensor& out, Scratch& scratch);

/** out (n, W) = the rows of x (T, W) that `rows` (>= n int32) names. */
void gather_rows(const at::Tensor& x, const at::Tensor& rows, at::Tensor& out);
/** dx (T, W) = 0 but for the rows that `rows` names: those of d_out (n, W). */
void scatter_rows(const at::Tensor& d_out, const at::Tensor& rows, at::Tensor& dx);

}  // namespace ferry::ops
