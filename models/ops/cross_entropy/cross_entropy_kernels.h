#pragma once
// The kernels of cross entropy over classes that come in pieces. Labels below zero: none.

#include "models/ops/kernel.h"

namespace ferry::ops {

/** Takes a piece of each row's logits, classes [first_class, first_class + n_classes), into what is
 * known of the row: the largest, the sum of exp(logit - largest), the sum, and the label's, which
 * changes only where the piece holds it. */
struct TakeLogits {
  DType type = DType::f32;
  int64_t n_rows = 0, n_classes = 0, first_class = 0;
  const void* logits = nullptr;     // (n_rows, n_classes)
  const int32_t* labels = nullptr;  // (n_rows)
  float* largest = nullptr;         // (n_rows), as the next three
  float* sum_exp = nullptr;
  float* sum = nullptr;
  float* label_logit = nullptr;
};

/** logits = factor * (exp(logits - lse) - uniform - on_label * [class is label]), 0 in rows without
 * a label. */
struct LogitsBackward {
  DType type = DType::f32;
  int64_t n_rows = 0, n_classes = 0, first_class = 0;
  void* logits = nullptr;           // (n_rows, n_classes)
  const int32_t* labels = nullptr;  // (n_rows)
  const float* lse = nullptr;       // (n_rows)
  float uniform = 0, on_label = 0, factor = 0;
};

struct CrossEntropyKernels {
  Kernel<TakeLogits> take_logits;
  Kernel<LogitsBackward> logits_backward;
};
namespace cpu {
extern const CrossEntropyKernels kCrossEntropy;
}
namespace cuda {
extern const CrossEntropyKernels kCrossEntropy;
}

}  // namespace ferry::ops
