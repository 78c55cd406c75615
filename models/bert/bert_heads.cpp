// BERT's heads that classify a sequence or predict a word, forward and backward with their losses,
// on the layer operations.

#include <ATen/ops/index_select.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>

#include "models/bert/bert_blocks.h"
#include "models/bert/bert_table.h"
#include "models/ops/fused.h"
#include "models/ops/linear.h"
#include "models/ops/losses.h"

namespace ferry::bert {
namespace {

/** Pooler (dense, tanh) over each sequence's first token, dropout, classifier. Dummy sequences get
 * logits but no loss. */
class Classifier final : public Block {
 public:
  Classifier(const BlockSettings& settings, LossKind loss) : settings_(settings), loss_(loss) {}

  void forward(const RandomKey& key,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor& x,
               at::Tensor&,
               at::Tensor& loss,
               at::Tensor& logits_out) override {
    using namespace classifier;
    const auto& p = memory.params;
    Scratch& scratch = *memory.scratch;
    const int64_t n = batch.n_seqs, W = x.size(1);
    at::Tensor first = scratch.take({n, W}, x.scalar_type());
    at::Tensor dropped = scratch.take({n, W}, x.scalar_type());
    at::Tensor pooled = rows_of(memory.saved[classifier::pooled], n);
    at::Tensor logits = rows_of(memory.saved[classifier::logits], n);

    ops::gather_rows(x, batch.cu_seqlens, first);
    ops::linear_forward(first, p[pooler_weight], p[pooler_bias], pooled);
    pooled.tanh_();
    const at::Tensor input = dropped_out(key, pooled, dropped);
    ops::linear_forward_f32(input, p[weight], p[bias], logits, scratch);
    if (logits_out.defined()) logits_out.copy_(logits);
    if (!loss.defined()) return;

    const at::Tensor real = rows_of(logits, batch.n_seqs_real);
    if (batch.n_seqs_real == 0) {
      loss.zero_();
    } else if (loss_ == LossKind::cross_entropy) {
      ops::label_cross_entropy_forward(real, batch.labels, batch.label_smoothing, batch.loss_weight,
                                       loss, scratch);
    } else {
      ops::label_loss_forward(loss_, real, batch.labels, batch.loss_weight, loss);
    }
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor&,
                at::Tensor& dx) override {
    using namespace classifier;
    const auto& p = memory.params;
    auto& d = memory.grads;
    Scratch& scratch = *memory.scratch;
    const at::ScalarType type = x.scalar_type();
    const int64_t n = batch.n_seqs, W = x.size(1), L = p[weight].size(0);
    const at::Tensor pooled = rows_of(memory.saved[classifier::pooled], n);
    at::Tensor d_logits = scratch.take({n, L}, at::kFloat);
    at::Tensor rounded = type == at::kFloat ? d_logits : scratch.take({n, L}, type);
    at::Tensor first = scratch.take({n, W}, type);
    at::Tensor dropped = scratch.take({n, W}, type);
    at::Tensor d_pooled = scratch.take({n, W}, type);

    logits_gradient(batch, rows_of(memory.saved[classifier::logits], n), d_logits, scratch);
    if (type != at::kFloat) rounded.copy_(d_logits);
    const at::Tensor input = dropped_out(key, pooled, dropped);
    ops::linear_backward_weight(rounded, input, d[weight]);
    ops::column_sum(rounded, d[bias], scratch);
    ops::linear_backward_input(rounded, p[weight], d_pooled);
    if (dropout(key).p > 0) ops::dropout(d_pooled, dropout(key), d_pooled);
    at::tanh_backward_out(d_pooled, d_pooled, pooled);

    ops::gather_rows(x, batch.cu_seqlens, first);
    ops::linear_backward_weight(d_pooled, first, d[pooler_weight]);
    ops::column_sum(d_pooled, d[pooler_bias], scratch);
    at::Tensor d_first = dropped;
    ops::linear_backward_input(d_pooled, p[pooler_weight], d_first);
    ops::scatter_rows(d_first, batch.cu_seqlens, dx);
  }

 private:
  static at::Tensor rows_of(const at::Tensor& x, int64_t n) { return x.narrow(0, 0, n); }

  ops::Dropout dropout(const RandomKey& key) const {
    return key.training ? ops::Dropout{settings_.head_dropout, key.of(head_dropout)}
                        : ops::Dropout{};
  }

  /** The classifier's input: `room` filled, or pooled itself without dropout. */
  at::Tensor dropped_out(const RandomKey& key, const at::Tensor& pooled, at::Tensor& room) const {
    if (dropout(key).p == 0) return pooled;
    ops::dropout(pooled, dropout(key), room);
    return room;
  }

  void logits_gradient(const BatchTensors& batch,
                       const at::Tensor& logits,
                       at::Tensor& d_logits,
                       Scratch& scratch) const {
    const int64_t n = batch.n_seqs_real;
    const float factor = batch.loss_weight * batch.grad_scale;
    d_logits.narrow(0, n, d_logits.size(0) - n).zero_();
    if (n == 0) return;
    const at::Tensor real = rows_of(logits, n);
    at::Tensor d_real = rows_of(d_logits, n);
    if (loss_ != LossKind::cross_entropy)
      return ops::label_loss_backward(loss_, real, batch.labels, factor, d_real);
    ops::label_cross_entropy_backward(real, batch.labels, batch.label_smoothing, factor, d_real,
                                      scratch);
  }

