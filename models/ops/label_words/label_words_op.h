#pragma once
// The logits of labels, by the logits of the words that stand for them.
#include "models/core/operation.h"
#include "models/core/prompt.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"

namespace ferry::ops {

/** A label's logit is the mean of its words' logits, less what makes all words' probabilities add
 * up to 1. */
struct LabelWordsAttributes {
  LabelWords labels;
  LogitsRule rule;
};

/** `bias` may be absent. */
template <class T>
struct LabelWordsParams {
  T word, bias;
  static constexpr std::array<std::string_view, 2> kNames = {"word", "bias"};
};

template <class T>
struct LabelWordsValues {
  T t, logits;
  static constexpr std::array<std::string_view, 2> kNames = {"t", "logits"};
};

/** The rows of d_logits add up to 0, as those of a cross entropy do. */
template <class T>
struct LabelWordsGrads {
  T d_logits, t, dt;
  static constexpr std::array<std::string_view, 3> kNames = {"d_logits", "t", "dt"};
};

extern const OpDef kLabelWords;

}  // namespace ferry::ops
