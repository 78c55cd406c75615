#include "src/files/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace ferry {
namespace {

using Modules = std::vector<std::pair<std::string_view, std::string_view>>;

/** With `is_fused` query, key and value are one map, and so are gate and up. With `norms_outputs`
 * each branch is normed, too. */
GgufNames of_llama_build(std::string_view model_type,
                         std::string_view architecture,
                         std::string_view hf_class,
                         bool is_fused = false,
                         bool norms_outputs = false) {
  Modules modules = {{"input_layernorm", "attn_norm"},
                     {"self_attn.o_proj", "attn_output"},
                     {"self_attn.q_norm", "attn_q_norm"},
                     {"self_attn.k_norm", "attn_k_norm"},
                     {"mlp.down_proj", "ffn_down"}};
  if (is_fused)
    modules.insert(modules.end(),
                   {{"self_attn.qkv_proj", "attn_qkv"}, {"mlp.gate_up_proj", "ffn_up"}});
  else
    modules.insert(modules.end(), {{"self_attn.q_proj", "attn_q"},
                                   {"self_attn.k_proj", "attn_k"},
                                   {"self_attn.v_proj", "attn_v"},
                                   {"mlp.gate_proj", "ffn_gate"},
                                   {"mlp.up_proj", "ffn_up"}});
  if (norms_outputs)
    modules.insert(modules.end(), {{"post_attention_layernorm", "post_attention_norm"},
                                   {"pre_feedforward_layernorm", "ffn_norm"},
                                   {"post_feedforward_layernorm", "post_ffw_norm"}});
  else
    modules.emplace_back("post_attention_layernorm", "ffn_norm");
  return {.model_type = model_type,
          .architecture = architecture,
          .hf_class = hf_class,
          .words = "model.embed_tokens",
          .norm = "model.norm",
          .head = "lm_head",
          .layers = "model.layers.",
          .modules = std::move(modules)};
}

/** Tensors outside of the layers. */
Modules outer_names(const GgufNames& names) {
  return {{names.words, "token_embd"},
          {names.norm, "output_norm"},
          {names.head, "output"},
          {"transformer.wpe", "position_embd"}};
}

constexpr std::string_view kBlocks = "blk.";

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

std::string GgufNames::gguf_name(std::string_view hf) const {
  const size_t dot = hf.rfind('.');
  const std::string_view module = hf.substr(0, dot), kind = hf.substr(dot);
  for (const auto& [theirs, its] : outer_names(*this))
    if (module == theirs) return fmt::format("{}{}", its, kind);
  if (!module.starts_with(layers)) return {};
  const std::string_view rest = module.substr(layers.size());
  const size_t end = rest.find('.');
  if (end == rest.npos) return {};
  for (const auto& [theirs, its] : modules)
    if (rest.substr(end + 1) == theirs)
      return fmt::format("{}{}.{}{}", kBlocks, rest.substr(0, end), its, kind);
  return {};
}

std::string GgufNames::hf_name(std::string_view gguf) const {
  const size_t dot = gguf.rfind('.');
  if (dot == gguf.npos) return {};
  const std::string_view module = gguf.substr(0, dot), kind = gguf.substr(dot);
  for (const auto& [theirs, its] : outer_names(*this))
    if (module == its) return fmt::format("{}{}", theirs, kind);
  if (!module.starts_with(kBlocks)) return {};
  const std::string_view rest = module.substr(kBlocks.size());
  const size_t end = rest.find('.');
  if (end == rest.npos) return {};
  for (const auto& [theirs, its] : modules)
    if (rest.substr(end + 1) == its)
      return fmt::format("{}{}.{}{}", layers, rest.substr(0, end), theirs, kind);
  return {};
}

const std::vector<GgufNames>& gguf_names() {
  static const std::vector<GgufNames> all = [] {
    std::vector<GgufNames> made = {
        of_llama_build("llama", "llama", "LlamaForCausalLM"),
        of_llama_build("mistral", "llama", "MistralForCausalLM"),
        of_llama_build("qwen2", "qwen2", "Qwen2ForCausalLM"),
        of_llama_build("qwen3", "qwen3", "Qwen3ForCausalLM"),
        of_llama_build("gemma", "gemma", "GemmaForCausalLM"),
        of_llama_build("gemma2", "gemma2", "Gemma2ForCausalLM", false, /*norms_outputs=*/true),
        of_llama_build("gemma3_text", "gemma3", "Gemma3ForCausalLM", false, /*norms_outputs=*/true),
        of_llama_build("phi3", "phi3", "Phi3ForCausalLM", /*is_fused=*/true),
    };
    made.push_back({.model_type = "gpt2",
                    .architecture = "gpt2",
                    .hf_class = "GPT2LMHeadModel",
                    .words = "transformer.wte",
                    .norm = "transformer.ln_f",
                    .head = "lm_head",
                    .layers = "transformer.h.",
                    .modules = {{"ln_1", "attn_norm"},
                                {"attn.c_attn", "attn_qkv"},
                                {"attn.c_proj", "attn_output"},
                                {"ln_2", "ffn_norm"},
                                {"mlp.c_fc", "ffn_up"},
                                {"mlp.c_proj", "ffn_down"}}});
    made.push_back({.model_type = "gpt_neox",
                    .architecture = "gptneox",
                    .hf_class = "GPTNeoXForCausalLM",
                    .words = "gpt_neox.embed_in",
                    .norm = "gpt_neox.final_layer_norm",
                    .head = "embed_out",
                    .layers = "gpt_neox.layers.",
                    .modules = {{"input_layernorm", "attn_norm"},
                                {"attention.query_key_value", "attn_qkv"},
                                {"attention.dense", "attn_output"},
                                {"post_attention_layernorm", "ffn_norm"},
                                {"mlp.dense_h_to_4h", "ffn_up"},
                                {"mlp.dense_4h_to_h", "ffn_down"}}});
    return made;
  }();
  return all;
}

const std::vector<GgufSplit>& gguf_splits() {
  static const std::vector<GgufSplit> splits = {
      {"gpt-2", {kSplitsByteWords}, false, {"olmo", "mpt", "phi-2", "roberta-bpe"}},
      {"smollm", {kSplitsEachDigit, kSplitsByteWords}, false, {"starcoder", "command-r", "refact"}},
      {"llama-bpe", {kLlama3}, true, {"falcon3", "falcon-h1", "pixtral", "lfm2"}},
      {"dbrx", {kLlama3}},
      {"qwen2", {kQwen2}, false, {"deepseek-r1-qwen"}, /*composes=*/true},
      {"tekken", {kTekken}, true},
      {"gpt-4o", {kO200k}, false, {"llama4"}},
  };
  return splits;
}

}  // namespace ferry
