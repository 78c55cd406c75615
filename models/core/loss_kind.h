#pragma once
// The loss of a run, and the head it belongs to. No torch.

#include <cstdint>

#include "models/core/tensor_table.h"

namespace ferry {

/** The kind of loss (the mean over all label tokens or samples of the step). For question
 * answering it is half the mean over the starts plus half the mean over the ends. */
enum class LossKind : uint8_t {
  cross_entropy,
  multi_label,
  regression,
  masked_lm,
  token_classification,
  question_answering,
  causal_lm,
  preference,  ///< of pairs of answers (models/core/preference.h); the mean over the pairs
  reward,      ///< the same of the numbers that a classifier gives (Bradley and Terry 1952)
  prompt,      ///< cross entropy of labels that words stand for
};

/** The head that a loss belongs to. */
constexpr HeadKind head_of(LossKind loss) {
  switch (loss) {
    case LossKind::cross_entropy:
    case LossKind::multi_label:
    case LossKind::regression:
    case LossKind::reward:
      return HeadKind::classification;
    case LossKind::masked_lm:
      return HeadKind::masked_lm;
    case LossKind::token_classification:
      return HeadKind::token_classification;
    case LossKind::question_answering:
      return HeadKind::question_answering;
    case LossKind::causal_lm:
    case LossKind::preference:
      return HeadKind::causal_lm;
    case LossKind::prompt:
      return HeadKind::prompt;
  }
  return HeadKind::classification;
}

}  // namespace ferry
