#include "tests/models/made_models.h"

#include <fmt/format.h>

#include <string>

#include "models/blocks/block_builder.h"
#include "models/ops/rotary/rope_frequencies.h"

namespace ferry::test {
namespace {

constexpr MadeSizes kSizes;
constexpr float kEps = 1e-6f;
constexpr int kTarget = 0, kSource = 1;

ModelTable start(const char* name, DType compute, AttentionBackend attention) {
  ModelTable model;
  model.family = name;
  model.head = HeadKind::causal_lm;
  model.width = kSizes.width;
  model.head_width = kSizes.width / kSizes.heads;
  model.compute = compute;
  model.attention = attention;
  model.init_std = 0.05f;
  model.vocab_size = kSizes.vocab;
  return model;
}

/** T5's layers, of the encoder or the decoder. */
class Stack {
 public:
  Stack(ModelBuilder& builder, std::string hf, int stream, bool is_decoder)
      : builder_(builder), hf_(std::move(hf)), stream_(stream), is_decoder_(is_decoder) {}

  /** The bias is a value that all layers read. */
  void add_bias() {
    BlockBuilder b = builder_.block(hf_ + ".bias", BlockKind::layer, stream_);
    const ParamId table =
        b.matrix("table", kSizes.buckets, kSizes.heads,
                 {hf_ + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"});
    bias_ = b.leave(b.table("bias", table));
    b.end();
  }
  /** `encoded`: the encoder's output, for a decoder. */
  void add_layer(int64_t index, int encoded = kNone) {
    const std::string hf = fmt::format("{}.block.{}.layer.", hf_, index);
    BlockBuilder b =
        builder_.block(fmt::format("{}.layer.{}", hf_, index), BlockKind::layer, stream_);
    ValueId x = b.input();
    ops::CrossAttentionAttributes with = {
        .n_heads = kSizes.heads,
        .causal = is_decoder_,
        .buckets = {kSizes.buckets, kSizes.max_distance, /*both_ways=*/!is_decoder_}};
    const ValueId normed = norm(b, "self.norm", hf + "0.", x);
    x = attend(b, "self", hf + "0.SelfAttention.", normed, normed, x, b.read(bias_), with);
    if (is_decoder_)
      x = attend(b, "cross", hf + "1.EncDecAttention.", norm(b, "cross.norm", hf + "1.", x),
                 b.read(encoded), x, kNone, {.n_heads = kSizes.heads});
    const std::string mlp = hf + (is_decoder_ ? "2." : "1.");
    const ParamId up =
        b.matrix("up.weight", kSizes.inner, kSizes.width, {mlp + "DenseReluDense.wi.weight"});
    const ParamId down =
        b.matrix("down.weight", kSizes.width, kSizes.inner, {mlp + "DenseReluDense.wo.weight"});
    const auto [before, activated] = b.activation(
        "activated", Activation::relu, b.linear("up", norm(b, "norm", mlp, x), up), kNone);
    b.recompute(before);
    b.end(b.linear("y", activated, down, kNone, x));
  }
  ValueId norm(BlockBuilder& b, const std::string& name, const std::string& hf, ValueId x) const {
    return b.rms_norm(
        name, x, b.norm_weight(name + ".weight", kSizes.width, {hf + "layer_norm.weight"}), kEps);
  }

 private:
  static ValueId attend(BlockBuilder& b,
                        const std::string& name,
                        const std::string& hf,
                        ValueId x,
                        ValueId seen,
                        ValueId residual,
                        ValueId bias,
                        const ops::CrossAttentionAttributes& with) {
    constexpr int64_t W = kSizes.width;
    const ParamId q = b.matrix(name + ".q.weight", W, W, {hf + "q.weight"});
    const ParamId kv =
        b.matrix(name + ".kv.weight", W, {{{hf + "k.weight"}, W}, {{hf + "v.weight"}, W}});
    const ParamId out = b.matrix(name + ".output.weight", W, W, {hf + "o.weight"});
    const ValueId context = b.cross_attention(name + ".context", b.linear(name + ".q", x, q),
                                              b.linear(name + ".kv", seen, kv), bias, with);
    return b.linear(name + ".sum", context, out, kNone, residual);
  }

  ModelBuilder& builder_;
  std::string hf_;
  int stream_;
  bool is_decoder_;
  int bias_ = kNone;
};

ModelTable encoder_decoder(ModelTable model, bool has_features) {
  model.streams = {{.name = "target"}, {.name = "source"}};
  if (has_features) model.streams[kSource].feature_columns = kSizes.width;
  ModelBuilder builder(model, "", /*gpu_multiprocessors=*/132);
  Stack encoder(builder, "encoder", kSource, /*is_decoder=*/false),
      decoder(builder, "decoder", kTarget, /*is_decoder=*/true);
  const HfName words = {"shared.weight"};
  BorrowedParam word;
  {
    BlockBuilder b = builder.block("source", BlockKind::embeddings, kSource);
    if (has_features)
      b.end(b.features("features"));
    else
      b.end(
          b.embedding("words", b.matrix("word", kSizes.vocab, kSizes.width, words), kNone, kNone));
  }
  encoder.add_bias();
  for (int64_t i = 0; i < kSizes.layers; ++i)
    encoder.add_layer(i);
  {
    BlockBuilder b = builder.block("encoder.norm", BlockKind::layer, kSource);
    const ParamId weight =
        b.norm_weight("weight", kSizes.width, {"encoder.final_layer_norm.weight"});
    b.end(b.rms_norm("encoded", b.input(), weight, kEps));
  }
  const int encoded = builder.output();
  {
    BlockBuilder b = builder.block("target", BlockKind::embeddings, kTarget);
    if (has_features) word.block = static_cast<int>(model.blocks.size());
    const ParamId rows = has_features ? b.matrix("word", kSizes.vocab, kSizes.width, words)
                                      : b.borrow(word.block, word.param);
    b.end(b.embedding("words", rows, kNone, kNone));
  }
  decoder.add_bias();
  for (int64_t i = 0; i < kSizes.layers; ++i)
    decoder.add_layer(i, encoded);
  BlockBuilder b = builder.block("head", BlockKind::head);
  const ParamId weight =
      b.norm_weight("norm.weight", kSizes.width, {"decoder.final_layer_norm.weight"});
  b.vocabulary_loss(b.rms_norm("normed", b.input(), weight, kEps), b.borrow(word.block, word.param),
                    kNone);
  b.end();
  return model;
}

/** A layer's attention and router; then each expert. */
void add_expert_layer(ModelBuilder& builder, int64_t index) {
  constexpr int64_t W = kSizes.width, F = kSizes.inner;
  const BlockBuilder::Heads heads = {
      .n_heads = kSizes.heads, .n_kv_heads = kSizes.kv_heads, .head_width = W / kSizes.heads};
  const int64_t kv = heads.n_kv_heads * heads.head_width;
  const std::string hf = fmt::format("model.layers.{}.", index), self = hf + "self_attn.";
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId first = b.norm_weight("attention.norm.weight", W, {hf + "input_layernorm.weight"});
  const ParamId qkv = b.matrix("qkv.weight", W,
                               {{{self + "q_proj.weight"}, W},
                                {{self + "k_proj.weight"}, kv},
                                {{self + "v_proj.weight"}, kv}});
  const ParamId out = b.matrix("output.weight", W, W, {self + "o_proj.weight"});
  const ParamId second =
      b.norm_weight("mlp.norm.weight", W, {hf + "post_attention_layernorm.weight"});
  const ParamId router =
      b.matrix("router.weight", kSizes.experts, W, {hf + "block_sparse_moe.gate.weight"});
  const ValueId x = b.input();
  const ValueId mapped = b.linear("qkv", b.rms_norm("attention.norm", x, first, kEps), qkv);
  const ValueId turned =
      b.rotary("qkv", mapped, heads, rope_table({.theta = 1e6, .width = heads.head_width}));
  const ValueId context =
      b.attention("context", turned, heads, /*causal=*/true, /*dropout=*/0, /*random=*/0);
  const auto [sum, normed] =
      b.residual_rms_norm("sum", "mlp.norm", b.linear("output", context, out), x, second, kEps);
  const auto routes =
      b.route(b.logits(normed, router, kNone),
              {.k = kSizes.per_token, .n_experts = kSizes.experts, .balance = kSizes.balance});
  const int rows = b.leave(normed);
  b.end(b.copy("y", sum));
  for (int64_t e = 0; e < kSizes.experts; ++e) {
    const std::string name = fmt::format("{}block_sparse_moe.experts.{}.", hf, e);
    BlockBuilder expert =
        builder.block(fmt::format("layer.{}.expert.{}", index, e), BlockKind::layer);
    const ParamId gate_up =
        expert.matrix("gate_up.weight", W, {{{name + "w1.weight"}, F}, {{name + "w3.weight"}, F}});
    const ParamId down = expert.matrix("down.weight", W, F, {name + "w2.weight"});
    const ValueId mine = expert.take_routed("rows", expert.read(rows), routes, e);
    const ValueId both = expert.linear("gate_up", mine, gate_up);
    expert.recompute(both);
    const ValueId activated = expert.gate("activated", Activation::silu, both);
    expert.add_routed(expert.linear("down", activated, down), routes, e);
    expert.end();
  }
}

ModelTable experts(ModelTable model) {
  ModelBuilder builder(model, "", /*gpu_multiprocessors=*/132);
  {
    BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
    const ParamId word =
        b.matrix("word", kSizes.vocab, kSizes.width, {"model.embed_tokens.weight"});
    b.end(b.embedding("words", word, kNone, kNone));
  }
  for (int64_t i = 0; i < kSizes.layers; ++i)
    add_expert_layer(builder, i);
  BlockBuilder b = builder.block("head", BlockKind::head);
  const ParamId weight = b.norm_weight("norm.weight", kSizes.width, {"model.norm.weight"});
  b.vocabulary_loss(b.rms_norm("normed", b.input(), weight, kEps),
                    b.matrix("word", kSizes.vocab, kSizes.width, {"lm_head.weight"}), kNone);
  b.end();
  return model;
}

}  // namespace

ModelTable made_model(Made which, DType compute, AttentionBackend attention) {
  ModelTable model = start(kMadeNames[static_cast<size_t>(which)].data(), compute, attention);
  if (which == Made::experts) return experts(std::move(model));
  return encoder_decoder(std::move(model), which == Made::encoder_decoder_of_features);
}

}  // namespace ferry::test
