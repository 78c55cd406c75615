// The loss of pairs of answers on CUDA: a block of threads adds up each sequence, one block weighs
// the pairs, and each token then gets its weight. Sums run in an order that the lengths alone fix.

#include "models/ops/cuda/cuda_block_reduce.h"
#include "models/ops/preference/preference_loss.h"
#include "models/ops/preference/sums_of.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) add_up_answer(WeighPairs its) {
  const int64_t s = blockIdx.x;
  float log_p = 0, n = 0, mean_logit = 0, surprise = 0;
  for (int64_t row = its.cu_seqlens[s] + static_cast<int64_t>(threadIdx.x);
       row < its.cu_seqlens[s + 1]; row += kThreads) {
    const TokenFound token = token_at(its, s, row);
    if (is_chosen(s)) surprise -= token.log_p;
    if (!token.is_answer) continue;
    log_p += token.log_p;
    mean_logit += token.mean_logit;
    n += 1;
  }
  log_p = combine_block<kThreads>(log_p, Plus());
  n = combine_block<kThreads>(n, Plus());
  mean_logit = combine_block<kThreads>(mean_logit, Plus());
  surprise = combine_block<kThreads>(surprise, Plus());
  if (threadIdx.x != 0) return;
  put_sum(its, s, PreferenceSum::log_p, log_p);
  put_sum(its, s, PreferenceSum::n_tokens, n);
  put_sum(its, s, PreferenceSum::mean_logit, mean_logit);
  put_sum(its, s, PreferenceSum::surprise, surprise);
}

__global__ void __launch_bounds__(kThreads) weigh_all_pairs(WeighPairs its) {
  const bool is_kto = its.rule.kind == PreferenceKind::kto;
  const int64_t first = 2 * static_cast<int64_t>(threadIdx.x);
  float total = 0, divergence = 0;
  for (int64_t s = first; is_kto && s < its.n_seqs; s += 2 * kThreads)
    divergence += gain_of(its, s + 1);
  divergence = combine_block<kThreads>(divergence, Plus());
  divergence = fmaxf(0.0f, divergence / fmaxf(1.0f, static_cast<float>(its.n_seqs / 2)));
  for (int64_t s = first; s < its.n_seqs; s += 2 * kThreads) {
    const double loss = is_kto ? weigh_answer(its, s, divergence) : weigh_pair(its, s);
    total += its.pair_weight * static_cast<float>(loss) +
             its.token_weight * sum_of(its, s, PreferenceSum::surprise);
  }
  total = combine_block<kThreads>(total, Plus());
  if (threadIdx.x == 0 && its.loss != nullptr) *its.loss = total;
}

/** The tail's tokens belong to no sequence and weigh nothing; the last block clears them. */
__global__ void __launch_bounds__(kThreads) weigh_tokens(WeighPairs its) {
  const int64_t s = blockIdx.x;
  const bool is_tail = s == its.n_seqs;
  const int64_t end = is_tail ? its.n_tokens : its.cu_seqlens[s + 1];
  for (int64_t row = its.cu_seqlens[s] + static_cast<int64_t>(threadIdx.x); row < end;
       row += kThreads)
    its.token_weights[row] = is_tail ? 0.0f : weight_of_token(its, s, row);
}

void weigh_pairs(const WeighPairs& its, const Launch& on) {
  const auto n_seqs = static_cast<unsigned>(its.n_seqs);
  if (n_seqs > 0) add_up_answer<<<n_seqs, kThreads, 0, as_stream(on.stream)>>>(its);
  weigh_all_pairs<<<1, kThreads, 0, as_stream(on.stream)>>>(its);
  weigh_tokens<<<n_seqs + 1, kThreads, 0, as_stream(on.stream)>>>(its);
  check_launch("weigh_pairs");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::PreferenceKernels ferry::ops::kCudaPreference = {
    .weigh_pairs = ferry::ops::cuda::weigh_pairs};
