#include "models/ops/losses.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/log.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "models/ops/cpu_rows.h"
#include "models/ops/cuda_kernels.h"
#include "models/ops/dispatch.h"
#include "models/ops/row_kernels.h"
#include "src/base/error.h"

namespace ferry::ops {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// ---- CPU: rows over threads.

void take_logits_on_cpu(const at::Tensor& logits,
                        int64_t first_class,
                        const int32_t* labels,
                        LogitsState& state) {
  const RowKernels& kernels = row_kernels();
  const int64_t n_classes = logits.size(1);
  const DType type = dtype_of(logits);
  const void* base = data_of(logits);
  float *largest = floats_of(state.largest), *sum_exp = floats_of(state.sum_exp);
  float *sum = floats_of(state.sum), *label_logit = floats_of(state.label_logit);
  cpu::for_row_blocks(logits.size(0), n_classes, [&](int64_t, int64_t begin, int64_t end) {
    cpu::Rows rows(type, n_classes, base);
    for (int64_t r = begin; r < end; r++) {
      const float* x = rows.read(r);
      kernels.take_logits(x, n_classes, largest + r, sum_exp + r, sum + r);
      const int64_t at = labels[r] - first_class;
      if (labels[r] >= 0 && at >= 0 && at < n_classes) label_logit[r] = x[at];
    }
  });
}

void backward_on_cpu(at::Tensor& logits,
                     int64_t first_class,
                     const int32_t* labels,
                     const float* lse,
                     float uniform,
                     float on_label,
                     float factor) {
  const RowKernels& kernels = row_kernels();
  const int64_t n_classes = logits.size(1);
  const DType type = dtype_of(logits);
  void* base = data_of(logits);
  cpu::for_row_blocks(logits.size(0), n_classes, [&](int64_t, int64_t begin, int64_t end) {
    cpu::Rows rows(type, n_classes, base);
    for (int64_t r = begin; r < end; r++) {
      float* d = rows.write(r);
      if (labels[r] < 0) {
        std::fill_n(d, n_classes, 0.0f);
      } else {
        kernels.logits_backward(d, rows.read(r), lse[r], uniform, factor, n_classes);
        const int64_t at = labels[r] - first_class;
        if (at >= 0 && at < n_classes) d[at] -= on_label * factor;
      }
      rows.wrote(r);
    }
  });
}

}  // namespace

LogitsState LogitsState::take(int64_t rows, Scratch& scratch) {
  LogitsState state;
  for (at::Tensor* x : {&state.largest, &state.sum_exp, &state.sum, &state.label_logit})
    *x = scratch.take({rows}, at::kFloat).zero_();
  state.largest.fill_(kLowest);
  return state;
}

void take_logits(const at::Tensor& logits,
                 int64_t first_class,
                 const at::Tensor& labels,
                 LogitsState& state) {
  if (on_cuda(logits)) {
    cuda::take_logits(stream_of(logits), dtype_of(logits), logits.size(0), logits.size(1),
                      first_class, data_of(logits), ints_of(labels), floats_of(state.largest),
                      floats_of(state.sum_exp), floats_of(state.sum), floats_of(state.label_logit));
  } else {
    take_logits_on_cpu(logits, first_class, ints_of(labels), state);
  }
}

void cross_entropy_forward(const LogitsState& state,
                           const at::Tensor& labels,
                           int64_t n_classes,
                           float smoothing,
                           float weight,
                           at::Tensor& lse,
                           at::Tensor& loss) {
  const float uniform = smoothing / static_cast<float>(n_classes);
  const bool is_smoothed = smoothing != 0;  // else a logit of -inf is none of the loss
  if (on_cuda(labels)) {
    lse.copy_(at::log(state.sum_exp).add_(state.largest));
    if (!loss.defined()) return;
    at::Tensor item = lse.sub(state.label_logit, 1.0f - smoothing);
    if (is_smoothed) item.sub_(state.sum, uniform);
    loss.copy_(at::where(labels.ge(0), item, at::zeros_like(item)).sum().mul_(weight));
    return;
  }
  const int32_t* label = ints_of(labels);
  const float *largest = floats_of(state.largest), *sum_exp = floats_of(state.sum_exp);
  const float *sum = floats_of(state.sum), *label_logit = floats_of(state.label_logit);
  float* out = floats_of(lse);
  double total = 0;
  for (int64_t r = 0; r < labels.size(0); r++) {
    out[r] = largest[r] + std::log(sum_exp[r]);
    if (label[r] < 0) continue;
    const float smoothed = is_smoothed ? uniform * sum[r] : 0.0f;
    total += static_cast<double>(out[r]) - (1.0 - smoothing) * label_logit[r] - smoothed;
  }
  if (loss.defined()) loss.fill_(static_cast<float>(total * weight));
}

