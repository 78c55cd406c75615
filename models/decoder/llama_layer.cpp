#include <fmt/format.h>

#include "models/decoder/decoder_table.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** A layer's parameters; kNone where the family has none. */
struct LlamaParams {
  ParamId attention_norm = kNone, attention_norm_bias = kNone, qkv_weight = kNone, qkv_bias = kNone,
          q_norm = kNone, k_norm = kNone, output_weight = kNone, output_bias = kNone,
          output_norm = kNone, mlp_norm = kNone, mlp_norm_bias = kNone, gate_up_weight = kNone,
          gate_up_bias = kNone, down_weight = kNone, down_bias = kNone, down_norm = kNone;
};

LlamaParams params_of(BlockBuilder& b,
                      const std::string& hf,
                      const DecoderConfig& config,
                      const BlockBuilder::Heads& heads) {
  const int64_t W = config.hidden_size, F = config.intermediate_size, D = heads.head_width;
  const int64_t q = heads.n_heads * D, kv = heads.n_kv_heads * D;
  const std::string self = hf + "self_attn.", mlp = hf + "mlp.";
  const Init ones = config.norm_offset == 0 ? Init::ones : Init::zeros;
  const auto norm = [&](const std::string& name, const std::string& hf_name, int64_t n) {
    return b.norm_weight(name, n, {hf_name + ".weight"}, ones);
  };
  LlamaParams p;
  p.attention_norm = norm("attention.norm.weight", hf + "input_layernorm", W);
  if (config.has_layer_norms)
    p.attention_norm_bias = b.bias("attention.norm.bias", W, {hf + "input_layernorm.bias"});
  p.qkv_weight = config.is_fused
                     ? b.matrix("attention.qkv.weight", q + 2 * kv, W, {self + "qkv_proj.weight"})
                     : b.matrix("attention.qkv.weight", W,
                                {{{self + "q_proj.weight"}, q},
                                 {{self + "k_proj.weight"}, kv},
                                 {{self + "v_proj.weight"}, kv}});
  if (config.qkv_bias)
    p.qkv_bias = b.bias(
        "attention.qkv.bias",
        {{{self + "q_proj.bias"}, q}, {{self + "k_proj.bias"}, kv}, {{self + "v_proj.bias"}, kv}});
  if (config.norms_heads) {
    p.q_norm = norm("attention.q_norm.weight", self + "q_norm", D);
    p.k_norm = norm("attention.k_norm.weight", self + "k_norm", D);
  }
  p.output_weight = b.matrix("attention.output.weight", W, q, {self + "o_proj.weight"});
  if (config.output_bias)
    p.output_bias = b.bias("attention.output.bias", W, {self + "o_proj.bias"});
  // Where branches are normed, Hugging Face calls the norm of attention's branch what is else the
  // norm before the MLP.
  if (config.norms_outputs)
    p.output_norm = norm("attention.output_norm.weight", hf + "post_attention_layernorm", W);
  if (!config.is_parallel) {
    const std::string name =
        hf + (config.norms_outputs ? "pre_feedforward_layernorm" : "post_attention_layernorm");
    p.mlp_norm = norm("mlp.norm.weight", name, W);
    if (config.has_layer_norms) p.mlp_norm_bias = b.bias("mlp.norm.bias", W, {name + ".bias"});
  }
  p.gate_up_weight =
      config.is_fused ? b.matrix("mlp.gate_up.weight", 2 * F, W, {mlp + "gate_up_proj.weight"})
                      : b.matrix("mlp.gate_up.weight", W,
                                 {{{mlp + "gate_proj.weight"}, F}, {{mlp + "up_proj.weight"}, F}});
  if (config.mlp_bias)
    p.gate_up_bias =
        b.bias("mlp.gate_up.bias", {{{mlp + "gate_proj.bias"}, F}, {{mlp + "up_proj.bias"}, F}});
  p.down_weight = b.matrix("mlp.down.weight", W, F, {mlp + "down_proj.weight"});
  if (config.mlp_bias) p.down_bias = b.bias("mlp.down.bias", W, {mlp + "down_proj.bias"});
  if (config.norms_outputs)
    p.down_norm = norm("mlp.down_norm.weight", hf + "post_feedforward_layernorm", W);
  return p;
}

}  // namespace

