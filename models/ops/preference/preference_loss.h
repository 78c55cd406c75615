#pragma once
// The loss of pairs of answers once a vocabulary's logits are known: the log-probabilities of each
// answer are added up, a pair has a loss by its sums, and each token gets the weight that its
// -log p has in it. The backward pass of the logits multiplies by these.

#include "models/core/preference.h"
#include "models/ops/operation.h"

namespace ferry::ops {

struct WeighPairs {
  int64_t n_seqs = 0;                   ///< real ones, an even number
  int64_t n_tokens = 0;                 ///< with the tail's
  int64_t n_classes = 0;                ///< of the vocabulary
  const int32_t* cu_seqlens = nullptr;  ///< (n_seqs + 1 or more)
  const int32_t* labels = nullptr;      ///< (n_tokens)
  const float* lse = nullptr;           ///< (n_tokens), as the next two
  const float* label_logit = nullptr;
  const float* logit_sum = nullptr;
  const float* inputs = nullptr;   ///< (n_seqs, kPreferenceInputs)
  float* sums = nullptr;           ///< (n_seqs, kPreferenceSums)
  float* token_weights = nullptr;  ///< (n_tokens)
  float* loss = nullptr;           ///< one number; null: not wanted
  PreferenceRule rule;
  float pair_weight = 0;   ///< of each pair in the loss
  float token_weight = 0;  ///< of each token of a chosen answer in the mean of -log p
};

struct PreferenceKernels {
  Kernel<WeighPairs> weigh_pairs;
};
extern const PreferenceKernels kCpuPreference, kCudaPreference;

struct LogitsState;  // cross_entropy/logits_state.h

/** Writes sums, token weights and, if it is defined, the loss of a micro-batch's pairs. `lse`
 * (tokens) of all words. */
void weigh_pairs(const BatchTensors& batch,
                 const LogitsState& state,
                 const at::Tensor& lse,
                 int64_t n_classes,
                 at::Tensor& loss);

}  // namespace ferry::ops
