#include "models/ops/op_code.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <fmt/format.h>

#include "models/ops/activation/activation.h"
#include "models/ops/attention/attention.h"
#include "models/ops/attention/cached_attention.h"
#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/embedding/embedding.h"
#include "models/ops/gate/gate.h"
#include "models/ops/head_norm/head_norm.h"
#include "models/ops/label_loss/label_loss.h"
#include "models/ops/linear/linear.h"
#include "models/ops/norm/norm.h"
#include "models/ops/norm/norm_params.h"
#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rotary/rotary.h"
#include "models/ops/rows/rows.h"
#include "models/ops/span_loss/span_loss.h"
#include "models/ops/vocabulary_loss/vocabulary_loss.h"
#include "src/base/error.h"

namespace ferry {

at::Tensor& OpCall::of(std::vector<at::Tensor>& tensors, size_t i) const {
  static at::Tensor none;
  const ParamId param = i < op.params.size() ? op.params[i] : kNone;
  return param == kNone ? none : tensors[static_cast<size_t>(param)];
}

namespace {

ops::Dropout dropout_of(const OpCall& c) {
  return ops::dropout_of(c.key, c.op.with.random, c.op.with.dropout);
}

float rounded(float x, DType type) {
  if (type == DType::bf16) return static_cast<float>(at::BFloat16(x));
  return type == DType::f16 ? static_cast<float>(at::Half(x)) : x;
}

/** The rows of a table, which may be undefined, from one on. */
at::Tensor rows_from(const at::Tensor& table, int64_t first) {
  if (!table.defined() || first == 0) return table;
  return table.narrow(0, first, table.size(0) - first);
}

void embedding(const OpCall& c) {
  const bool has_words = !c.op.in.empty();
  const int64_t first = c.op.with.rows.position_offset;
  const float scale = rounded(c.op.with.rows.word_scale, c.target.compute);
  if (c.part != Part::backward) {
    at::Tensor& y = c.places.back();
    const at::Tensor position = rows_from(c.param(1), first);
    if (has_words) return ops::add_embeddings(c.batch, c.places[0], position, c.param(2), y);
    return ops::embedding_forward(c.batch, c.param(0), position, c.param(2), y, scale,
                                  c.op.with.first_word);
  }
  at::Tensor& y = c.places[0];  // its gradient
  if (has_words) c.places[1].copy_(y);
  ops::embedding_backward(c.batch.input_ids, y, c.grad(0), c.scratch, scale, c.op.with.first_word);
  if (c.grad(1).defined() && first > 0) c.grad(1).narrow(0, 0, first).zero_();
  at::Tensor d_position = rows_from(c.grad(1), first);
  ops::embedding_backward(c.batch.position_ids, y, d_position, c.scratch);
  ops::embedding_backward(c.batch.type_ids, y, c.grad(2), c.scratch);
}

void linear(const OpCall& c) {
  const auto& w = c.param(0);
  if (c.part == Part::forward) {
    const at::Tensor &x = c.places[0], &residual = c.places[1];
    FERRY_CHECK(!residual.defined() || !c.param(1).defined(),
                "a linear map with a bias and a residual");
    if (residual.defined()) return ops::linear_forward_add(x, w, residual, c.places[2]);
    return ops::linear_forward(x, w, c.param(1), c.places[2]);
  }
  const at::Tensor& dy = c.places[0];
  if (c.part == Part::params) {
    ops::linear_backward_weight(dy, c.places[1], c.grad(0));
    if (c.param(1).defined() && !c.op.with.sums_bias) ops::column_sum(dy, c.grad(1), c.scratch);
    return;
  }
  if (c.places[2].defined()) return ops::linear_backward_input_add(dy, w, c.places[2], c.places[1]);
  ops::linear_backward_input(dy, w, c.places[1]);
}

void norm(const OpCall& c) {
  const ops::NormParams params = {c.param(0), c.param(1)};
  const float eps = c.op.with.eps;
  if (c.part == Part::forward) {
    ops::NormState state = {c.places[2], c.places[3]};
    return ops::norm_dropout_forward(c.places[0], params, eps, dropout_of(c), state, c.places[1]);
  }
  if (c.part == Part::remake)
    return ops::norm_apply(c.places[0], params, {c.places[1], c.places[2]}, c.places[3]);
  ops::NormParams grads = {c.grad(0), c.grad(1)};
  ops::norm_dropout_backward(c.places[0], c.places[1], params, {c.places[2], c.places[3]},
                             c.places[4], dropout_of(c), c.places[5], grads, c.scratch);
}

void residual_norm(const OpCall& c) {
  if (c.part == Part::remake) return norm(c);
  const ops::NormParams params = {c.param(0), c.param(1)};
  if (c.part == Part::forward) {
    ops::NormState state = {c.places[4], c.places[5]};
    return ops::dropout_residual_norm_forward(c.places[0], c.param(2), c.places[1], params,
                                              c.op.with.eps, dropout_of(c), c.places[2], state,
                                              c.places[3]);
  }
  ops::NormParams grads = {c.grad(0), c.grad(1)};
  ops::dropout_residual_norm_backward(c.places[0], c.places[1], params, {c.places[2], c.places[3]},
                                      c.places[4], dropout_of(c), c.places[5], c.places[6], grads,
                                      c.grad(2), c.scratch);
}

void rms_norm(const OpCall& c) {
  const auto& weight = c.param(0);
  const float offset = c.op.with.weight_offset;
  if (c.part == Part::forward)
    return ops::residual_rms_norm_forward(c.places[0], c.places[1], weight, c.op.with.eps,
                                          c.places[2], c.places[4], c.places[3], offset);
  if (c.part == Part::remake)
    return ops::rms_norm_apply(c.places[0], weight, c.places[1], c.places[2], offset);
  ops::residual_rms_norm_backward(c.places[0], c.places[1], weight, c.places[2], c.places[3],
                                  c.places[4], c.grad(0), c.scratch, offset);
}

void attention(const OpCall& c) {
  const auto& with = c.op.with;
  const ops::Attention attention = {.backend = c.target.attention,
                                    .n_heads = with.n_heads,
                                    .dropout = dropout_of(c),
                                    .n_kv_heads = with.n_kv_heads,
                                    .causal = with.causal,
                                    .scale = with.scores.scale,
                                    .window = with.scores.window,
                                    .soft_cap = with.scores.soft_cap};
  if (c.part == Part::forward) {
    if (!c.batch.cache_places.empty()) {
      ops::append_to_cache(attention, c.batch, c.places[0], c.memory.cache);
      if (ops::has_cached_tokens(c.batch))
        return ops::cached_attention(attention, c.batch, c.places[0], c.memory.cache, c.places[1],
                                     c.scratch);
    }
    return ops::attention_forward(attention, c.batch, c.places[0], c.places.subspan(2), c.places[1],
                                  c.scratch);
  }
  const auto states = c.places.subspan(3, c.places.size() - 4);
  ops::attention_backward(attention, c.batch, c.places[0], c.places[1], states, c.places[2],
                          c.places.back(), c.grad(0), c.scratch);
  // A cap makes softmax see what is added to all scores of a row.
  if (!c.grad(0).defined() || with.scores.soft_cap > 0) return;
  // A key bias adds the same to every score of a row, which softmax does not see: its gradient is
  // zero, and what the sum holds there is rounding error that AdamW would blow up to full steps.
  c.grad(0).narrow(0, with.n_heads * with.head_width, with.n_kv_heads * with.head_width).zero_();
}

ops::Rotary rotary_of(const OpAttributes& with) {
  return {.n_heads = with.n_heads,
          .n_kv_heads = with.n_kv_heads,
          .frequencies = with.rope.frequencies,
          .long_frequencies = with.rope.long_frequencies,
          .factor = with.rope.factor,
          .interleaved = with.interleaved};
}

void rotary(const OpCall& c) {
  const ops::Rotary rotary = rotary_of(c.op.with);
  if (c.part == Part::forward)
    return ops::rotary_forward(rotary, c.batch.position_ids, c.places[1]);
  ops::rotary_backward(rotary, c.batch.position_ids, c.places[1]);
}

void head_norm(const OpCall& c) {
  const auto& with = c.op.with;
  const ops::Rotary rotary = rotary_of(with);
  const ops::HeadNorm norm = {.n_heads = with.n_heads,
                              .n_kv_heads = with.n_kv_heads,
                              .eps = with.eps,
                              .weight_offset = with.weight_offset};
  if (c.part == Part::backward) {
    ops::rotary_backward(rotary, c.batch.position_ids, c.places[0]);
    return ops::head_norm_backward(norm, c.places[1], c.param(0), c.param(1), c.places[2],
                                   c.places[0], c.grad(0), c.grad(1), c.scratch);
  }
  const bool is_forward = c.part == Part::forward;  // the other order of places is a remake's
  at::Tensor &rstd = c.places[is_forward ? 2 : 1], &y = c.places[is_forward ? 1 : 2];
  ops::head_norm_forward(norm, c.places[0], c.param(0), c.param(1), rstd, y);
  ops::rotary_forward(rotary, c.batch.position_ids, y);
}

void activation(const OpCall& c) {
  const Activation kind = c.op.with.activation;
  if (c.part == Part::forward)
    return ops::activation_forward(kind, c.places[0], c.param(0), c.places[1], c.places[2]);
  ops::activation_backward(kind, c.places[0], c.places[1], c.places[2], c.grad(0), c.places[3],
                           c.scratch);
}

void gate(const OpCall& c) {
  const Activation kind = c.op.with.activation;
  if (c.part == Part::forward) return ops::gate_forward(kind, c.places[0], c.places[1]);
  ops::gate_backward(kind, c.places[0], c.places[1], c.places[2], c.places[3]);
}

void dropout(const OpCall& c) {
  const at::Tensor& x = c.places[0];
  at::Tensor& y = c.places[1];
  if (const ops::Dropout dropout = dropout_of(c); dropout.p > 0) return ops::dropout(x, dropout, y);
  if (!y.is_alias_of(x)) y.copy_(x);
}

void dropout_residual(const OpCall& c) {
  if (c.part == Part::forward)
    return ops::dropout_residual_forward(c.places[0], c.param(0), c.places[1], dropout_of(c),
                                         c.places[2]);
  if (c.op.params[0] == kNone) return dropout(c);
  ops::dropout_residual_backward(c.places[0], dropout_of(c), c.places[1], c.grad(0), c.scratch);
}

void add(const OpCall& c) {
  ops::dropout_residual_forward(c.places[0], {}, c.places[1], {}, c.places[2]);
}

void rows(const OpCall& c, const at::Tensor& which) {
  const at::Tensor& x = c.places[0];
  at::Tensor& y = c.places[1];
  if (!which.defined()) {
    y.copy_(x);  // all of them
  } else if (c.part == Part::backward) {
    ops::scatter_rows(x, which, y);
  } else {
    ops::gather_rows(x, which, y);
  }
}

void last_rows(const OpCall& c) {
  const int64_t n = c.batch.n_seqs;
  at::Tensor which = c.scratch.take({n}, at::kInt);
  at::sub_out(which, c.batch.cu_seqlens.narrow(0, 1, n), 1);
  rows(c, which);
}

void tanh(const OpCall& c) {
  if (c.part == Part::forward) {
    at::tanh_out(c.places[1], c.places[0]);
    return;
  }
  at::tanh_backward_out(c.places[2], c.places[0], c.places[1]);
}

void logits(const OpCall& c) {
  const auto& w = c.param(0);
  const bool is_f32 = c.target.compute == DType::f32;
  if (c.part == Part::forward) {
    at::Tensor& out = c.places[1];
    if (!c.op.with.by_column)
      return ops::linear_forward_f32(c.places[0], w, c.param(1), out, c.scratch);
    at::Tensor by_row = c.scratch.take({out.size(1), out.size(0)}, at::kFloat);
    ops::linear_forward_f32(c.places[0], w, c.param(1), by_row, c.scratch);
    out.copy_(by_row.t());
    return;
  }
  const at::Tensor &d_logits = c.places[0], &x = c.places[1];
  at::Tensor rounded = d_logits;
  if (c.op.with.by_column) {
    rounded = c.scratch.take({d_logits.size(1), d_logits.size(0)}, x.scalar_type());
    rounded.copy_(d_logits.t());
  } else if (!is_f32) {
    rounded = c.scratch.take(d_logits.sizes(), x.scalar_type());
    rounded.copy_(d_logits);
  }
  ops::linear_backward_weight(rounded, x, c.grad(0));
  // A bias adds the same to all of a sequence's span logits, which softmax does not see: its
  // gradient is zero, and a sum would give it rounding errors that AdamW blows up to full steps.
  if (c.op.with.by_column && c.grad(1).defined()) {
    c.grad(1).zero_();
  } else if (c.grad(1).defined()) {
    ops::column_sum(rounded, c.grad(1), c.scratch);
  }
  ops::linear_backward_input(rounded, w, c.places[2]);
}

/** Sequences of the dummy tail have logits but no loss. */
void label_loss(const OpCall& c) {
  const bool is_by_token = c.loss_kind == LossKind::token_classification;
  const at::Tensor& all = c.places[0];
  const int64_t n = is_by_token ? all.size(0) : c.batch.n_seqs_real;
  const at::Tensor real = all.narrow(0, 0, n);
  const bool is_cross_entropy = is_by_token || c.loss_kind == LossKind::cross_entropy;
  const at::Tensor& weights = c.batch.class_weights;
  if (c.part == Part::forward) {
    if (c.logits.defined()) c.logits.copy_(all);
    if (!c.loss.defined()) return;
    if (n == 0) {
      c.loss.zero_();
    } else if (weights.defined()) {
      ops::weighted_cross_entropy_forward(real, c.batch.labels, weights, c.batch.label_smoothing,
                                          c.batch.loss_weight, c.loss);
    } else if (is_cross_entropy) {
      ops::label_cross_entropy_forward(real, c.batch.labels, c.batch.label_smoothing,
                                       c.batch.loss_weight, c.loss, c.scratch);
    } else {
      ops::label_loss_forward(c.loss_kind, real, c.batch.labels, c.batch.loss_weight, c.loss);
    }
    return;
  }
  at::Tensor& d_all = c.places[1];
  const float factor = c.batch.loss_weight * c.batch.grad_scale;
  if (n < d_all.size(0)) d_all.narrow(0, n, d_all.size(0) - n).zero_();
  if (n == 0) return;
  at::Tensor d_real = d_all.narrow(0, 0, n);
  if (weights.defined())
    ops::weighted_cross_entropy_backward(real, c.batch.labels, weights, c.batch.label_smoothing,
                                         factor, d_real);
  else if (is_cross_entropy)
    ops::label_cross_entropy_backward(real, c.batch.labels, c.batch.label_smoothing, factor, d_real,
                                      c.scratch);
  else
    ops::label_loss_backward(c.loss_kind, real, c.batch.labels, factor, d_real);
}

void span_loss(const OpCall& c) {
  const at::Tensor& logits = c.places[0];
  at::Tensor lse = c.places[1].narrow(0, 0, c.batch.n_seqs_real);
  if (c.part == Part::forward) {
    if (c.logits.defined()) c.logits.copy_(logits.t());
    return ops::span_loss_forward(logits, c.batch, lse, c.loss, c.scratch);
  }
  ops::span_loss_backward(logits, c.batch, lse, c.places[2]);
}

/** The labels of the head's rows. */
at::Tensor labels_of(const OpCall& c) {
  if (!c.batch.label_rows.defined()) return c.batch.labels;
  at::Tensor labels = c.scratch.take({c.places[0].size(0)}, at::kInt);
  at::index_select_out(labels, c.batch.labels, 0, c.batch.label_rows);
  return labels;
}

void vocabulary_piece(const OpCall& c) {
  const at::Tensor& t = c.places[0];
  const int64_t rows = t.size(0);
  const at::Tensor labels = labels_of(c);
  const VocabularyPiece& piece = c.op.with.piece;
  const ops::WordRange words = {.word = c.param(0),
                                .bias = c.param(1),
                                .first = c.op.with.first_word,
                                .vocab = c.target.vocab_size,
                                .soft_cap = c.op.with.soft_cap};
  if (c.part == Part::forward) {
    ops::LogitsState state = ops::LogitsState::at(c.memory.logits_state, rows, piece.is_first());
    ops::take_words(t, words, labels, state, c.logits, c.scratch);
    if (!piece.is_last()) return;
    at::Tensor lse = c.memory.lse.narrow(0, 0, rows);
    return ops::cross_entropy_forward(state, labels, words.vocab, c.batch.label_smoothing,
                                      c.batch.loss_weight, lse, c.loss);
  }
  const bool is_f32 = c.target.compute == DType::f32;
  // The last one's gradient is of the compute type: of 16 bits it is the sum, rounded.
  at::Tensor& sum = c.places[is_f32 || !piece.is_last() ? 2 : 1];
  ops::words_backward(t, words, labels, c.memory.lse.narrow(0, 0, rows), c.batch.label_smoothing,
                      c.batch.loss_weight * c.batch.grad_scale, sum, c.grad(0), c.grad(1),
                      c.scratch);
  if (piece.is_last() && !is_f32) c.places[2].copy_(sum);
}

void vocabulary_loss(const OpCall& c) {
  const at::Tensor& t = c.places[0];
  at::Tensor& lse = c.places[1];
  const at::Tensor labels = labels_of(c);
  if (c.part == Part::forward)
    return ops::vocabulary_loss_forward(t, c.param(0), c.param(1), labels, c.batch.label_smoothing,
                                        c.batch.loss_weight, lse, c.loss, c.logits, c.scratch,
                                        c.op.with.soft_cap);
  ops::vocabulary_loss_backward(t, c.param(0), c.param(1), labels, lse, c.batch.label_smoothing,
                                c.batch.loss_weight * c.batch.grad_scale, c.places[2], c.grad(0),
                                c.grad(1), c.scratch, c.op.with.soft_cap);
}

}  // namespace

void run_op(const OpCall& call) {
  switch (call.op.kind) {
    case OpKind::embedding:
      return embedding(call);
    case OpKind::linear:
      return linear(call);
    case OpKind::norm:
      return norm(call);
    case OpKind::residual_norm:
      return residual_norm(call);
    case OpKind::rms_norm:
      return rms_norm(call);
    case OpKind::head_norm:
      return head_norm(call);
    case OpKind::attention:
      return attention(call);
    case OpKind::rotary:
      return rotary(call);
    case OpKind::activation:
      return activation(call);
    case OpKind::gate:
      return gate(call);
    case OpKind::dropout_residual:
      return dropout_residual(call);
    case OpKind::add:
      return add(call);
    case OpKind::dropout:
      return dropout(call);
    case OpKind::first_rows:
      return rows(call, call.batch.cu_seqlens);
    case OpKind::last_rows:
      return last_rows(call);
    case OpKind::labelled_rows:
      return rows(call, call.batch.label_rows);
    case OpKind::tanh:
      return tanh(call);
    case OpKind::logits:
      return logits(call);
    case OpKind::label_loss:
      return label_loss(call);
    case OpKind::span_loss:
      return span_loss(call);
    case OpKind::vocabulary_loss:
      return vocabulary_loss(call);
    case OpKind::vocabulary_piece:
      return vocabulary_piece(call);
  }
}

}  // namespace ferry