void add_llama_layer(ModelBuilder& builder,
                     int64_t index,
                     const DecoderConfig& config,
                     const ModelTable& model) {
  const BlockBuilder::Heads heads = {.n_heads = config.num_attention_heads,
                                     .n_kv_heads = config.num_key_value_heads,
                                     .head_width = model.head_width};
  const bool has_window =
      config.window > 0 &&
      (config.layer_has_window.empty() || config.layer_has_window[static_cast<size_t>(index)]);
  const RopeSpec plain = {.theta = config.rope_theta, .width = heads.head_width};
  const RopeSpec spec =
      has_window && config.window_rope ? *config.window_rope : config.rope.value_or(plain);
  const RopeTable rope = rope_table(spec);
  const ops::ScoreRule scores = {.scale = config.score_scale,
                                 .window = has_window ? config.window : 0,
                                 .soft_cap = config.score_cap};
  const float eps = config.norm_eps, offset = config.norm_offset, factor = config.branch_factor;
  FERRY_CHECK(
      factor == 1 || !(config.is_parallel || config.norms_outputs || config.has_layer_norms),
      "a factor of branches in {}, whose layers have none", config.name);
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const LlamaParams p = params_of(b, fmt::format("model.layers.{}.", index), config, heads);

  const ValueId x = b.input();  // (T, W)
  const ValueId normed =
      config.has_layer_norms
          ? b.norm("attention.norm", x, p.attention_norm, p.attention_norm_bias, eps)
          : b.rms_norm("attention.norm", x, p.attention_norm, eps, offset);
  const BlockBuilder::Heads own_heads = b.heads_of_rank(heads);
  const ValueId mapped =
      b.linear_to_ranks("attention.qkv", normed, p.qkv_weight, p.qkv_bias, b.shared_qkv(heads));
  const ValueId qkv = config.norms_heads ? b.head_norm("attention.qkv", mapped, own_heads, p.q_norm,
                                                       p.k_norm, eps, rope, offset)
                                         : b.rotary("attention.qkv", mapped, own_heads, rope);
  const ValueId context = b.attention("attention.context", qkv, own_heads, /*causal=*/true,
                                      model.attention_dropout, decoder_attention_probs, scores);
  const auto mlp = [&](ValueId mlp_normed) {
    const ValueId gate_up =
        b.linear_to_ranks("mlp.gate_up", mlp_normed, p.gate_up_weight, p.gate_up_bias,
                          {{config.intermediate_size}, {config.intermediate_size}});  // (T, 2F)
    b.recompute(gate_up);
    return b.gate("mlp.activated", config.gate, gate_up);  // (T, F)
  };
  if (config.is_parallel) {
    const ValueId down = b.linear_from_ranks("down", mlp(normed), p.down_weight);
    const ValueId sum = b.linear_from_ranks("sum", context, p.output_weight, p.output_bias, x);
    return b.end(b.dropout_residual("y", down, p.down_bias, sum, model.hidden_dropout,
                                    decoder_layer_output));
  }
  ValueId attended =
      b.linear_from_ranks("output", context, p.output_weight, p.output_bias, kNone, factor);
  if (config.norms_outputs)
    attended = b.rms_norm("attention.output_norm", attended, p.output_norm, eps, offset);
  const auto [sum, mlp_normed] =
      config.has_layer_norms
          ? b.residual_norm("sum", "mlp.norm", attended, kNone, x, p.mlp_norm, p.mlp_norm_bias, eps,
                            /*dropout=*/0, decoder_attention_output)
          : b.residual_rms_norm("sum", "mlp.norm", attended, x, p.mlp_norm, eps, offset);
  const ValueId activated = mlp(mlp_normed);
  if ((config.mlp_bias && factor == 1) || config.has_layer_norms)
    return b.end(b.dropout_residual("y", b.linear_from_ranks("down", activated, p.down_weight),
                                    p.down_bias, sum, model.hidden_dropout, decoder_layer_output));
  if (!config.norms_outputs)
    return b.end(b.linear_from_ranks("y", activated, p.down_weight, p.down_bias, sum, factor));
  const ValueId down = b.linear_from_ranks("down", activated, p.down_weight);
  b.end(b.add("y", b.rms_norm("mlp.down_norm", down, p.down_norm, eps, offset), sum));
}

}  // namespace ferry
