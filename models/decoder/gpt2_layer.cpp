// GPT-2's layer, forward and backward, on the layer operations. Both directions read top to bottom
// as the data flows; the backward is the forward's mirror image.

#include <span>

#include "models/decoder/decoder_blocks.h"
#include "models/ops/attention.h"
#include "models/ops/fused.h"
#include "models/ops/linear.h"

namespace ferry::decoder {
namespace {

class Gpt2Layer final : public Block {
 public:
  explicit Gpt2Layer(const BlockSettings& settings) : settings_(settings) {}

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
    using namespace gpt2_layer;
    const auto& p = memory.params;
    auto& s = memory.saved;
    Scratch& scratch = *memory.scratch;
    const int64_t T = x.size(0), W = x.size(1), F = p[up_weight].size(0);

    at::Tensor normed = scratch.take({T, W}, x.scalar_type());
    ops::NormState attention_norm = {s[attention_mean], s[attention_rstd]};
    ops::norm_dropout_forward(x, {p[attention_norm_weight], p[attention_norm_bias]},
                              settings_.norm_eps, {}, attention_norm, normed);
    ops::linear_forward(normed, p[qkv_weight], p[qkv_bias], s[qkv]);
    ops::attention_forward(attention(key), batch, s[qkv], attention_state_of(memory), s[context],
                           scratch);
    ops::NormState mlp_norm = {s[mlp_mean], s[mlp_rstd]};
    ops::linear_forward(s[context], p[output_weight], {}, s[sum]);
    ops::dropout_residual_norm_forward(
        s[sum], p[output_bias], x, {p[mlp_norm_weight], p[mlp_norm_bias]}, settings_.norm_eps,
        hidden_dropout(key, attention_output), s[sum], mlp_norm, normed);

    at::Tensor activated = scratch.take({T, F}, x.scalar_type());
    ops::linear_forward(normed, p[up_weight], {}, s[up]);
    ops::bias_gelu_forward(s[up], p[up_bias], s[up], activated);
    ops::linear_forward(activated, p[down_weight], {}, y);
    ops::dropout_residual_forward(y, p[down_bias], s[sum], hidden_dropout(key, layer_output), y);
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor& dy,
                at::Tensor& dx) override {
    using namespace gpt2_layer;
    const auto& p = memory.params;
    auto& d = memory.grads;
    auto& s = memory.saved;
    Scratch& scratch = *memory.scratch;
    const at::ScalarType type = x.scalar_type();
    const int64_t T = x.size(0), W = x.size(1), F = p[up_weight].size(0);

    at::Tensor narrow = scratch.take({T, W}, type), d_normed = scratch.take({T, W}, type);
    ops::dropout_residual_backward(dy, hidden_dropout(key, layer_output), narrow, d[down_bias],
                                   scratch);
    {
      const ScratchScope scope(scratch);
      at::Tensor wide = scratch.take({T, F}, type), activated = scratch.take({T, F}, type);
      ops::linear_backward_input(narrow, p[down_weight], wide);
      ops::gelu_backward(wide, s[up], wide, d[up_bias], activated, scratch);
      ops::linear_backward_weight(narrow, activated, d[down_weight]);
      // The norm's output, which the forward did not keep.
      ops::norm_apply(s[sum], {p[mlp_norm_weight], p[mlp_norm_bias]}, {s[mlp_mean], s[mlp_rstd]},
                      narrow);
      ops::linear_backward_weight(wide, narrow, d[up_weight]);
      ops::linear_backward_input(wide, p[up_weight], d_normed);
    }
    // dy becomes the gradient of the sum: through the norm, and past it.
    ops::NormParams d_mlp_norm = {d[mlp_norm_weight], d[mlp_norm_bias]};
    ops::dropout_residual_norm_backward(
        d_normed, s[sum], {p[mlp_norm_weight], p[mlp_norm_bias]}, {s[mlp_mean], s[mlp_rstd]}, dy,
        hidden_dropout(key, attention_output), dy, narrow, d_mlp_norm, d[output_bias], scratch);

    ops::linear_backward_weight(narrow, s[context], d[output_weight]);
    ops::linear_backward_input(narrow, p[output_weight], d_normed);
    {
      const ScratchScope scope(scratch);
      const at::Tensor& d_context = d_normed;
      at::Tensor d_qkv = scratch.take({T, 3 * W}, type);
      ops::attention_backward(attention(key), batch, d_context, s[qkv], attention_state_of(memory),
                              s[context], d_qkv, d[qkv_bias], scratch);
      // A key bias adds the same to every score of a row, which softmax does not see: its gradient
      // is zero, and what the sum holds there is rounding error that AdamW would blow up.
      d[qkv_bias].narrow(0, W, W).zero_();
      ops::norm_apply(x, {p[attention_norm_weight], p[attention_norm_bias]},
                      {s[attention_mean], s[attention_rstd]}, narrow);
      ops::linear_backward_weight(d_qkv, narrow, d[qkv_weight]);
      ops::linear_backward_input(d_qkv, p[qkv_weight], d_normed);
    }
    ops::NormParams d_attention_norm = {d[attention_norm_weight], d[attention_norm_bias]};
    ops::norm_dropout_backward(d_normed, x, {p[attention_norm_weight], p[attention_norm_bias]},
                               {s[attention_mean], s[attention_rstd]}, dy, {}, dx, d_attention_norm,
                               scratch);
  }

  void recompute(BlockMemory& memory) override {
    using namespace gpt2_layer;
    const auto& p = memory.params;
    auto& s = memory.saved;
    at::Tensor normed = memory.scratch->take(s[sum].sizes(), s[sum].scalar_type());
    at::Tensor activated = memory.scratch->take(s[up].sizes(), s[up].scalar_type());
    ops::norm_apply(s[sum], {p[mlp_norm_weight], p[mlp_norm_bias]}, {s[mlp_mean], s[mlp_rstd]},
                    normed);
    ops::linear_forward(normed, p[up_weight], {}, s[up]);
    ops::bias_gelu_forward(s[up], p[up_bias], s[up], activated);
  }

 private:
  ops::Dropout hidden_dropout(const RandomKey& key, Operation operation) const {
    return ops::dropout_of(key, operation, settings_.hidden_dropout);
  }
  ops::Attention attention(const RandomKey& key) const {
    return {.backend = settings_.attention,
            .n_heads = settings_.n_heads,
            .dropout = ops::dropout_of(key, attention_probs, settings_.attention_dropout),
            .causal = true};
  }
  static std::span<at::Tensor> attention_state_of(BlockMemory& memory) {
    return std::span(memory.saved).subspan(gpt2_layer::attention_state);
  }

  BlockSettings settings_;
};

}  // namespace

std::unique_ptr<Block> make_gpt2_layer(const BlockSettings& settings) {
  return std::make_unique<Gpt2Layer>(settings);
}

}  // namespace ferry::decoder
