#include <ATen/ops/index_select.h>

#include <algorithm>

#include "models/ops/all_reduce/all_reduce.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/preference/preference_loss.h"
#include "models/ops/run.h"
#include "models/ops/vocabulary_loss/vocabulary_loss.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"
#include "src/base/bytes.h"

namespace ferry::ops {

namespace {

/** The labels of the head's rows. */
at::Tensor labels_of(const OpCall& c, int64_t n_rows) {
  if (!c.batch.label_rows.defined()) return c.batch.labels;
  at::Tensor labels = c.scratch.take({n_rows}, at::kInt);
  at::index_select_out(labels, c.batch.labels, 0, c.batch.label_rows);
  return labels;
}

/** The words that this rank has of a table's rows, which begin with word `first`: all, or where
 * ranks share the layer a share. */
struct OwnWords {
  at::Tensor word, bias, d_word, d_bias;
  int64_t first = 0;

  OwnWords(const OpCall& c, int64_t first_of_table) : first(first_of_table) {
    const auto of = c.params<VocabularyParams>();
    word = of.word, bias = of.bias;
    if (c.part == Part::backward) {
      const auto grads = c.grads<VocabularyParams>();
      d_word = grads.word, d_bias = grads.bias;
    }
    SharingRanks* const ranks = others(c);
    if (!ranks) return;
    constexpr int64_t kMultiple = 64;  // products are fast
    const int64_t n = word.size(0),
                  each = round_up((n + ranks->world() - 1) / ranks->world(), kMultiple);
    const int64_t begin = std::min(n, ranks->rank() * each);
    first += begin;
    for (at::Tensor* x : {&word, &bias, &d_word, &d_bias})
      if (x->defined()) *x = x->narrow(0, begin, std::min(each, n - begin));
  }
  /** Leads to the ranks that have the other words; null: there are none. A generation's logits are
   * all on each rank. */
  static SharingRanks* others(const OpCall& c) {
    const bool are_shared = c.target.sharing.tp_size > 1 && !c.logits.defined();
    return are_shared ? &c.sharing_ranks() : nullptr;
  }
  WordRange range(const OpCall& c, bool are_first) const {
    return {.word = word,
            .bias = bias,
            .first = first,
            .vocab = c.target.vocab_size,
            .rule = c.op.with<VocabularyAttributes>().rule,
            .are_first = are_first};
  }
};

/** Pairs of answers have another loss by the same logits. */
TakeFound taker(const OpCall& c) {
  if (!c.batch.preferences.rule) return {};
  return [&c](const LogitsState& state, const at::Tensor& lse) {
    weigh_pairs(c.batch, state, lse, c.target.vocab_size, c.loss);
  };
}

/** Those of the tokens, where the loss has some. */
const at::Tensor* row_weights_of(const OpCall& c) {
  return c.batch.preferences.rule ? &c.batch.preferences.token_weights : nullptr;
}

/** The factor of all gradients: the weights of tokens have what the loss weighs a pair by. */
float factor_of(const OpCall& c) {
  return c.batch.preferences.rule ? c.batch.grad_scale : c.batch.loss_weight * c.batch.grad_scale;
}

}  // namespace

void run_vocabulary_loss(const OpCall& c) {
  const OwnWords own(c, 0);
  const WordRange words = own.range(c, /*are_first=*/true);
  at::Tensor& lse = c.kept<VocabularyStates>().lse;
  if (c.part == Part::forward) {
    const at::Tensor& t = c.operands<VocabularyValues>().t;
    return vocabulary_loss_forward(t, words, labels_of(c, t.size(0)), c.batch.label_smoothing,
                                   c.batch.loss_weight, lse, c.loss, c.logits, c.scratch,
                                   own.others(c), taker(c));
  }
  const auto [t, dt] = c.operands<VocabularyGrads>();
  at::Tensor d_word = own.d_word;
  vocabulary_loss_backward(t, words, labels_of(c, t->size(0)), lse, c.batch.label_smoothing,
                           factor_of(c), dt, d_word, own.d_bias, c.scratch, own.others(c),
                           row_weights_of(c));
}

void run_vocabulary_piece(const OpCall& c) {
  const auto& with = c.op.with<VocabularyAttributes>();
  const OwnWords own(c, with.first_word);
  const WordRange words = own.range(c, with.piece.is_first());
  if (c.part == Part::forward) {
    const auto o = c.operands<VocabularyPieceValues>();
    const int64_t rows = o.t->size(0);
    const at::Tensor labels = labels_of(c, rows);
    LogitsState state = LogitsState::at(o.state, rows, with.piece.is_first());
    take_words(o.t, words, labels, state, c.logits, c.scratch);
    if (!with.piece.is_last()) return;
    at::Tensor lse = o.lse->view({-1}).narrow(0, 0, rows);
    return end_words(state, words, labels, c.batch.label_smoothing, c.batch.loss_weight, lse,
                     c.loss, c.scratch, own.others(c), taker(c));
  }
  const auto [t, lse, before, dt] = c.operands<VocabularyPieceGrads>();
  const int64_t rows = t->size(0);
  const bool is_f32 = c.target.compute == DType::f32;
  // The last one's gradient is of the compute type: of 16 bits it is the sum, rounded.
  at::Tensor& sum = is_f32 || !with.piece.is_last() ? dt : before;
  at::Tensor d_word = own.d_word;
  words_backward(t, words, labels_of(c, rows), lse->view({-1}).narrow(0, 0, rows),
                 c.batch.label_smoothing, factor_of(c), sum, d_word, own.d_bias, c.scratch,
                 row_weights_of(c));
  if (!with.piece.is_last()) return;
  if (SharingRanks* const others = own.others(c)) all_reduce(*others, sum, sum, c.scratch);
  if (!is_f32) dt->copy_(sum);
}

}  // namespace ferry::ops