  BlockSettings settings_;
  LossKind loss_;
};

/** Dense, gelu, norm, then the embeddings' matrix, a bias, and cross entropy; on the rows that have
 * a label when the batch names them, on all otherwise. */
class MaskedLm final : public Block {
 public:
  explicit MaskedLm(const BlockSettings& settings) : settings_(settings) {}

  void forward(const RandomKey&,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor& x,
               at::Tensor&,
               at::Tensor& loss,
               at::Tensor& logits_out) override {
    using namespace masked_lm;
    const auto& p = memory.params;
    Scratch& scratch = *memory.scratch;
    SavedRows s = saved_of(batch, memory, x);
    if (s.rows == 0) {
      if (loss.defined()) loss.zero_();
      return;
    }
    {
      const ScratchScope scope(scratch);
      const at::Tensor input = input_of(batch, x, s.rows, scratch);
      ops::linear_forward(input, p[dense_weight], {}, s.dense);
    }
    at::Tensor transformed = scratch.take({s.rows, x.size(1)}, x.scalar_type());
    ops::bias_gelu_forward(s.dense, p[dense_bias], s.dense, s.gelu);
    ops::norm_dropout_forward(s.gelu, {p[norm_weight], p[norm_bias]}, settings_.norm_eps, {},
                              s.norm, transformed);
    ops::vocabulary_loss_forward(transformed, p[word], p[decoder_bias],
                                 labels_of(batch, s.rows, scratch), batch.label_smoothing,
                                 batch.loss_weight, s.lse, loss, logits_out, scratch);
  }

  void backward(const RandomKey&,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor&,
                at::Tensor& dx) override {
    using namespace masked_lm;
    const auto& p = memory.params;
    auto& d = memory.grads;
    Scratch& scratch = *memory.scratch;
    SavedRows s = saved_of(batch, memory, x);
    if (s.rows == 0) {
      for (at::Tensor& grad : d)
        if (grad.defined()) grad.zero_();
      dx.zero_();
      return;
    }
    const ops::NormParams norm = {p[norm_weight], p[norm_bias]};
    ops::NormParams d_norm = {d[norm_weight], d[norm_bias]};
    at::Tensor transformed = scratch.take({s.rows, x.size(1)}, x.scalar_type());
    at::Tensor dt = scratch.take(transformed.sizes(), x.scalar_type());
    ops::norm_apply(s.gelu, norm, s.norm, transformed);
    {
      const ScratchScope scope(scratch);
      ops::vocabulary_loss_backward(transformed, p[word], p[decoder_bias],
                                    labels_of(batch, s.rows, scratch), s.lse, batch.label_smoothing,
                                    batch.loss_weight * batch.grad_scale, dt, d[word],
                                    d[decoder_bias], scratch);
    }
    ops::norm_dropout_backward(dt, s.gelu, norm, s.norm, {}, {}, dt, d_norm, scratch);
    ops::gelu_backward(dt, s.dense, dt, d[dense_bias], {}, scratch);
    {
      const ScratchScope scope(scratch);
      const at::Tensor input = input_of(batch, x, s.rows, scratch);
      ops::linear_backward_weight(dt, input, d[dense_weight]);
    }
    if (!batch.label_rows.defined()) return ops::linear_backward_input(dt, p[dense_weight], dx);
    at::Tensor d_input = transformed;
    ops::linear_backward_input(dt, p[dense_weight], d_input);
    ops::scatter_rows(d_input, batch.label_rows, dx);
  }

 private:
  /** The saved tensors' rows in use. */
  struct SavedRows {
    int64_t rows;
    at::Tensor dense, gelu, lse;
    ops::NormState norm;
  };
  static SavedRows saved_of(const BatchTensors& batch, BlockMemory& memory, const at::Tensor& x) {
    const int64_t rows = batch.label_rows.defined() ? batch.label_rows.size(0) : x.size(0);
    const auto part = [&](masked_lm::Saved which) {
      return memory.saved[which].narrow(0, 0, rows);
    };
    return {rows,
            part(masked_lm::dense),
            part(masked_lm::gelu),
            part(masked_lm::lse),
            {part(masked_lm::mean), part(masked_lm::rstd)}};
  }

  static at::Tensor input_of(const BatchTensors& batch,
                             const at::Tensor& x,
                             int64_t rows,
                             Scratch& scratch) {
    if (!batch.label_rows.defined()) return x;
    at::Tensor input = scratch.take({rows, x.size(1)}, x.scalar_type());
    ops::gather_rows(x, batch.label_rows, input);
    return input;
  }

  static at::Tensor labels_of(const BatchTensors& batch, int64_t rows, Scratch& scratch) {
    if (!batch.label_rows.defined()) return batch.labels;
    at::Tensor labels = scratch.take({rows}, at::kInt);
    at::index_select_out(labels, batch.labels, 0, batch.label_rows);
    return labels;
  }

  BlockSettings settings_;
};

}  // namespace

std::unique_ptr<Block> make_classifier(const BlockSettings& settings, LossKind loss) {
  return std::make_unique<Classifier>(settings, loss);
}

std::unique_ptr<Block> make_masked_lm(const BlockSettings& settings) {
  return std::make_unique<MaskedLm>(settings);
}

}  // namespace ferry::bert
