#pragma once
// The steps of weigh_pairs() for one token, or one pair, on CPU and GPU alike.

#include "models/ops/preference/pair_loss.h"
#include "models/ops/preference/preference_loss.h"

namespace ferry::ops {

/** The log-probability of a row's label and the mean of its logits; zeros where it has no label. */
struct TokenFound {
  float log_p = 0, mean_logit = 0;
  bool is_answer = false;
};

FERRY_INLINE float input_of(const WeighPairs& its, int64_t s, PreferenceInput which) {
  return its.inputs[s * kPreferenceInputs + static_cast<int64_t>(which)];
}
FERRY_INLINE float sum_of(const WeighPairs& its, int64_t s, PreferenceSum which) {
  return its.sums[s * kPreferenceSums + static_cast<int64_t>(which)];
}
FERRY_INLINE void put_sum(const WeighPairs& its, int64_t s, PreferenceSum which, float value) {
  its.sums[s * kPreferenceSums + static_cast<int64_t>(which)] = value;
}

/** The row's label is a token of the answer. (A chosen answer's prompt may have labels, too.) */
FERRY_INLINE bool is_of_answer(const WeighPairs& its, int64_t s, int64_t row) {
  const auto first = static_cast<int64_t>(input_of(its, s, PreferenceInput::first_answer));
  return its.labels[row] >= 0 && row - its.cu_seqlens[s] >= first;
}

FERRY_INLINE TokenFound token_at(const WeighPairs& its, int64_t s, int64_t row) {
  if (its.labels[row] < 0) return {};
  return {its.label_logit[row] - its.lse[row],
          its.logit_sum[row] / static_cast<float>(its.n_classes), is_of_answer(its, s, row)};
}

FERRY_INLINE AnswerSums answer_sums(const WeighPairs& its, int64_t s) {
  const float n_tokens = sum_of(its, s, PreferenceSum::n_tokens);
  return {sum_of(its, s, PreferenceSum::log_p), n_tokens > 1 ? n_tokens : 1,
          input_of(its, s, PreferenceInput::reference)};
}

/** How much likelier the answer of a sequence has become. */
FERRY_INLINE float gain_of(const WeighPairs& its, int64_t s) {
  return sum_of(its, s, PreferenceSum::log_p) - input_of(its, s, PreferenceInput::reference);
}

/** With kto: writes both gradients, and gives the loss of the answer. */
FERRY_INLINE double weigh_answer(const WeighPairs& its, int64_t s, double divergence) {
  const OfMargin loss = answer_loss(its.rule, answer_sums(its, s),
                                    input_of(its, s, PreferenceInput::is_good) > 0, divergence);
  put_sum(its, s, PreferenceSum::gradient, static_cast<float>(loss.slope));
  put_sum(its, s + 1, PreferenceSum::gradient, 0);
  return loss.value;
}

/** Writes both gradients of a pair, and gives its loss. */
FERRY_INLINE double weigh_pair(const WeighPairs& its, int64_t chosen) {
  const PairLoss loss = pair_loss(its.rule, answer_sums(its, chosen), answer_sums(its, chosen + 1));
  put_sum(its, chosen, PreferenceSum::gradient, static_cast<float>(loss.by_chosen));
  put_sum(its, chosen + 1, PreferenceSum::gradient, static_cast<float>(loss.by_rejected));
  return loss.value;
}

FERRY_INLINE float weight_of_token(const WeighPairs& its, int64_t s, int64_t row) {
  if (its.labels[row] < 0) return 0;
  float weight = is_chosen(s) ? its.token_weight : 0;
  if (is_of_answer(its, s, row))
    weight -= its.pair_weight * sum_of(its, s, PreferenceSum::gradient);
  return weight;
}

}  // namespace ferry::ops
