#include "models/decoder/decoder_table.h"

#include <fmt/format.h>

#include "models/ops/scratch_sizes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

using ops::stacked_bytes;

/** The numbers that the sizes of activations and scratch are made of. */
struct Sizes {
  int64_t W = 0;  ///< width
  int64_t F = 0;  ///< intermediate size
  int64_t V = 0;  ///< vocabulary
  ops::AttentionHeads heads;
  DType type = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  int gpu_multiprocessors = 0;
  bool has_layer_norm = false;  ///< else RMSNorm

  bool cuda() const { return attention != AttentionBackend::cpu_math; }
  int64_t Q() const { return heads.qkv_width(); }
  int64_t bytes(int64_t n_elements) const {
    return round_up(n_elements * static_cast<int64_t>(size_of(type)), kTensorAlignment_bytes);
  }
  int64_t norm_backward_bytes(int64_t T) const {
    return stacked_bytes(has_layer_norm ? ops::norm_backward_scratch_bytes(T, W, cuda())
                                        : ops::rms_norm_backward_scratch_bytes(T, W, cuda()));
  }
  int64_t column_sum_bytes(int64_t T, int64_t N) const {
    return stacked_bytes(ops::column_sum_scratch_bytes(T, N));
  }
  ScratchNeed attention_scratch(const BatchShape& shape) const {
    return ops::attention_scratch(attention, type, shape, heads, gpu_multiprocessors);
  }
  void append_attention_saved(const BatchShape& shape, std::vector<SavedSpec>& saved) const {
    for (SavedSpec& spec : ops::attention_saved(attention, type, shape, heads.n_heads))
      saved.push_back(std::move(spec));
  }
};

/** Adds blocks and their Hugging Face names side by side. */
class TableBuilder {
 public:
  /** Bare models' files have names without the prefix. */
  TableBuilder(ModelTable& model, std::string prefix) : model_(model), prefix_(std::move(prefix)) {}

  void begin(std::string name, BlockKind kind) {
    BlockTable block;
    block.name = std::move(name);
    block.kind = kind;
    model_.blocks.push_back(std::move(block));
  }
  BlockTable& block() { return model_.blocks.back(); }

  /** A matrix or an embedding: decays, starts normal. */
  void weight(std::string name, int64_t rows, int64_t columns, std::string hf) {
    named(add_weight(std::move(name), rows, columns), 0, {rows, columns}, std::move(hf));
  }
  /** A weight as GPT-2's Conv1D has it in files: (columns, rows). */
  void transposed_weight(std::string name, int64_t rows, int64_t columns, std::string hf) {
    named(add_weight(std::move(name), rows, columns), 0, {columns, rows}, std::move(hf));
    model_.hf_names.back().rows = rows;
    model_.hf_names.back().transposed = true;
  }
  /** Several matrices of a file below each other in one. */
  void stacked_weight(std::string name,
                      int64_t columns,
                      const std::vector<std::pair<std::string, int64_t>>& parts) {
    int64_t rows = 0;
    for (const auto& [hf, n] : parts)
      rows += n;
    const int param = add_weight(std::move(name), rows, columns);
    int64_t row = 0;
    for (const auto& [hf, n] : parts) {
      named(param, row, {n, columns}, hf);
      row += n;
    }
  }
  /** Neither decays nor starts random. */
  void bias(std::string name, int64_t n, std::string hf) {
    named(block().add(std::move(name), {n}, false, Init::zeros), 0, {n}, std::move(hf));
  }
  void norm_weight(const std::string& name, int64_t n, const std::string& hf) {
    named(block().add(name + ".weight", {n}, false, Init::ones), 0, {n}, hf + ".weight");
  }
  void layer_norm(const std::string& name, int64_t n, const std::string& hf) {
    norm_weight(name, n, hf);
    bias(name + ".bias", n, hf + ".bias");
  }

