// Question answering's softmaxes on CUDA: one block of threads for the start, one for the end of
// each sequence, over the sequence's own tokens. Sums run in an order that the length alone fixes.

#include "models/ops/cuda/cuda_block_reduce.h"
#include "models/ops/span_loss/span_loss.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kSpanThreads = 256;

/** The work of one block: blockIdx.x = sequence, blockIdx.y = 0 for the start, 1 for the end. */
struct Softmax {
  int64_t at;      ///< the place of its first token in logits (2, T)
  int64_t length;  ///< tokens of the sequence
  int64_t item;    ///< in labels, lse and losses (n_seqs, 2)
  int64_t place;   ///< the label's place in the sequence; `length` when there is none

  __device__ Softmax(int64_t T, const int32_t* cu_seqlens, const int32_t* labels) {
    const int64_t first = cu_seqlens[blockIdx.x];
    at = blockIdx.y * T + first;
    length = cu_seqlens[blockIdx.x + 1] - first;
    item = 2 * static_cast<int64_t>(blockIdx.x) + blockIdx.y;
    place = min(max(static_cast<int64_t>(labels[item]), int64_t{0}), length);
  }
};

__global__ void __launch_bounds__(kSpanThreads) span_forward(int64_t T,
                                                             const float* logits,
                                                             const int32_t* cu_seqlens,
                                                             const int32_t* labels,
                                                             float start_weight,
                                                             float end_weight,
                                                             float* lse,
                                                             float* losses) {
  const Softmax its(T, cu_seqlens, labels);
  const float* x = logits + its.at;
  float largest = -INFINITY;
  for (int64_t i = threadIdx.x; i < its.length; i += kSpanThreads)
    largest = fmaxf(largest, x[i]);
  largest = combine_block<kSpanThreads>(largest, Larger());
  float sum = 0;
  for (int64_t i = threadIdx.x; i < its.length; i += kSpanThreads)
    sum += expf(x[i] - largest);
  sum = combine_block<kSpanThreads>(sum, Plus());
  if (threadIdx.x != 0) return;
  const float log_sum = largest + logf(sum);
  const float weight = blockIdx.y == 0 ? start_weight : end_weight;
  lse[its.item] = log_sum;
  losses[its.item] = its.place < its.length ? weight * (log_sum - x[its.place]) : 0.0f;
}

__global__ void __launch_bounds__(kSpanThreads) span_backward(int64_t T,
                                                              const float* logits,
                                                              const int32_t* cu_seqlens,
                                                              const int32_t* labels,
                                                              const float* lse,
                                                              float start_factor,
                                                              float end_factor,
                                                              float* d_logits) {
  const Softmax its(T, cu_seqlens, labels);
  if (its.place == its.length) return;  // stays zero
  const float factor = blockIdx.y == 0 ? start_factor : end_factor;
  for (int64_t i = threadIdx.x; i < its.length; i += kSpanThreads) {
    const float p = expf(logits[its.at + i] - lse[its.item]);
    d_logits[its.at + i] = factor * (i == its.place ? p - 1.0f : p);
  }
}

dim3 grid_of(int64_t n_seqs) {
  return {static_cast<unsigned>(n_seqs), 2};
}

void span_loss_forward(const SpanLossForward& its, const Launch& on) {
  if (its.n_seqs == 0) return;
  span_forward<<<grid_of(its.n_seqs), kSpanThreads, 0, as_stream(on.stream)>>>(
      its.T, its.logits, its.cu_seqlens, its.labels, its.start_weight, its.end_weight, its.lse,
      its.losses);
  check_launch("span_forward");
}

void span_loss_backward(const SpanLossBackward& its, const Launch& on) {
  zero(on, its.d_logits, 2 * its.T * static_cast<int64_t>(sizeof(float)));
  if (its.n_seqs == 0) return;
  span_backward<<<grid_of(its.n_seqs), kSpanThreads, 0, as_stream(on.stream)>>>(
      its.T, its.logits, its.cu_seqlens, its.labels, its.lse, its.start_factor, its.end_factor,
      its.d_logits);
  check_launch("span_backward");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::SpanLossKernels ferry::ops::kCudaSpanLoss = {
    .span_loss_forward = cuda::span_loss_forward, .span_loss_backward = cuda::span_loss_backward};
