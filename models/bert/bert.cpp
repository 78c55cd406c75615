// BERT's embeddings and encoder layer, forward and backward, on the layer operations. Both
// directions read top to bottom as the data flows; the backward is the forward's mirror image.

#include <fmt/format.h>

#include <span>

#include "models/bert/bert_blocks.h"
#include "models/bert/bert_table.h"
#include "models/ops/attention.h"
#include "models/ops/fused.h"
#include "models/ops/linear.h"
#include "src/base/error.h"

namespace ferry::bert {
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
    ops::NormState state = {memory.saved[mean], memory.saved[rstd]};
    ops::embedding_forward(batch, p[word], p[position], p[token_type], y);
    ops::norm_dropout_forward(y, {p[norm_weight], p[norm_bias]}, settings_.norm_eps, dropout(key),
                              state, y);
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor&,
                at::Tensor& dy,
                at::Tensor&) override {
    using namespace embeddings;
    const auto& p = memory.params;
    auto& d = memory.grads;
    Scratch& scratch = *memory.scratch;
    {
      const ScratchScope scope(scratch);
      at::Tensor sum = scratch.take(dy.sizes(), dy.scalar_type());
      ops::embedding_forward(batch, p[word], p[position], p[token_type], sum);
      ops::NormParams d_norm = {d[norm_weight], d[norm_bias]};
      ops::norm_dropout_backward(dy, sum, {p[norm_weight], p[norm_bias]},
                                 {memory.saved[mean], memory.saved[rstd]}, {}, dropout(key), dy,
                                 d_norm, scratch);
    }
    ops::embedding_backward(batch.input_ids, dy, d[word], scratch);
    ops::embedding_backward(batch.position_ids, dy, d[position], scratch);
    ops::embedding_backward(batch.type_ids, dy, d[token_type], scratch);
  }

 private:
  ops::Dropout dropout(const RandomKey& key) const {
    return ops::dropout_of(key, embedding_dropout, settings_.hidden_dropout);
  }

  BlockSettings settings_;
};

class Layer final : public Block {
 public:
  explicit Layer(const BlockSettings& settings) : settings_(settings) {}

  std::optional<GraphShape> graph_shape(const BatchTensors& batch) const override {
    return ops::attention_graph_shape(settings_.attention, batch);
  }

