#pragma once
// The softmax of capped scores on a GPU, for which LibTorch's attention kernels have no form.

#include "models/ops/dropout_mask.h"
#include "models/ops/operation.h"

namespace ferry::ops {

/** A block of the scores of one sequence: of some heads, the rows [first_row, first_row + n_rows)
 * against the columns [first_column, first_column + n_columns), as products q k^T. */
struct ScoreBlock {
  DType type = DType::f32;  ///< of probabilities and gradients
  int64_t n_heads = 0, n_rows = 0, n_columns = 0;
  int64_t first_row = 0, first_column = 0;
  int64_t length = 0;  ///< of the sequence
  int64_t window = 0;  ///< tokens that a causal row sees; 0: all
  bool causal = false;
  float scale = 1, cap = 1;
  Dropout dropout;
  int64_t first_element = 0;        ///< of the mask: row 0, column 0 of the first head
  const float* products = nullptr;  // (n_heads, n_rows, n_columns)
};

/** p = dropout(softmax(cap * tanh(scale / cap * products))), 0 where a row does not see. */
struct CappedSoftmax {
  ScoreBlock block;
  void* p = nullptr;  // (n_heads, n_rows, n_columns)
};

/** p again, and the gradient of the products from that of p, dp. */
struct CappedSoftmaxBackward {
  ScoreBlock block;
  const float* dp = nullptr;   // (n_heads, n_rows, n_columns)
  void* p = nullptr;           // (n_heads, n_rows, n_columns)
  void* d_products = nullptr;  // (n_heads, n_rows, n_columns)
};

struct CappedSoftmaxKernels {
  Kernel<CappedSoftmax> capped_softmax;
  Kernel<CappedSoftmaxBackward> capped_softmax_backward;
};
extern const CappedSoftmaxKernels kCudaCappedSoftmax;

}  // namespace ferry::ops