 private:
  int add_weight(std::string name, int64_t rows, int64_t columns) {
    return block().add(std::move(name), {rows, columns}, true, Init::normal);
  }
  void named(int param, int64_t row_begin, std::vector<int64_t> shape, std::string hf) {
    HfEntry entry;
    entry.block = static_cast<int>(model_.blocks.size()) - 1;
    entry.param = param;
    entry.row_begin = row_begin;
    entry.rows = shape[0];
    entry.hf_shape = std::move(shape);
    if (hf.starts_with(prefix_)) entry.also_named.push_back(hf.substr(prefix_.size()));
    entry.hf_name = std::move(hf);
    model_.hf_names.push_back(std::move(entry));
  }

  ModelTable& model_;
  std::string prefix_;
};

void add_embeddings(TableBuilder& builder, const DecoderConfig& config, const Sizes& sizes) {
  const bool is_llama = config.family == DecoderFamily::llama;
  builder.begin("embeddings", BlockKind::embeddings);
  builder.weight("word.weight", sizes.V, sizes.W,
                 is_llama ? "model.embed_tokens.weight" : "transformer.wte.weight");
  if (!is_llama)
    builder.weight("position.weight", config.max_position_embeddings, sizes.W,
                   "transformer.wpe.weight");
  builder.block().saved = [](const BatchShape&) { return std::vector<SavedSpec>(); };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    return {.backward_bytes = stacked_bytes(
                ops::embedding_backward_scratch_bytes(shape.tokens, sizes.W, sizes.cuda()))};
  };
  const int64_t n_rows = sizes.V + (is_llama ? 0 : config.max_position_embeddings);
  builder.block().work = [sizes, n_rows](const BatchShape& shape, bool backward) -> BlockWork {
    const int64_t row = sizes.bytes(shape.tokens * sizes.W);
    const int n_tables = sizes.has_layer_norm ? 2 : 1;
    return backward ? BlockWork{.memory_bytes = n_tables * 3 * row + sizes.bytes(n_rows * sizes.W),
                                .compared_pairs = n_tables * shape.tokens * shape.tokens,
                                .n_kernels = 4 * n_tables}
                    : BlockWork{.memory_bytes = (n_tables + 1) * row, .n_kernels = 1};
  };
}

/** Attention, and `inner` columns of the product before the MLP's activation. */
BlockWork layer_products(const Sizes& sizes,
                         const BatchShape& shape,
                         bool backward,
                         int64_t inner) {
  const int64_t T = shape.tokens, W = sizes.W;
  BlockWork work = {.attention_tokens = T,
                    .attention_length = shape.max_length,
                    .attention_width = W,
                    .attention_causal = true};
  work.add_linear(backward, T, W, sizes.Q());
  work.add_linear(backward, T, W, W);
  work.add_linear(backward, T, W, inner);
  work.add_linear(backward, T, sizes.F, W);
  return work;
}

/** The norm before the MLP, and `inner` columns of the product before its activation; with a bias
 * that is added beside the activation. */
BlockWork recomputed_products(const Sizes& sizes,
                              const BatchShape& shape,
                              int64_t inner,
                              bool has_bias) {
  const int64_t T = shape.tokens;
  BlockWork work;
  work.add_linear(false, T, sizes.W, inner);
  work.memory_bytes = 2 * sizes.bytes(T * sizes.W) + (has_bias ? 3 * sizes.bytes(T * inner) : 0);
  work.n_kernels = has_bias ? 3 : 2;
  return work;
}