void cross_entropy_backward(at::Tensor& logits,
                            int64_t first_class,
                            const at::Tensor& labels,
                            const at::Tensor& lse,
                            int64_t n_classes,
                            float smoothing,
                            float factor) {
  const float uniform = smoothing / static_cast<float>(n_classes), on_label = 1.0f - smoothing;
  if (on_cuda(logits)) {
    cuda::logits_backward(stream_of(logits), dtype_of(logits), logits.size(0), logits.size(1),
                          first_class, data_of(logits), ints_of(labels), floats_of(lse), uniform,
                          on_label, factor);
  } else {
    backward_on_cpu(logits, first_class, ints_of(labels), floats_of(lse), uniform, on_label,
                    factor);
  }
}

namespace {

/** The log-sum-exp of each row, taken from the scratch. Writes the loss too, if it is defined. */
at::Tensor log_sum_exp(const at::Tensor& logits,
                       const at::Tensor& labels,
                       float smoothing,
                       float weight,
                       at::Tensor& loss,
                       Scratch& scratch) {
  at::Tensor lse = scratch.take({logits.size(0)}, at::kFloat);
  LogitsState state = LogitsState::take(logits.size(0), scratch);
  take_logits(logits, 0, labels, state);
  cross_entropy_forward(state, labels, logits.size(1), smoothing, weight, lse, loss);
  return lse;
}

}  // namespace

void label_cross_entropy_forward(const at::Tensor& logits,
                                 const at::Tensor& labels,
                                 float smoothing,
                                 float weight,
                                 at::Tensor& loss,
                                 Scratch& scratch) {
  const ScratchScope scope(scratch);
  log_sum_exp(logits, labels, smoothing, weight, loss, scratch);
}

void label_cross_entropy_backward(const at::Tensor& logits,
                                  const at::Tensor& labels,
                                  float smoothing,
                                  float factor,
                                  at::Tensor& d_logits,
                                  Scratch& scratch) {
  const ScratchScope scope(scratch);
  at::Tensor no_loss;
  const at::Tensor lse = log_sum_exp(logits, labels, smoothing, 0, no_loss, scratch);
  d_logits.copy_(logits);
  cross_entropy_backward(d_logits, 0, labels, lse, logits.size(1), smoothing, factor);
}

void label_loss_forward(LossKind kind,
                        const at::Tensor& logits,
                        const at::Tensor& labels,
                        float weight,
                        at::Tensor& loss) {
  if (!loss.defined()) return;
  const at::Tensor y = labels.view(logits.sizes());
  const at::Tensor sum =
      kind == LossKind::multi_label
          ? at::binary_cross_entropy_with_logits(logits, y, {}, {}, at::Reduction::Sum)
          : at::mse_loss(logits, y, at::Reduction::Sum);
  loss.copy_(sum.mul(weight / static_cast<float>(logits.size(1))));
}

void label_loss_backward(LossKind kind,
                         const at::Tensor& logits,
                         const at::Tensor& labels,
                         float factor,
                         at::Tensor& d_logits) {
  const at::Tensor y = labels.view(logits.sizes());
  const float each = factor / static_cast<float>(logits.size(1));
  if (kind == LossKind::multi_label) {
    d_logits.copy_(at::sigmoid(logits).sub_(y).mul_(each));
  } else {
    d_logits.copy_(logits.sub(y).mul_(2 * each));
  }
}

}  // namespace ferry::ops
