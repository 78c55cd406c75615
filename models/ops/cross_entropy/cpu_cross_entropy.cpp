// Cross entropy on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/cross_entropy/cross_entropy.h"

namespace ferry::ops::cpu {
namespace {

void take_logits(const TakeLogits& its, const Launch&) {
  const auto [type, n_rows, n_classes] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(n_rows, n_classes, [&](int64_t, int64_t begin, int64_t end) {
    Rows rows(type, n_classes, its.logits);
    for (int64_t r = begin; r < end; r++) {
      const float* x = rows.read(r);
      kernels.take_logits(x, n_classes, its.largest + r, its.sum_exp + r, its.sum + r);
      const int64_t at = its.labels[r] - its.first_class;
      if (its.labels[r] >= 0 && at >= 0 && at < n_classes) its.label_logit[r] = x[at];
    }
  });
}

void logits_backward(const LogitsBackward& its, const Launch&) {
  const auto [type, n_rows, n_classes] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(n_rows, n_classes, [&](int64_t, int64_t begin, int64_t end) {
    Rows rows(type, n_classes, its.logits);
    std::vector<float> capped;
    for (int64_t r = begin; r < end; r++) {
      float* d = rows.write(r);
      if (its.labels[r] < 0) {
        std::fill_n(d, n_classes, 0.0f);
      } else {
        const float* logits = rows.read(r);
        const float factor = its.row_weights ? its.factor * its.row_weights[r] : its.factor;
        if (its.cap > 0) capped.assign(logits, logits + n_classes);
        kernels.logits_backward(d, logits, its.lse[r], its.uniform, factor, n_classes);
        const int64_t at = its.labels[r] - its.first_class;
        if (at >= 0 && at < n_classes) d[at] -= its.on_label * factor;
        if (its.cap > 0) kernels.soft_cap_backward(d, capped.data(), 1, its.cap, n_classes);
      }
      rows.wrote(r);
    }
  });
}

void cap_logits(const CapLogits& its, const Launch&) {
  const auto [type, n_rows, n_classes] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(n_rows, n_classes, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, n_classes, its.logits), out(type, n_classes, its.logits);
    for (int64_t r = begin; r < end; r++) {
      const float* x = in.read(r);
      float* capped = out.write(r);
      if (capped != x) std::copy_n(x, n_classes, capped);
      kernels.soft_cap(capped, 1, its.cap, n_classes);
      out.wrote(r);
    }
  });
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::CrossEntropyKernels ferry::ops::kCpuCrossEntropy = {
    .take_logits = cpu::take_logits,
    .logits_backward = cpu::logits_backward,
    .cap_logits = cpu::cap_logits};