  void forward(const RandomKey& key,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor& x,
               at::Tensor& y,
               at::Tensor&,
               at::Tensor&) override {
    using namespace layer;
    const auto& p = memory.params;
    auto& s = memory.saved;
    Scratch& scratch = *memory.scratch;
    const int64_t T = x.size(0), W = x.size(1), F = p[up_weight].size(0);

    ops::linear_forward(x, p[qkv_weight], p[qkv_bias], s[qkv]);
    ops::attention_forward(attention(key), batch, s[qkv], attention_state_of(memory), s[context],
                           scratch);

    at::Tensor attended = scratch.take({T, W}, x.scalar_type());
    at::Tensor activated = scratch.take({T, F}, x.scalar_type());
    ops::NormState attention_norm = {s[attention_mean], s[attention_rstd]};
    ops::linear_forward(s[context], p[attention_dense_weight], {}, s[attention_sum]);
    ops::dropout_residual_norm_forward(s[attention_sum], p[attention_dense_bias], x,
                                       {p[attention_norm_weight], p[attention_norm_bias]},
                                       settings_.norm_eps, hidden_dropout(key, attention_output),
                                       s[attention_sum], attention_norm, attended);

    ops::linear_forward(attended, p[up_weight], {}, s[up]);
    ops::bias_gelu_forward(s[up], p[up_bias], s[up], activated);
    ops::NormState norm = {s[mean], s[rstd]};
    ops::linear_forward(activated, p[down_weight], {}, s[sum]);
    ops::dropout_residual_norm_forward(s[sum], p[down_bias], attended,
                                       {p[norm_weight], p[norm_bias]}, settings_.norm_eps,
                                       hidden_dropout(key, layer_output), s[sum], norm, y);
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor& dy,
                at::Tensor& dx) override {
    using namespace layer;
    const auto& p = memory.params;
    auto& d = memory.grads;
    auto& s = memory.saved;
    Scratch& scratch = *memory.scratch;
    const at::ScalarType type = x.scalar_type();
    const int64_t T = x.size(0), W = x.size(1), F = p[up_weight].size(0);

    // Second norm: dy becomes the gradient of its sum, so of the residual, too.
    at::Tensor narrow = scratch.take({T, W}, type);
    const ops::NormParams norm = {p[norm_weight], p[norm_bias]};
    ops::NormParams d_norm = {d[norm_weight], d[norm_bias]};
    ops::dropout_residual_norm_backward(dy, s[sum], norm, {s[mean], s[rstd]}, {},
                                        hidden_dropout(key, layer_output), dy, narrow, d_norm,
                                        d[down_bias], scratch);
    {
      const ScratchScope scope(scratch);
      at::Tensor wide = scratch.take({T, F}, type);
      at::Tensor activated = scratch.take({T, F}, type);
      ops::linear_backward_input(narrow, p[down_weight], wide);
      ops::gelu_backward(wide, s[up], wide, d[up_bias], activated, scratch);
      ops::linear_backward_weight(narrow, activated, d[down_weight]);
      // The first norm's output, which the forward did not keep.
      at::Tensor attended = narrow;
      ops::norm_apply(s[attention_sum], {p[attention_norm_weight], p[attention_norm_bias]},
                      {s[attention_mean], s[attention_rstd]}, attended);
      ops::linear_backward_weight(wide, attended, d[up_weight]);
      ops::linear_backward_input_add(wide, p[up_weight], dy, dy);
    }

    ops::NormParams d_attention_norm = {d[attention_norm_weight], d[attention_norm_bias]};
    ops::dropout_residual_norm_backward(
        dy, s[attention_sum], {p[attention_norm_weight], p[attention_norm_bias]},
        {s[attention_mean], s[attention_rstd]}, {}, hidden_dropout(key, attention_output), dy,
        narrow, d_attention_norm, d[attention_dense_bias], scratch);
    at::Tensor d_context = scratch.take({T, W}, type);
    at::Tensor d_qkv = scratch.take({T, 3 * W}, type);
    ops::linear_backward_weight(narrow, s[context], d[attention_dense_weight]);
    ops::linear_backward_input(narrow, p[attention_dense_weight], d_context);
    ops::attention_backward(attention(key), batch, d_context, s[qkv], attention_state_of(memory),
                            s[context], d_qkv, d[qkv_bias], scratch);
    ops::linear_backward_weight(d_qkv, x, d[qkv_weight]);
    // A key bias adds the same to every score of a row, which softmax does not see: its gradient is
    // zero, and what the sum holds there is rounding error that AdamW would blow up to full steps.
    d[qkv_bias].narrow(0, W, W).zero_();
    ops::linear_backward_input_add(d_qkv, p[qkv_weight], dy, dx);
  }

  void recompute(BlockMemory& memory) override {
    using namespace layer;
    const auto& p = memory.params;
    auto& s = memory.saved;
    at::Tensor attended = memory.scratch->take(s[attention_sum].sizes(), s[up].scalar_type());
    at::Tensor activated = memory.scratch->take(s[up].sizes(), s[up].scalar_type());
    ops::norm_apply(s[attention_sum], {p[attention_norm_weight], p[attention_norm_bias]},
                    {s[attention_mean], s[attention_rstd]}, attended);
    ops::linear_forward(attended, p[up_weight], {}, s[up]);
    ops::bias_gelu_forward(s[up], p[up_bias], s[up], activated);
  }

 private:
  ops::Dropout hidden_dropout(const RandomKey& key, Operation operation) const {
    return ops::dropout_of(key, operation, settings_.hidden_dropout);
  }
  ops::Attention attention(const RandomKey& key) const {
    return {settings_.attention, settings_.n_heads,
            ops::dropout_of(key, attention_probs, settings_.attention_dropout)};
  }
  static std::span<at::Tensor> attention_state_of(BlockMemory& memory) {
    return std::span(memory.saved).subspan(layer::attention_state);
  }

  BlockSettings settings_;
};

}  // namespace

std::unique_ptr<Block> make_embeddings(const BlockSettings& settings) {
  return std::make_unique<Embeddings>(settings);
}

std::unique_ptr<Block> make_layer(const BlockSettings& settings) {
  return std::make_unique<Layer>(settings);
}

}  // namespace ferry::bert
