// Question answering's loss: for each sequence a softmax over its own tokens, once for the answer's
// start and once for its end. A sequence's logits lie together, so the kernels of cross entropy
// serve on a CPU; on a GPU one block of threads takes a sequence's start or end.

#include "models/ops/span_loss/span_loss.h"

#include <ATen/ops/sum.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "models/ops/cpu/row_kernels.h"
#include "models/ops/dispatch.h"

namespace ferry::ops {
namespace {

constexpr int kStartAndEnd = 2;

/** Calls work(0 for the start or 1 for the end, first token, length, index in labels and lse) for
 * both of each sequence that is no dummy. */
template <typename Work>
void for_each_softmax(const BatchTensors& batch, const Work& work) {
  for (int64_t s = 0; s < batch.n_seqs_real; s++) {
    const int64_t first = batch.cu_seqlens_host[static_cast<size_t>(s)];
    const int64_t length = batch.cu_seqlens_host[static_cast<size_t>(s) + 1] - first;
    for (int which = 0; which < kStartAndEnd; which++)
      work(which, first, length, s * kStartAndEnd + which);
  }
}

/** Its length where the sequence does not hold the start or end. */
int64_t place_in(int32_t label, int64_t length) {
  return std::clamp<int64_t>(label, 0, length);
}

double loss_on_cpu(const at::Tensor& logits, const BatchTensors& batch, at::Tensor& lse) {
  const RowKernels& kernels = row_kernels();
  const float* x = floats_of(logits);
  const int32_t* labels = ints_of(batch.labels);
  float* out = floats_of(lse);
  std::array<double, kStartAndEnd> total = {};
  for_each_softmax(batch, [&](int which, int64_t first, int64_t length, int64_t item) {
    const float* mine = x + which * logits.size(1) + first;
    float largest = -std::numeric_limits<float>::infinity(), sum_exp = 0, sum = 0;
    kernels.take_logits(mine, length, &largest, &sum_exp, &sum);
    out[item] = largest + std::log(sum_exp);
    const int64_t place = place_in(labels[item], length);
    if (place < length)
      total[static_cast<size_t>(which)] +=
          static_cast<double>(out[item]) - static_cast<double>(mine[place]);
  });
  return 0.5 * (batch.loss_weight * total[0] + batch.end_loss_weight * total[1]);
}

void backward_on_cpu(const at::Tensor& logits,
                     const BatchTensors& batch,
                     const at::Tensor& lse,
                     const std::array<float, kStartAndEnd>& factors,
                     at::Tensor& d_logits) {
  const RowKernels& kernels = row_kernels();
  const float *x = floats_of(logits), *lse_of = floats_of(lse);
  const int32_t* labels = ints_of(batch.labels);
  float* d = floats_of(d_logits);
  std::fill_n(d, d_logits.numel(), 0.0f);
  for_each_softmax(batch, [&](int which, int64_t first, int64_t length, int64_t item) {
    const int64_t place = place_in(labels[item], length);
    if (place == length) return;
    const int64_t at = which * logits.size(1) + first;
    const float factor = factors[static_cast<size_t>(which)];
    kernels.logits_backward(d + at, x + at, lse_of[item], /*uniform=*/0, factor, length);
    d[at + place] -= factor;
  });
}

}  // namespace

void span_loss_forward(const at::Tensor& logits,
                       const BatchTensors& batch,
                       at::Tensor& lse,
                       at::Tensor& loss,
                       Scratch& scratch) {
  if (!on_cuda(logits)) {
    const double value = loss_on_cpu(logits, batch, lse);
    if (loss.defined()) loss.fill_(static_cast<float>(value));
    return;
  }
  const ScratchScope scope(scratch);
  at::Tensor items = scratch.take({batch.n_seqs_real, kStartAndEnd}, at::kFloat);
  const SpanLossForward its = {.T = logits.size(1),
                               .n_seqs = batch.n_seqs_real,
                               .logits = floats_of(logits),
                               .cu_seqlens = ints_of(batch.cu_seqlens),
                               .labels = ints_of(batch.labels),
                               .start_weight = 0.5f * batch.loss_weight,
                               .end_weight = 0.5f * batch.end_loss_weight,
                               .lse = floats_of(lse),
                               .losses = floats_of(items)};
  kCudaSpanLoss.span_loss_forward(its, launch_on(logits));
  if (loss.defined()) loss.copy_(items.sum());
}

void span_loss_backward(const at::Tensor& logits,
                        const BatchTensors& batch,
                        const at::Tensor& lse,
                        at::Tensor& d_logits) {
  const std::array<float, kStartAndEnd> factors = {0.5f * batch.loss_weight * batch.grad_scale,
                                                   0.5f * batch.end_loss_weight * batch.grad_scale};
  if (!on_cuda(logits)) return backward_on_cpu(logits, batch, lse, factors, d_logits);
  const SpanLossBackward its = {.T = logits.size(1),
                                .n_seqs = batch.n_seqs_real,
                                .logits = floats_of(logits),
                                .cu_seqlens = ints_of(batch.cu_seqlens),
                                .labels = ints_of(batch.labels),
                                .lse = floats_of(lse),
                                .start_factor = factors[0],
                                .end_factor = factors[1],
                                .d_logits = floats_of(d_logits)};
  kCudaSpanLoss.span_loss_backward(its, launch_on(logits));
}

}  // namespace ferry::ops
