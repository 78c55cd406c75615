#pragma once
// Small models that together say what families of decoders need beyond Llama's and GPT-2's layers,
// for tests on each device: parallel branches with biases, parts of heads and neighbours turned
// (GPT-NeoX, GPT-J); norms after each branch, scaled words, heads of their own width, windows
// (Gemma 2); norms of heads (Qwen 3, Gemma 3); factors of words, branches and logits (Granite);
// narrow tables and norms after the sum (OPT-350m).

#include <string>

#include "models/blocks/block_builder.h"

namespace ferry::test {

enum class SmallFamily : uint8_t { neox, gptj, gemma2, qwen3, granite, opt350 };
inline constexpr SmallFamily kSmallFamilies[] = {SmallFamily::neox,    SmallFamily::gptj,
                                                 SmallFamily::gemma2,  SmallFamily::qwen3,
                                                 SmallFamily::granite, SmallFamily::opt350};
inline const char* name_of(SmallFamily family) {
  constexpr const char* kNames[] = {"neox", "gptj", "gemma2", "qwen3", "granite", "opt350"};
  return kNames[static_cast<size_t>(family)];
}

/** Their numbers. */
struct SmallModel {
  static constexpr int64_t kVocab = 300, kWidth = 48, kInner = 80, kPositions = 64, kNarrow = 24;
  static constexpr float kEps = 1e-5f, kWordScale = 6.9375f;
  static constexpr double kTheta = 500, kScale = 0.2;
  static constexpr float kScoreCap = 2, kLogitCap = 3;
  static constexpr float kBranchFactor = 0.7f, kLogitFactor = 1.7f;  ///< of granite
  static constexpr int64_t kWindow = 9, kOffset = 2;
  static constexpr int64_t kRotated = 8;  ///< columns of a head that neox and gptj turn

  SmallFamily family{};
  BlockBuilder::Heads heads;
};

inline SmallModel small_model(SmallFamily family) {
  switch (family) {
    case SmallFamily::gemma2:
      return {family, {.n_heads = 4, .n_kv_heads = 2, .head_width = 16}};  // 64 wide, not 48
    case SmallFamily::qwen3:
    case SmallFamily::granite:
      return {family, {.n_heads = 2, .n_kv_heads = 1, .head_width = 32}};
    default:
      return {family, {.n_heads = 3, .n_kv_heads = 3, .head_width = 16}};
  }
}

namespace small {

/** The parameters of a layer, by their names in it. */
class Layer {
 public:
  Layer(ModelBuilder& builder, int index)
      : prefix_("layer." + std::to_string(index) + "."),
        b(builder.block("layer." + std::to_string(index), BlockKind::layer)) {}

  ParamId matrix(const std::string& name, int64_t rows, int64_t columns) {
    return b.matrix(name, rows, columns, {prefix_ + name});
  }
  ParamId bias(const std::string& name, int64_t n) { return b.bias(name, n, {prefix_ + name}); }
  ParamId scale(const std::string& name, int64_t n, Init init = Init::ones) {
    return b.norm_weight(name, n, {prefix_ + name}, init);
  }

 private:
  std::string prefix_;