void add_llama_layer(TableBuilder& builder, int64_t index, const Sizes& sizes) {
  const int64_t W = sizes.W, F = sizes.F, kv = sizes.heads.n_kv_heads * sizes.heads.head_width;
  builder.begin(fmt::format("layer.{}", index), BlockKind::layer);
  const std::string hf = fmt::format("model.layers.{}.", index);
  builder.norm_weight("attention.norm", W, hf + "input_layernorm");
  builder.stacked_weight("attention.qkv.weight", W,
                         {{hf + "self_attn.q_proj.weight", W},
                          {hf + "self_attn.k_proj.weight", kv},
                          {hf + "self_attn.v_proj.weight", kv}});
  builder.weight("attention.output.weight", W, W, hf + "self_attn.o_proj.weight");
  builder.norm_weight("mlp.norm", W, hf + "post_attention_layernorm");
  builder.stacked_weight("mlp.gate_up.weight", W,
                         {{hf + "mlp.gate_proj.weight", F}, {hf + "mlp.up_proj.weight", F}});
  builder.weight("mlp.down.weight", W, F, hf + "mlp.down_proj.weight");
  builder.block().saved = [sizes](const BatchShape& shape) {
    const int64_t T = shape.tokens, W = sizes.W;
    std::vector<SavedSpec> saved = {
        {"attention.norm.rstd", {T}, DType::f32},
        {"attention.qkv", {T, sizes.Q()}, sizes.type},
        {"attention.context", {T, W}, sizes.type},
        {"sum", {T, W}, sizes.type},
        {"mlp.norm.rstd", {T}, DType::f32},
        {"mlp.gate_up", {T, 2 * sizes.F}, sizes.type, /*recomputed=*/true}};
    sizes.append_attention_saved(shape, saved);
    return saved;
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens;
    const ScratchNeed attention = sizes.attention_scratch(shape);
    const int64_t narrow = sizes.bytes(T * sizes.W), wide = sizes.bytes(T * sizes.F);
    const int64_t gate_up = sizes.bytes(T * 2 * sizes.F), qkv = sizes.bytes(T * sizes.Q());
    return {.forward_bytes = narrow + std::max(attention.forward_bytes, wide),
            .backward_bytes = 2 * narrow + std::max({sizes.norm_backward_bytes(T), wide + gate_up,
                                                     qkv + attention.backward_bytes}),
            .library_bytes = attention.library_bytes};
  };
  builder.block().work = [sizes](const BatchShape& shape, bool backward) {
    const int64_t T = shape.tokens;
    BlockWork work = layer_products(sizes, shape, backward, 2 * sizes.F);
    // Forward: two norms (five rows and two), positions (two of queries and keys), activation
    // (three), the residual copied (two). Backward: the norms' (four each), both again (two each),
    // the gradients of attention put together and turned (four), activation (six).
    const int64_t narrow = sizes.bytes(T * sizes.W), wide = sizes.bytes(T * sizes.F);
    const int64_t qkv = sizes.bytes(T * sizes.Q());
    work.memory_bytes =
        backward ? 12 * narrow + 4 * qkv + 6 * wide : 9 * narrow + 2 * qkv + 3 * wide;
    work.n_kernels = backward ? 22 : 13;
    work.n_operations = backward ? 2 : 5;  // attention, copies of what it returns, the residual's
    return work;
  };
  builder.block().recompute_work = [sizes](const BatchShape& shape) {
    return recomputed_products(sizes, shape, 2 * sizes.F, /*has_bias=*/false);
  };
}

