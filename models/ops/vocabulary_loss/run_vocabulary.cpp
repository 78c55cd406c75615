#include <ATen/ops/index_select.h>

#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/run.h"
#include "models/ops/vocabulary_loss/vocabulary_loss.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"

namespace ferry::ops {

namespace {

/** The labels of the head's rows. */
at::Tensor labels_of(const OpCall& c, int64_t n_rows) {
  if (!c.batch.label_rows.defined()) return c.batch.labels;
  at::Tensor labels = c.scratch.take({n_rows}, at::kInt);
  at::index_select_out(labels, c.batch.labels, 0, c.batch.label_rows);
  return labels;
}

}  // namespace

void run_vocabulary_loss(const OpCall& c) {
  const LogitsRule& rule = c.op.with<VocabularyAttributes>().rule;
  const auto [word, bias] = c.params<VocabularyParams>();
  at::Tensor& lse = c.kept<VocabularyStates>().lse;
  if (c.part == Part::forward) {
    const at::Tensor& t = c.operands<VocabularyValues>().t;
    return vocabulary_loss_forward(t, word, bias, labels_of(c, t.size(0)), c.batch.label_smoothing,
                                   c.batch.loss_weight, lse, c.loss, c.logits, c.scratch, rule);
  }
  const auto [t, dt] = c.operands<VocabularyGrads>();
  const auto grads = c.grads<VocabularyParams>();
  vocabulary_loss_backward(t, word, bias, labels_of(c, t->size(0)), lse, c.batch.label_smoothing,
                           c.batch.loss_weight * c.batch.grad_scale, dt, grads.word, grads.bias,
                           c.scratch, rule);
}

void run_vocabulary_piece(const OpCall& c) {
  const auto& with = c.op.with<VocabularyAttributes>();
  const auto [word, bias] = c.params<VocabularyParams>();
  const WordRange words = {.word = *word,
                           .bias = *bias,
                           .first = with.first_word,
                           .vocab = c.target.vocab_size,
                           .rule = with.rule};
  if (c.part == Part::forward) {
    const auto o = c.operands<VocabularyPieceValues>();
    const int64_t rows = o.t->size(0);
    const at::Tensor labels = labels_of(c, rows);
    LogitsState state = LogitsState::at(o.state, rows, with.piece.is_first());
    take_words(o.t, words, labels, state, c.logits, c.scratch);
    if (!with.piece.is_last()) return;
    at::Tensor lse = o.lse->view({-1}).narrow(0, 0, rows);
    return cross_entropy_forward(state, labels, words.vocab, c.batch.label_smoothing,
                                 c.batch.loss_weight, lse, c.loss);
  }
  const auto [t, lse, before, dt] = c.operands<VocabularyPieceGrads>();
  const auto grads = c.grads<VocabularyParams>();
  const int64_t rows = t->size(0);
  const bool is_f32 = c.target.compute == DType::f32;
  // The last one's gradient is of the compute type: of 16 bits it is the sum, rounded.
  at::Tensor& sum = is_f32 || !with.piece.is_last() ? dt : before;
  words_backward(t, words, labels_of(c, rows), lse->view({-1}).narrow(0, 0, rows),
                 c.batch.label_smoothing, c.batch.loss_weight * c.batch.grad_scale, sum, grads.word,
                 grads.bias, c.scratch);
  if (with.piece.is_last() && !is_f32) dt->copy_(sum);
}

}  // namespace ferry::ops
