#include "models/ops/preference/preference_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/core/block.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/dispatch.h"
#include "models/ops/preference/pair_loss.h"
#include "models/ops/preference/sums_of.h"
#include "src/base/error.h"

namespace ferry::ops {

void weigh_pairs(const BatchTensors& batch,
                 const LogitsState& state,
                 const at::Tensor& lse,
                 int64_t n_classes,
                 at::Tensor& loss) {
  const PreferenceTensors& its = batch.preferences;
  FERRY_CHECK(its.rule && batch.n_seqs_real % 2 == 0, "{} answers are no pairs", batch.n_seqs_real);
  const WeighPairs work = {.n_seqs = batch.n_seqs_real,
                           .n_tokens = batch.labels.size(0),
                           .n_classes = n_classes,
                           .cu_seqlens = ints_of(batch.cu_seqlens),
                           .labels = ints_of(batch.labels),
                           .lse = floats_of(lse),
                           .label_logit = floats_of(state.label_logit),
                           .logit_sum = floats_of(state.sum),
                           .inputs = floats_of(its.inputs),
                           .sums = floats_of(its.sums),
                           .token_weights = floats_of(its.token_weights),
                           .loss = floats_of(loss),
                           .rule = *its.rule,
                           .pair_weight = batch.loss_weight,
                           .token_weight = batch.end_loss_weight * its.rule->likelihood_weight};
  kernels_for(lse, kCpuPreference, kCudaPreference).weigh_pairs(work, launch_on(lse));
}

namespace cpu {
namespace {

void weigh_pairs(const WeighPairs& its, const Launch&) {
  double total = 0;
  for (int64_t s = 0; s < its.n_seqs; ++s) {
    double log_p = 0, n = 0, mean_logit = 0, surprise = 0;
    for (int64_t row = its.cu_seqlens[s]; row < its.cu_seqlens[s + 1]; ++row) {
      const TokenFound token = token_at(its, s, row);
      if (is_chosen(s)) surprise -= token.log_p;
      if (!token.is_answer) continue;
      log_p += token.log_p;
      mean_logit += token.mean_logit;
      n += 1;
    }
    put_sum(its, s, PreferenceSum::log_p, static_cast<float>(log_p));
    put_sum(its, s, PreferenceSum::n_tokens, static_cast<float>(n));
    put_sum(its, s, PreferenceSum::mean_logit, static_cast<float>(mean_logit));
    put_sum(its, s, PreferenceSum::surprise, static_cast<float>(surprise));
    total += its.token_weight * surprise;
  }
  const bool is_kto = its.rule.kind == PreferenceKind::kto;
  double divergence = 0;
  for (int64_t s = 1; is_kto && s < its.n_seqs; s += 2)
    divergence += gain_of(its, s);
  divergence = std::max(0.0, divergence / std::max(1.0, static_cast<double>(its.n_seqs / 2)));
  for (int64_t s = 0; s < its.n_seqs; s += 2)
    total += its.pair_weight * (is_kto ? weigh_answer(its, s, divergence) : weigh_pair(its, s));
  std::fill_n(its.token_weights, its.n_tokens, 0.0f);
  for (int64_t s = 0; s < its.n_seqs; ++s)
    for (int64_t row = its.cu_seqlens[s]; row < its.cu_seqlens[s + 1]; ++row)
      its.token_weights[row] = weight_of_token(its, s, row);
  if (its.loss) *its.loss = static_cast<float>(total);
}

}  // namespace
}  // namespace cpu

const PreferenceKernels kCpuPreference = {.weigh_pairs = cpu::weigh_pairs};

}  // namespace ferry::ops