void add_gpt2_layer(TableBuilder& builder, int64_t index, const Sizes& sizes) {
  const int64_t W = sizes.W, F = sizes.F;
  builder.begin(fmt::format("layer.{}", index), BlockKind::layer);
  const std::string hf = fmt::format("transformer.h.{}.", index);
  builder.layer_norm("attention.norm", W, hf + "ln_1");
  builder.transposed_weight("attention.qkv.weight", 3 * W, W, hf + "attn.c_attn.weight");
  builder.bias("attention.qkv.bias", 3 * W, hf + "attn.c_attn.bias");
  builder.transposed_weight("attention.output.weight", W, W, hf + "attn.c_proj.weight");
  builder.bias("attention.output.bias", W, hf + "attn.c_proj.bias");
  builder.layer_norm("mlp.norm", W, hf + "ln_2");
  builder.transposed_weight("mlp.up.weight", F, W, hf + "mlp.c_fc.weight");
  builder.bias("mlp.up.bias", F, hf + "mlp.c_fc.bias");
  builder.transposed_weight("mlp.down.weight", W, F, hf + "mlp.c_proj.weight");
  builder.bias("mlp.down.bias", W, hf + "mlp.c_proj.bias");
  builder.block().saved = [sizes](const BatchShape& shape) {
    const int64_t T = shape.tokens, W = sizes.W;
    std::vector<SavedSpec> saved = {{"attention.norm.mean", {T}, DType::f32},
                                    {"attention.norm.rstd", {T}, DType::f32},
                                    {"attention.qkv", {T, 3 * W}, sizes.type},
                                    {"attention.context", {T, W}, sizes.type},
                                    {"sum", {T, W}, sizes.type},
                                    {"mlp.norm.mean", {T}, DType::f32},
                                    {"mlp.norm.rstd", {T}, DType::f32},
                                    {"mlp.up", {T, sizes.F}, sizes.type, /*recomputed=*/true}};
    sizes.append_attention_saved(shape, saved);
    return saved;
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens, W = sizes.W, F = sizes.F;
    const ScratchNeed attention = sizes.attention_scratch(shape);
    const int64_t narrow = sizes.bytes(T * W), wide = sizes.bytes(T * F);
    return {.forward_bytes = narrow + std::max(attention.forward_bytes, wide),
            .backward_bytes =
                2 * narrow +
                std::max({sizes.norm_backward_bytes(T), 2 * wide + sizes.column_sum_bytes(T, F),
                          sizes.bytes(T * 3 * W) + std::max(attention.backward_bytes,
                                                            sizes.column_sum_bytes(T, 3 * W))}),
            .library_bytes = attention.library_bytes};
  };
  builder.block().work = [sizes](const BatchShape& shape, bool backward) {
    const int64_t T = shape.tokens;
    BlockWork work = layer_products(sizes, shape, backward, sizes.F);
    // Forward: two norms (two rows and four), gelu (three), the last sum (three). Backward: the
    // last sum's (two), the norms' (five and four), both again (two each), the gradients of
    // attention put together (six), gelu's (four).
    const int64_t narrow = sizes.bytes(T * sizes.W), wide = sizes.bytes(T * sizes.F);
    work.memory_bytes = backward ? 21 * narrow + 4 * wide : 9 * narrow + 3 * wide;
    work.n_kernels = backward ? 28 : 12;
    work.n_operations = 4;  // attention and copies of what it returns; or a slice cleared
    return work;
  };
  builder.block().recompute_work = [sizes](const BatchShape& shape) {
    return recomputed_products(sizes, shape, sizes.F, /*has_bias=*/true);
  };
}

void add_head(TableBuilder& builder, const DecoderConfig& config, const Sizes& sizes) {
  const bool is_llama = config.family == DecoderFamily::llama;
  builder.begin("head", BlockKind::head);
  if (is_llama) {
    builder.norm_weight("norm", sizes.W, "model.norm");
  } else {
    builder.layer_norm("norm", sizes.W, "transformer.ln_f");
  }
  if (is_llama && !config.tie_word_embeddings) {
    builder.weight("word.weight", sizes.V, sizes.W, "lm_head.weight");
  } else {
    builder.block().borrowed = {{0, decoder::embeddings::word}};
  }
  builder.block().saved = [sizes](const BatchShape& shape) {
    const int64_t T = shape.tokens;
    std::vector<SavedSpec> saved;
    if (sizes.has_layer_norm) saved.push_back({"norm.mean", {T}, DType::f32});
    saved.push_back({"norm.rstd", {T}, DType::f32});
    saved.push_back({"lse", {T}, DType::f32});
    return saved;
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens;
    const int64_t rows = sizes.bytes(T * sizes.W);
    const ScratchNeed vocabulary =
        ops::vocabulary_scratch(sizes.type, T, sizes.V, sizes.W, sizes.cuda(), /*has_bias=*/false);
    return {
        .forward_bytes = rows + vocabulary.forward_bytes,
        .backward_bytes = rows + std::max(vocabulary.backward_bytes, sizes.norm_backward_bytes(T)),
        .library_bytes = vocabulary.library_bytes};
  };
  builder.block().work = [sizes](const BatchShape& shape, bool backward) {
    const int64_t T = shape.tokens;
    const auto n_chunks = static_cast<int>((sizes.V + ops::kVocabChunk - 1) / ops::kVocabChunk);
    BlockWork work;
    // The backward pass recomputes a chunk's logits, too.
    if (backward) work.add_linear(false, T, sizes.W, sizes.V);
    work.add_linear(backward, T, sizes.W, sizes.V);
    // Logits are written and read; or they are recomputed, turned into their gradient and read
    // twice.
    work.memory_bytes =
        4 * sizes.bytes(T * sizes.W) + (backward ? 5 : 2) * sizes.bytes(T * sizes.V);
    work.n_operations = n_chunks * (backward ? 2 : 1) + 8;
    work.n_kernels = work.n_operations + n_chunks * (backward ? 3 : 1);
    return work;
  };
}

