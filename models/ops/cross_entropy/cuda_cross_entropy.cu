// Cross entropy over classes that come in pieces, on CUDA: one block of threads a row. A piece is
// read twice, the second time out of a cache. Sums run in an order that its width alone fixes.

#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/cuda/cuda_block_reduce.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) take_row(int row_packs,
                                                     int64_t first_class,
                                                     const T* logits,
                                                     const int32_t* labels,
                                                     float* largest,
                                                     float* sum_exp,
                                                     float* sum,
                                                     float* label_logit) {
  const int64_t row = blockIdx.x, first_pack = row * row_packs;
  float x[N], most = -INFINITY, total = 0, total_exp = 0;
  for (int pack = threadIdx.x; pack < row_packs; pack += kThreads) {
    load(logits, first_pack + pack, x);
#pragma unroll
    for (int i = 0; i < N; i++) {
      most = fmaxf(most, x[i]);
      total += x[i];
    }
  }
  const float before = largest[row];
  most = fmaxf(before, combine_block<kThreads>(most, Larger()));
  total = combine_block<kThreads>(total, Plus());
  // Exponentials add zero where all logits so far are -inf, not exp(-inf + inf).
  const float from = most == -INFINITY ? 0.0f : most;
  for (int pack = threadIdx.x; pack < row_packs; pack += kThreads) {
    load(logits, first_pack + pack, x);
#pragma unroll
    for (int i = 0; i < N; i++)
      total_exp += expf(x[i] - from);
  }
  total_exp = combine_block<kThreads>(total_exp, Plus());
  if (threadIdx.x != 0) return;
  largest[row] = most;
  sum_exp[row] = sum_exp[row] * expf(before - from) + total_exp;
  sum[row] += total;
  const int64_t at = labels[row] - first_class;
  if (labels[row] >= 0 && at >= 0 && at < int64_t{row_packs} * N)
    label_logit[row] = to_float(logits[first_pack * N + at]);
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) take_row_back(int row_packs,
                                                          int64_t first_class,
                                                          T* logits,
                                                          const int32_t* labels,
                                                          const float* lse,
                                                          float uniform,
                                                          float on_label,
                                                          float factor,
                                                          float inv_cap,
                                                          const float* row_weights) {
  const int64_t row = blockIdx.x;
  const int32_t label = labels[row];
  const float log_sum = lse[row];
  const int64_t at = label - first_class;
  if (row_weights != nullptr) factor *= row_weights[row];
  for (int pack = threadIdx.x; pack < row_packs; pack += kThreads) {
    float x[N] = {};
    if (label >= 0) {
      load(logits, row * row_packs + pack, x);
#pragma unroll
      for (int i = 0; i < N; i++) {
        const float d = expf(x[i] - log_sum) - uniform, share = x[i] * inv_cap;
        x[i] = factor * (int64_t{pack} * N + i == at ? d - on_label : d);
        if (inv_cap != 0) x[i] *= 1.0f - share * share;
      }
    }
    store(x, logits, row * row_packs + pack);
  }
}

void take_logits(const TakeLogits& its, const Launch& on) {
  const auto [type, n_rows, n_classes] = its.extent;
  if (n_rows == 0) return;
  with_packs(
      type, n_classes,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        take_row<E, kPack><<<static_cast<unsigned>(n_rows), kThreads, 0, as_stream(on.stream)>>>(
            static_cast<int>(n_classes / kPack), its.first_class, as<E>(its.logits), its.labels,
            its.largest, its.sum_exp, its.sum, its.label_logit);
      },
      its.logits);
  check_launch("take_row");
}

void logits_backward(const LogitsBackward& its, const Launch& on) {
  const auto [type, n_rows, n_classes] = its.extent;
  if (n_rows == 0) return;
  with_packs(
      type, n_classes,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        take_row_back<E, kPack>
            <<<static_cast<unsigned>(n_rows), kThreads, 0, as_stream(on.stream)>>>(
                static_cast<int>(n_classes / kPack), its.first_class, as<E>(its.logits), its.labels,
                its.lse, its.uniform, its.on_label, its.factor, its.cap > 0 ? 1.0f / its.cap : 0.0f,
                its.row_weights);
      },
      its.logits);
  check_launch("take_row_back");
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) cap_packs(int64_t n_packs, float cap, T* logits) {
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (pack >= n_packs) return;
  float x[N];
  load(logits, pack, x);
#pragma unroll
  for (int i = 0; i < N; i++)
    x[i] = cap * tanhf(x[i] / cap);
  store(x, logits, pack);
}

void cap_logits(const CapLogits& its, const Launch& on) {
  const auto [type, n_rows, n_classes] = its.extent;
  if (n_rows == 0) return;
  with_packs(
      type, n_classes,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t n_packs = n_rows * n_classes / kPack;
        cap_packs<E, kPack><<<static_cast<unsigned>(ceil_div(n_packs, kThreads)), kThreads, 0,
                              as_stream(on.stream)>>>(n_packs, its.cap, as<E>(its.logits));
      },
      its.logits);
  check_launch("cap_packs");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::CrossEntropyKernels ferry::ops::kCudaCrossEntropy = {
    .take_logits = cuda::take_logits,
    .logits_backward = cuda::logits_backward,
    .cap_logits = cuda::cap_logits};
