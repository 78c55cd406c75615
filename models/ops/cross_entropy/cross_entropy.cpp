#include "models/ops/cross_entropy/cross_entropy.h"

#include <ATen/ops/log.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/dispatch.h"

namespace ferry::ops {

namespace {

LogitsState& start(LogitsState& state) {
  for (at::Tensor* x : {&state.sum_exp, &state.sum, &state.label_logit})
    x->zero_();
  state.largest.fill_(-std::numeric_limits<float>::infinity());
  return state;
}

}  // namespace

LogitsState LogitsState::take(int64_t rows, Scratch& scratch) {
  LogitsState state;
  for (at::Tensor* x : {&state.largest, &state.sum_exp, &state.sum, &state.label_logit})
    *x = scratch.take({rows}, at::kFloat);
  return start(state);
}

LogitsState LogitsState::at(const at::Tensor& memory, int64_t rows, bool starts) {
  LogitsState state;
  int64_t row = 0;
  for (at::Tensor* x : {&state.largest, &state.sum_exp, &state.sum, &state.label_logit})
    *x = memory.select(0, row++).narrow(0, 0, rows);
  return starts ? start(state) : state;
}

void take_logits(const at::Tensor& logits,
                 int64_t first_class,
                 const at::Tensor& labels,
                 LogitsState& state) {
  const TakeLogits its = {.extent = extent_of(logits),
                          .first_class = first_class,
                          .logits = data_of(logits),
                          .labels = ints_of(labels),
                          .largest = floats_of(state.largest),
                          .sum_exp = floats_of(state.sum_exp),
                          .sum = floats_of(state.sum),
                          .label_logit = floats_of(state.label_logit)};
  kernels_for(logits, kCpuCrossEntropy, kCudaCrossEntropy).take_logits(its, launch_on(logits));
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
                            float factor,
                            float soft_cap,
                            const at::Tensor* row_weights) {
  const LogitsBackward its = {.extent = extent_of(logits),
                              .first_class = first_class,
                              .logits = data_of(logits),
                              .labels = ints_of(labels),
                              .lse = floats_of(lse),
                              .uniform = smoothing / static_cast<float>(n_classes),
                              .on_label = 1.0f - smoothing,
                              .factor = factor,
                              .cap = soft_cap,
                              .row_weights = row_weights ? floats_of(*row_weights) : nullptr};
  kernels_for(logits, kCpuCrossEntropy, kCudaCrossEntropy).logits_backward(its, launch_on(logits));
}

void cap_logits(at::Tensor& logits, float soft_cap) {
  kernels_for(logits, kCpuCrossEntropy, kCudaCrossEntropy)
      .cap_logits({.extent = extent_of(logits), .cap = soft_cap, .logits = data_of(logits)},
                  launch_on(logits));
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

}  // namespace ferry::ops