 public:
  BlockBuilder b;
};

/** y = x + attention(norm1(x)) + mlp(norm2(x)), the sums last; gptj has one norm. */
inline void add_parallel(ModelBuilder& builder, int index, const SmallModel& its) {
  constexpr int64_t W = SmallModel::kWidth, F = SmallModel::kInner;
  const bool is_neox = its.family == SmallFamily::neox;
  Layer l(builder, index);
  const ParamId w1 = l.scale("norm1.weight", W), b1 = l.bias("norm1.bias", W);
  const ParamId w2 = is_neox ? l.scale("norm2.weight", W) : w1,
                b2 = is_neox ? l.bias("norm2.bias", W) : b1;
  const ParamId qkv_w = l.matrix("qkv.weight", 3 * W, W),
                qkv_b = is_neox ? l.bias("qkv.bias", 3 * W) : kNone;
  const ParamId out_w = l.matrix("out.weight", W, W),
                out_b = is_neox ? l.bias("out.bias", W) : kNone;
  const ParamId up_w = l.matrix("up.weight", F, W), up_b = l.bias("up.bias", F);
  const ParamId down_w = l.matrix("down.weight", W, F), down_b = l.bias("down.bias", W);

  BlockBuilder& b = l.b;
  const ValueId x = b.input();
  const ValueId normed = b.norm("norm1", x, w1, b1, SmallModel::kEps);
  const ValueId other = is_neox ? b.norm("norm2", x, w2, b2, SmallModel::kEps) : normed;
  const ValueId qkv =
      b.rotary("qkv", b.linear("qkv", normed, qkv_w, qkv_b), its.heads,
               rope_table({.theta = SmallModel::kTheta, .width = SmallModel::kRotated}), !is_neox);
  const ValueId context = b.attention("context", qkv, its.heads, /*causal=*/true, 0, 0);
  const auto [up, activated] =
      b.activation("activated", is_neox ? Activation::gelu : Activation::gelu_tanh,
                   b.linear("up", other, up_w), up_b);
  b.recompute(up);
  const ValueId down = b.linear("down", activated, down_w);
  const ValueId attended =
      is_neox ? b.dropout_residual("attended", b.linear("out", context, out_w), out_b, x, 0, 0)
              : b.linear("attended", context, out_w, kNone, x);
  b.end(b.dropout_residual("y", down, down_b, attended, 0, 0));
}

/** Norms before and after each branch, whose weights count from one. */
inline void add_gemma2(ModelBuilder& builder, int index, const SmallModel& its) {
  constexpr int64_t W = SmallModel::kWidth, F = SmallModel::kInner;
  const int64_t D = its.heads.n_heads * its.heads.head_width;
  Layer l(builder, index);
  const ParamId before_a = l.scale("before_attention", W, Init::zeros),
                after_a = l.scale("after_attention", W, Init::zeros),
                before_m = l.scale("before_mlp", W, Init::zeros),
                after_m = l.scale("after_mlp", W, Init::zeros);
  const ParamId qkv_w = l.matrix("qkv.weight", 2 * D, W), out_w = l.matrix("out.weight", W, D);
  const ParamId up_w = l.matrix("up.weight", 2 * F, W), down_w = l.matrix("down.weight", W, F);

  BlockBuilder& b = l.b;
  constexpr float kEps = SmallModel::kEps;
  const ValueId x = b.input();
  const ValueId normed = b.rms_norm("normed", x, before_a, kEps, 1);
  const ValueId qkv =
      b.rotary("qkv", b.linear("qkv", normed, qkv_w), its.heads,
               rope_table({.theta = SmallModel::kTheta, .width = its.heads.head_width}));
  const ValueId context = b.attention("context", qkv, its.heads, /*causal=*/true, 0, 0,
                                      {.scale = SmallModel::kScale,
                                       .window = index == 0 ? SmallModel::kWindow : 0,
                                       .soft_cap = SmallModel::kScoreCap});
  const ValueId attended =
      b.rms_norm("attended", b.linear("out", context, out_w), after_a, kEps, 1);
  const auto [sum, mlp_normed] =
      b.residual_rms_norm("sum", "mlp.normed", attended, x, before_m, kEps, 1);
  const ValueId gate_up = b.linear("gate_up", mlp_normed, up_w);
  b.recompute(gate_up);
  const ValueId down = b.linear("down", b.gate("gated", Activation::gelu_tanh, gate_up), down_w);
  b.end(b.add("y", b.rms_norm("fed", down, after_m, kEps, 1), sum));
}

/** Llama's with a norm of each head of queries and keys. Granite's
 * branches have factors, and its first layer has biases. */
inline void add_qwen3(ModelBuilder& builder, int index, const SmallModel& its) {
  constexpr int64_t W = SmallModel::kWidth, F = SmallModel::kInner;
  const int64_t D = its.heads.head_width, H = its.heads.n_heads;
  Layer l(builder, index);
  const ParamId norm1 = l.scale("norm1", W), norm2 = l.scale("norm2", W);
  const ParamId q_norm = l.scale("q_norm", D), k_norm = l.scale("k_norm", D);
  const ParamId qkv_w = l.matrix("qkv.weight", (H + 2 * its.heads.n_kv_heads) * D, W),
                out_w = l.matrix("out.weight", W, H * D);
  const ParamId up_w = l.matrix("up.weight", 2 * F, W), down_w = l.matrix("down.weight", W, F);

  const bool is_granite = its.family == SmallFamily::granite;
  const bool has_bias = is_granite && index == 0;
  const ParamId out_b = has_bias ? l.bias("out.bias", W) : kNone,
                down_b = has_bias ? l.bias("down.bias", W) : kNone;
  const float factor = is_granite ? SmallModel::kBranchFactor : 1;

  BlockBuilder& b = l.b;
  const ValueId x = b.input();
  const ValueId raw = b.linear("qkv.raw", b.rms_norm("normed", x, norm1, SmallModel::kEps), qkv_w);
  const ValueId qkv = b.head_norm("qkv", raw, its.heads, q_norm, k_norm, SmallModel::kEps,
                                  rope_table({.theta = SmallModel::kTheta, .width = D}));
  const ValueId context = b.attention("context", qkv, its.heads, /*causal=*/true, 0, 0);
  const ValueId attended = b.linear("out", context, out_w, out_b, kNone, factor);
  const auto [sum, mlp_normed] =
      b.residual_rms_norm("sum", "mlp.normed", attended, x, norm2, SmallModel::kEps);
  const ValueId gate_up = b.linear("gate_up", mlp_normed, up_w);
  b.end(b.linear("y", b.gate("gated", Activation::silu, gate_up), down_w, down_b, sum, factor));
}

/** Norms after the sums, and ReLU. */
inline void add_opt350(ModelBuilder& builder, int index, const SmallModel& its) {
  constexpr int64_t W = SmallModel::kWidth, F = SmallModel::kInner;
  Layer l(builder, index);
  const ParamId w1 = l.scale("norm1.weight", W), b1 = l.bias("norm1.bias", W),
                w2 = l.scale("norm2.weight", W), b2 = l.bias("norm2.bias", W);
  const ParamId qkv_w = l.matrix("qkv.weight", 3 * W, W), qkv_b = l.bias("qkv.bias", 3 * W);
  const ParamId out_w = l.matrix("out.weight", W, W), out_b = l.bias("out.bias", W);
  const ParamId up_w = l.matrix("up.weight", F, W), up_b = l.bias("up.bias", F);
  const ParamId down_w = l.matrix("down.weight", W, F), down_b = l.bias("down.bias", W);

  BlockBuilder& b = l.b;
  constexpr float kEps = SmallModel::kEps;
  const ValueId x = b.input();
  const ValueId qkv = b.linear("qkv", x, qkv_w, qkv_b);
  const ValueId context = b.attention("context", qkv, its.heads, /*causal=*/true, 0, 0);
  const auto [sum1, attended] = b.residual_norm("sum1", "attended", b.linear("out", context, out_w),
                                                out_b, x, w1, b1, kEps, 0, 0);
  const auto [up, activated] =
      b.activation("activated", Activation::relu, b.linear("up", attended, up_w), up_b);
  const auto [sum2, y] = b.residual_norm("sum2", "y", b.linear("down", activated, down_w), down_b,
                                         attended, w2, b2, kEps, 0, 0);
  b.end(y);
}

}  // namespace small

/** Embeddings, two layers and a head that predicts the next token. */
inline ModelTable small_table(const SmallModel& its,
                              DType compute = DType::f32,
                              AttentionBackend attention = AttentionBackend::cpu_math) {
  constexpr int64_t W = SmallModel::kWidth, V = SmallModel::kVocab, N = SmallModel::kNarrow;
  ModelTable model;
  model.family = name_of(its.family);
  model.head = HeadKind::causal_lm;
  model.width = W;
  model.compute = compute;
  model.attention = attention;
  model.max_positions = SmallModel::kPositions;
  model.vocab_size = V;
  ModelBuilder builder(model, "", /*gpu_multiprocessors=*/192);
  const bool is_opt = its.family == SmallFamily::opt350;
  {
    BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
    const ParamId word = b.matrix("word", V, is_opt ? N : W, {"word"});
    if (is_opt) {
      const ParamId position =
          b.matrix("position", SmallModel::kPositions + SmallModel::kOffset, W, {"position"});
      const ParamId project = b.matrix("project_in", W, N, {"project_in"});
      const ValueId words = b.linear("words", b.embedding("narrow", word, kNone, kNone), project);
      const ValueId positions = b.embedding("positions", kNone, position, kNone,
                                            {.position_offset = SmallModel::kOffset});
      b.end(b.add("sum", words, positions));
    } else {
      const bool is_scaled =
          its.family == SmallFamily::gemma2 || its.family == SmallFamily::granite;
      const float scale = is_scaled ? SmallModel::kWordScale : 1;
      b.end(b.embedding("sum", word, kNone, kNone, {.word_scale = scale}));
    }
  }
  for (int i = 0; i < 2; ++i) {
    switch (its.family) {
      case SmallFamily::neox:
      case SmallFamily::gptj:
        small::add_parallel(builder, i, its);
        break;
      case SmallFamily::gemma2:
        small::add_gemma2(builder, i, its);
        break;
      case SmallFamily::qwen3:
      case SmallFamily::granite:
        small::add_qwen3(builder, i, its);
        break;
      case SmallFamily::opt350:
        small::add_opt350(builder, i, its);
        break;
    }
  }
  BlockBuilder b = builder.block("head", BlockKind::head);
  const bool has_bias = its.family == SmallFamily::gptj;
  const ParamId project = is_opt ? b.matrix("project_out", N, W, {"project_out"}) : kNone;
  const ParamId own = has_bias ? b.matrix("lm_head", V, W, {"lm_head"}) : kNone;
  const ParamId bias = has_bias ? b.bias("lm_head.bias", V, {"lm_head.bias"}) : kNone;
  const ParamId word = has_bias ? own : b.borrow(/*block=*/0, /*param=*/0);
  const ValueId x = b.input();
  b.vocabulary_loss(is_opt ? b.linear("projected", x, project) : x, word, bias,
                    {.factor = its.family == SmallFamily::granite ? SmallModel::kLogitFactor : 1,
                     .soft_cap = its.family == SmallFamily::gemma2 ? SmallModel::kLogitCap : 0});
  b.end();
  return model;
}

}  // namespace ferry::test