void check_shape(const DecoderConfig& config, const DecoderTableOptions& options) {
  const int64_t W = config.hidden_size, H = config.num_attention_heads,
                kv = config.num_key_value_heads;
  FERRY_CHECK(options.attention != AttentionBackend::flash || options.compute != DType::f32,
              "flash attention has no fp32 form");
  FERRY_CHECK(H > 0 && W % H == 0 && kv > 0 && H % kv == 0, "width {}, {} heads, {} of keys", W, H,
              kv);
  FERRY_CHECK(config.family == DecoderFamily::gpt2 ? kv == H : W / H % 2 == 0,
              "width {}, {} heads, {} of keys", W, H, kv);
  FERRY_CHECK(options.attention == AttentionBackend::cpu_math || (W / H % 8 == 0 && W / H <= 256),
              "heads of width {}; on a GPU they are multiples of 8 up to 256", W / H);
}

}  // namespace

ModelTable make_decoder_table(const DecoderConfig& config, const DecoderTableOptions& options) {
  check_shape(config, options);
  const bool is_llama = config.family == DecoderFamily::llama;

  ModelTable model;
  model.family = is_llama ? "llama" : "gpt2";
  model.hf_architecture = is_llama ? "LlamaForCausalLM" : "GPT2LMHeadModel";
  model.head = HeadKind::causal_lm;
  model.width = config.hidden_size;
  model.n_heads = config.num_attention_heads;
  model.n_kv_heads = config.num_key_value_heads;
  model.norm_eps = config.norm_eps;
  model.rope_theta = is_llama ? config.rope_theta : 0;
  model.compute = options.compute;
  model.attention = options.attention;
  model.hidden_dropout = is_llama ? 0 : config.hidden_dropout;
  model.attention_dropout = config.attention_dropout;
  model.init_std = config.initializer_range;
  model.max_positions = config.max_position_embeddings;
  model.vocab_size = config.vocab_size;

  const Sizes sizes = {.W = config.hidden_size,
                       .F = config.intermediate_size,
                       .V = config.vocab_size,
                       .heads = {.n_heads = config.num_attention_heads,
                                 .n_kv_heads = config.num_key_value_heads,
                                 .head_width = config.hidden_size / config.num_attention_heads},
                       .type = options.compute,
                       .attention = options.attention,
                       .gpu_multiprocessors = options.gpu_multiprocessors,
                       .has_layer_norm = !is_llama};
  TableBuilder builder(model, is_llama ? "model." : "transformer.");
  add_embeddings(builder, config, sizes);
  for (int64_t i = 0; i < config.num_hidden_layers; i++) {
    if (is_llama) {
      add_llama_layer(builder, i, sizes);
    } else {
      add_gpt2_layer(builder, i, sizes);
    }
  }
  add_head(builder, config, sizes);
  if (!is_llama || config.tie_word_embeddings) model.hf_ignored.push_back("lm_head.weight");
  return model;
}

DecoderConfig llama_3g() {
  return {.family = DecoderFamily::llama,
          .vocab_size = 32000,
          .hidden_size = 3072,
          .num_hidden_layers = 28,
          .num_attention_heads = 24,
          .num_key_value_heads = 8,
          .intermediate_size = 8192,
          .max_position_embeddings = 2048};
}

DecoderConfig gpt2_13g() {
  return {.family = DecoderFamily::gpt2,
          .vocab_size = 50257,
          .hidden_size = 5120,
          .num_hidden_layers = 40,
          .num_attention_heads = 128,
          .num_key_value_heads = 128,
          .intermediate_size = 20480,
          .max_position_embeddings = 512,
          .hidden_dropout = 0.1f,
          .attention_dropout = 0.1f};
}

}  // namespace ferry
