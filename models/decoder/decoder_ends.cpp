// The beginning and the end of a decoder: embeddings, and the last norm with the vocabulary and the
// loss of the next token, forward and backward.

#include "models/decoder/decoder_blocks.h"
#include "models/ops/fused.h"
#include "models/ops/losses.h"

namespace ferry::decoder {
namespace {

class Embeddings final : public Block {
 public:
  explicit Embeddings(const BlockSettings& settings) : settings_(settings) {}

  void forward(const RandomKey& key,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor&,
               at::Tensor& y,
               at::Tensor&,
               at::Tensor&) override {
    using namespace embeddings;
    const auto& p = memory.params;
    ops::embedding_forward(batch, p[word], has_positions(memory) ? p[position] : at::Tensor(), {},
                           y);
    if (dropout(key).p > 0) ops::dropout(y, dropout(key), y);
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor&,
                at::Tensor& dy,
                at::Tensor&) override {
    using namespace embeddings;
    auto& d = memory.grads;
    Scratch& scratch = *memory.scratch;
    if (dropout(key).p > 0) ops::dropout(dy, dropout(key), dy);
    ops::embedding_backward(batch.input_ids, dy, d[word], scratch);
    if (has_positions(memory))
      ops::embedding_backward(batch.position_ids, dy, d[position], scratch);
  }

 private:
  static bool has_positions(const BlockMemory& memory) {
    return memory.params.size() > embeddings::position;
  }
  ops::Dropout dropout(const RandomKey& key) const {
    return ops::dropout_of(key, embedding_dropout, settings_.hidden_dropout);
  }

  BlockSettings settings_;
};

/** The vocabulary without a bias, on all tokens; those without a label give no loss. */
void loss_forward(const BatchTensors& batch,
                  const at::Tensor& normed,
                  const at::Tensor& word,
                  at::Tensor& lse,
                  at::Tensor& loss,
                  at::Tensor& logits,
                  Scratch& scratch) {
  ops::vocabulary_loss_forward(normed, word, {}, batch.labels, batch.label_smoothing,
                               batch.loss_weight, lse, loss, logits, scratch);
}
void loss_backward(const BatchTensors& batch,
                   const at::Tensor& normed,
                   const at::Tensor& word,
                   const at::Tensor& lse,
                   at::Tensor& d_normed,
                   at::Tensor& d_word,
                   Scratch& scratch) {
  ops::vocabulary_loss_backward(normed, word, {}, batch.labels, lse, batch.label_smoothing,
                                batch.loss_weight * batch.grad_scale, d_normed, d_word, {},
                                scratch);
}

class LlamaHead final : public Block {
 public:
  explicit LlamaHead(const BlockSettings& settings) : settings_(settings) {}

  void forward(const RandomKey&,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor& x,
               at::Tensor&,
               at::Tensor& loss,
               at::Tensor& logits) override {
    using namespace llama_head;
    const auto& p = memory.params;
    auto& s = memory.saved;
    at::Tensor normed = memory.scratch->take(x.sizes(), x.scalar_type());
    ops::residual_rms_norm_forward(x, {}, p[norm_weight], settings_.norm_eps, {}, s[rstd], normed);
    loss_forward(batch, normed, p[word], s[lse], loss, logits, *memory.scratch);
  }

  void backward(const RandomKey&,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor&,
                at::Tensor& dx) override {
    using namespace llama_head;
    const auto& p = memory.params;
    auto& d = memory.grads;
    auto& s = memory.saved;
    at::Tensor normed = memory.scratch->take(x.sizes(), x.scalar_type());
    ops::rms_norm_apply(x, p[norm_weight], s[rstd], normed);
    loss_backward(batch, normed, p[word], s[lse], dx, d[word], *memory.scratch);
    ops::residual_rms_norm_backward(dx, x, p[norm_weight], s[rstd], {}, dx, d[norm_weight],
                                    *memory.scratch);
  }

 private:
  BlockSettings settings_;
};

class Gpt2Head final : public Block {
 public:
  explicit Gpt2Head(const BlockSettings& settings) : settings_(settings) {}

  void forward(const RandomKey&,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor& x,
               at::Tensor&,
               at::Tensor& loss,
               at::Tensor& logits) override {
    using namespace gpt2_head;
    const auto& p = memory.params;
    auto& s = memory.saved;
    ops::NormState state = {s[mean], s[rstd]};
    at::Tensor normed = memory.scratch->take(x.sizes(), x.scalar_type());
    ops::norm_dropout_forward(x, {p[norm_weight], p[norm_bias]}, settings_.norm_eps, {}, state,
                              normed);
    loss_forward(batch, normed, p[word], s[lse], loss, logits, *memory.scratch);
  }

  void backward(const RandomKey&,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor&,
                at::Tensor& dx) override {
    using namespace gpt2_head;
    const auto& p = memory.params;
    auto& d = memory.grads;
    auto& s = memory.saved;
    const ops::NormParams norm = {p[norm_weight], p[norm_bias]};
    const ops::NormState state = {s[mean], s[rstd]};
    ops::NormParams d_norm = {d[norm_weight], d[norm_bias]};
    at::Tensor normed = memory.scratch->take(x.sizes(), x.scalar_type());
    ops::norm_apply(x, norm, state, normed);
    loss_backward(batch, normed, p[word], s[lse], dx, d[word], *memory.scratch);
    ops::norm_dropout_backward(dx, x, norm, state, {}, {}, dx, d_norm, *memory.scratch);
  }

 private:
  BlockSettings settings_;
};

}  // namespace

std::unique_ptr<Block> make_embeddings(const BlockSettings& settings) {
  return std::make_unique<Embeddings>(settings);
}

std::unique_ptr<Block> make_llama_head(const BlockSettings& settings) {
  return std::make_unique<LlamaHead>(settings);
}

std::unique_ptr<Block> make_gpt2_head(const BlockSettings& settings) {
  return std::make_unique<Gpt2Head>(settings);
}

}  // namespace ferry::decoder
