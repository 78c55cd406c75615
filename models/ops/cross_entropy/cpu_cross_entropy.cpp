// Cross entropy on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/cross_entropy/cross_entropy_kernels.h"

namespace ferry::ops::cpu {
namespace {

void take_logits(const TakeLogits& its, const Launch&) {
  const RowKernels& kernels = row_kernels();
  const int64_t n_classes = its.n_classes;
  for_row_blocks(its.n_rows, n_classes, [&](int64_t, int64_t begin, int64_t end) {
    Rows rows(its.type, n_classes, its.logits);
    for (int64_t r = begin; r < end; r++) {
      const float* x = rows.read(r);
      kernels.take_logits(x, n_classes, its.largest + r, its.sum_exp + r, its.sum + r);
      const int64_t at = its.labels[r] - its.first_class;
      if (its.labels[r] >= 0 && at >= 0 && at < n_classes) its.label_logit[r] = x[at];
    }
  });
}

void logits_backward(const LogitsBackward& its, const Launch&) {
  const RowKernels& kernels = row_kernels();
  const int64_t n_classes = its.n_classes;
  for_row_blocks(its.n_rows, n_classes, [&](int64_t, int64_t begin, int64_t end) {
    Rows rows(its.type, n_classes, its.logits);
    for (int64_t r = begin; r < end; r++) {
      float* d = rows.write(r);
      if (its.labels[r] < 0) {
        std::fill_n(d, n_classes, 0.0f);
      } else {
        kernels.logits_backward(d, rows.read(r), its.lse[r], its.uniform, its.factor, n_classes);
        const int64_t at = its.labels[r] - its.first_class;
        if (at >= 0 && at < n_classes) d[at] -= its.on_label * its.factor;
      }
      rows.wrote(r);
    }
  });
}

}  // namespace

const CrossEntropyKernels kCrossEntropy = {.take_logits = take_logits,
                                           .logits_backward = logits_backward};

}  // namespace ferry::ops::cpu
