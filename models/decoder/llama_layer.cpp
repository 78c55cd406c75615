// Llama's layer, forward and backward, on the layer operations. Both directions read top to bottom
// as the data flows; the backward is the forward's mirror image.

#include <span>

#include "models/decoder/decoder_blocks.h"
#include "models/ops/attention.h"
#include "models/ops/fused.h"
#include "models/ops/linear.h"

namespace ferry::decoder {
namespace {

class LlamaLayer final : public Block {
 public:
  explicit LlamaLayer(const BlockSettings& settings) : settings_(settings) {}

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
    using namespace llama_layer;
    const auto& p = memory.params;
    auto& s = memory.saved;
    Scratch& scratch = *memory.scratch;
    const int64_t T = x.size(0), W = x.size(1), F = p[down_weight].size(1);

    at::Tensor normed = scratch.take({T, W}, x.scalar_type());
    ops::residual_rms_norm_forward(x, {}, p[attention_norm_weight], settings_.norm_eps, {},
                                   s[attention_rstd], normed);
    ops::linear_forward(normed, p[qkv_weight], {}, s[qkv]);
    ops::rotary_forward(rotary(), batch.position_ids, s[qkv]);
    ops::attention_forward(attention(key), batch, s[qkv], attention_state_of(memory), s[context],
                           scratch);
    ops::linear_forward(s[context], p[output_weight], {}, s[sum]);
    ops::residual_rms_norm_forward(s[sum], x, p[mlp_norm_weight], settings_.norm_eps, s[sum],
                                   s[mlp_rstd], normed);

    at::Tensor activated = scratch.take({T, F}, x.scalar_type());
    ops::linear_forward(normed, p[gate_up_weight], {}, s[gate_up]);
    ops::silu_gate_forward(s[gate_up], activated);
    ops::linear_forward_add(activated, p[down_weight], s[sum], y);
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor& dy,
                at::Tensor& dx) override {
    using namespace llama_layer;
    const auto& p = memory.params;
    auto& d = memory.grads;
    auto& s = memory.saved;
    Scratch& scratch = *memory.scratch;
    const at::ScalarType type = x.scalar_type();
    const int64_t T = x.size(0), W = x.size(1), F = p[down_weight].size(1);

    at::Tensor normed = scratch.take({T, W}, type), d_normed = scratch.take({T, W}, type);
    {
      const ScratchScope scope(scratch);
      at::Tensor activated = scratch.take({T, F}, type);
      at::Tensor d_gate_up = scratch.take({T, 2 * F}, type);
      ops::linear_backward_input(dy, p[down_weight], activated);
      ops::silu_gate_backward(activated, s[gate_up], d_gate_up, activated);
      ops::linear_backward_weight(dy, activated, d[down_weight]);
      // The norm's output, which the forward did not keep.
      ops::rms_norm_apply(s[sum], p[mlp_norm_weight], s[mlp_rstd], normed);
      ops::linear_backward_weight(d_gate_up, normed, d[gate_up_weight]);
      ops::linear_backward_input(d_gate_up, p[gate_up_weight], d_normed);
    }
    // dy becomes the gradient of the sum: through the norm, and past it.
    ops::residual_rms_norm_backward(d_normed, s[sum], p[mlp_norm_weight], s[mlp_rstd], dy, dy,
                                    d[mlp_norm_weight], scratch);

    ops::linear_backward_weight(dy, s[context], d[output_weight]);
    {
      const ScratchScope scope(scratch);
      at::Tensor& d_context = d_normed;
      at::Tensor d_qkv = scratch.take(s[qkv].sizes(), type);
      ops::linear_backward_input(dy, p[output_weight], d_context);
      ops::attention_backward(attention(key), batch, d_context, s[qkv], attention_state_of(memory),
                              s[context], d_qkv, {}, scratch);
      ops::rotary_backward(rotary(), batch.position_ids, d_qkv);
      ops::rms_norm_apply(x, p[attention_norm_weight], s[attention_rstd], normed);
      ops::linear_backward_weight(d_qkv, normed, d[qkv_weight]);
      ops::linear_backward_input(d_qkv, p[qkv_weight], d_normed);
    }
    ops::residual_rms_norm_backward(d_normed, x, p[attention_norm_weight], s[attention_rstd], dy,
                                    dx, d[attention_norm_weight], scratch);
  }

  void recompute(BlockMemory& memory) override {
    using namespace llama_layer;
    const auto& p = memory.params;
    auto& s = memory.saved;
    at::Tensor normed = memory.scratch->take(s[sum].sizes(), s[sum].scalar_type());
    ops::rms_norm_apply(s[sum], p[mlp_norm_weight], s[mlp_rstd], normed);
    ops::linear_forward(normed, p[gate_up_weight], {}, s[gate_up]);
  }

 private:
  ops::Rotary rotary() const {
    return {.n_heads = settings_.n_heads,
            .n_kv_heads = settings_.n_kv_heads,
            .theta = settings_.rope_theta};
  }
  ops::Attention attention(const RandomKey& key) const {
    return {.backend = settings_.attention,
            .n_heads = settings_.n_heads,
            .dropout = ops::dropout_of(key, attention_probs, settings_.attention_dropout),
            .n_kv_heads = settings_.n_kv_heads,
            .causal = true};
  }
  static std::span<at::Tensor> attention_state_of(BlockMemory& memory) {
    return std::span(memory.saved).subspan(llama_layer::attention_state);
  }

  BlockSettings settings_;
};

}  // namespace

std::unique_ptr<Block> make_llama_layer(const BlockSettings& settings) {
  return std::make_unique<LlamaLayer>(settings);
}

}  // namespace ferry::decoder
