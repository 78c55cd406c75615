#pragma once
// The language-model head's loss on tensors, forward and backward; labels, `weight` and `factor` as
// in cross_entropy.h.

#include <functional>

#include "models/ops/operation.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"

namespace ferry {
class SharingRanks;
}  // namespace ferry

namespace ferry::ops {

struct LogitsState;  // cross_entropy/logits_state.h

/** Takes the state of all words and lse once they are known, in place of the mean over the tokens:
 * another loss of the same logits. */
using TakeFound = std::function<void(const LogitsState& state, const at::Tensor& lse)>;

/** Words [first, first + n) of a vocabulary that has its table in pieces of whole chunks, or of
 * which ranks have shares; or all. */
struct WordRange {
  const at::Tensor& word;  // (n, W)
  const at::Tensor& bias;  // (n) or undefined
  int64_t first = 0;
  int64_t vocab = 0;  ///< words of all pieces
  LogitsRule rule;
  bool are_first = true;  ///< of this rank's words: its part of dt begins with theirs
};

/** Cross entropy over a vocabulary, kVocabChunk words at a time: logits = t word^T + bias never
 * exist as a whole, and the backward computes them again. lse is kept for it. `logits`, if defined,
 * (rows, V) fp32, receives them all. A causal language model's labels are the next tokens: its
 * batch has them shifted. The rule says what becomes of the logits. `ranks`: those that have the
 * other words; null where all are here. `row_weights` of the backward pass as in cross_entropy.h.
 */
void vocabulary_loss_forward(const at::Tensor& t,  // (rows, W)
                             const WordRange& words,
                             const at::Tensor& labels,  // (rows) int32
                             float smoothing,
                             float weight,
                             at::Tensor& lse,
                             at::Tensor& loss,
                             at::Tensor& logits,
                             Scratch& scratch,
                             SharingRanks* ranks = nullptr,
                             const TakeFound& take = {});
/** dt summed over the chunks in fp32, dword and dbias (unless undefined) written whole. */
void vocabulary_loss_backward(const at::Tensor& t,
                              const WordRange& words,
                              const at::Tensor& labels,
                              const at::Tensor& lse,
                              float smoothing,
                              float factor,
                              at::Tensor& dt,
                              at::Tensor& dword,
                              const at::Tensor& dbias,
                              Scratch& scratch,
                              SharingRanks* ranks = nullptr,
                              const at::Tensor* row_weights = nullptr);

// The same piece by piece, ascending in both directions: the bits are those of the whole.

/** Takes the logits of these words into the state; end_words() ends it. */
void take_words(const at::Tensor& t,
                const WordRange& words,
                const at::Tensor& labels,
                LogitsState& state,
                at::Tensor& logits,
                Scratch& scratch);
/** lse and loss once all words are in the state, or all that this rank has. */
void end_words(const LogitsState& state,
               const WordRange& words,
               const at::Tensor& labels,
               float smoothing,
               float weight,
               at::Tensor& lse,
               at::Tensor& loss,
               Scratch& scratch,
               SharingRanks* ranks,
               const TakeFound& take = {});
/** Gradients of these words, whole, and their part of dt, which is added to `sum` (rows, W) fp32,
 * or is the first one in it. */
void words_backward(const at::Tensor& t,
                    const WordRange& words,
                    const at::Tensor& labels,
                    const at::Tensor& lse,
                    float smoothing,
                    float factor,
                    at::Tensor& sum,
                    at::Tensor& dword,
                    const at::Tensor& dbias,
                    Scratch& scratch,
                    const at::Tensor* row_weights = nullptr);

}  // namespace ferry::ops
