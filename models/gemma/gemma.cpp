#include "models/gemma/gemma.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

DecoderConfig gemma_kin(const char* name, const char* stem) {
  DecoderConfig kin = llama_kin(name, stem);
  kin.head_dim = 256;
  kin.tie_word_embeddings = true;
  kin.gate = Activation::gelu_tanh;
  kin.padding_row = 0;
  return kin;
}

DecoderConfig read_kin(const JsonReader& config,
                       const TableOptions& options,
                       DecoderConfig kin,
                       std::string_view gate) {
  DecoderConfig gemma = read_llama_like(config, options, std::move(kin), gate);
  gemma.norm_offset = 1;
  gemma.embedding = {.word_scale = std::sqrt(static_cast<float>(gemma.hidden_size)),
                     .rounds = true};
  expect_off(config, "use_bidirectional_attention");
  return gemma;
}

/** Gemma 2 and 3 name the function of their MLP in another key than Gemma 1, which their files may
 * have, too. */
DecoderConfig read_later(const JsonReader& config,
                         const TableOptions& options,
                         DecoderConfig kin,
                         int64_t pattern) {
  pass_over(config, {"hidden_act", "sliding_window_size", "_sliding_window_pattern"});
  DecoderConfig gemma = read_kin(config, options, std::move(kin), "hidden_activation");
  gemma.norms_outputs = true;
  gemma.score_scale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 1e-3, 1e6, 256.0));
  std::vector<bool> all_but_each_last;
  for (int64_t i = 0; i < gemma.num_hidden_layers; ++i)
    all_but_each_last.push_back((i + 1) % pattern != 0);
  gemma.layer_has_window =
      read_layers_with_window(config, gemma.num_hidden_layers, std::move(all_but_each_last));
  gemma.window = read_window(config, 4096);
  return gemma;
}

DecoderConfig read_gemma(const JsonReader& config, const TableOptions& options) {
  DecoderConfig kin = gemma_kin("gemma", "Gemma");
  kin.num_key_value_heads = 16;
  DecoderConfig gemma = read_kin(config, options, std::move(kin), "hidden_act");
  // The first files say gelu, and were trained with its approximation.
  if (gemma.gate == Activation::gelu) gemma.gate = Activation::gelu_tanh;
  if (read_activation(config, "hidden_activation", gemma.gate) != gemma.gate)
    config.at("hidden_activation")
        .refuse("the function of hidden_act", "releases of transformers read one or the other");
  return gemma;
}

/** A cap of scores or logits; 0 for null, which is none. */
float read_cap(const JsonReader& config, std::string_view key, double otherwise) {
  constexpr double kCapMax = 1e6;
  if (config.value().contains(key) && !config.find(key)) return 0;
  return static_cast<float>(config.number(key, 0, kCapMax, otherwise));
}

DecoderConfig read_gemma2(const JsonReader& config, const TableOptions& options) {
  DecoderConfig kin = gemma_kin("gemma2", "Gemma2");
  kin.num_key_value_heads = 4;
  pass_over(config, {"sliding_window_pattern"});
  DecoderConfig gemma = read_later(config, options, std::move(kin), 2);
  gemma.score_cap = read_cap(config, "attn_logit_softcapping", 50);
  gemma.logits.soft_cap = read_cap(config, "final_logit_softcapping", 30);
  return gemma;
}

DecoderConfig read_gemma3(const JsonReader& config, const TableOptions& options) {
  DecoderConfig kin = gemma_kin("gemma3_text", "Gemma3");
  kin.classifier_stem = "Gemma3Text";
  // Files with images say what differs from the first of them, and name the part for texts so.
  kin.vocab_size = 262208;
  kin.hidden_size = 2304;
  kin.intermediate_size = 9216;
  kin.num_hidden_layers = 26;
  kin.num_attention_heads = 8;
  kin.num_key_value_heads = 4;
  kin.max_position_embeddings = 131072;
  kin.model_prefix.others = {"language_model.model.", "model.language_model."};
  const RopeReading of_full = {
      .theta = 1e6, .has_original_beside = false, .is_of_each_layer_type = true};
  const RopeReading of_windows = {.theta_key = "rope_local_base_freq",
                                  .has_original_beside = false};
  kin.rope_reading = of_full;
  const int64_t pattern = config.integer("sliding_window_pattern", 1, kLayersMax, 6);
  DecoderConfig gemma = read_later(config, options, std::move(kin), pattern);
  gemma.norms_heads = true;
  expect_off(config, "attn_logit_softcapping");
  expect_off(config, "final_logit_softcapping");
  const int64_t D = gemma.head_dim, positions = gemma.max_position_embeddings;
  // Newer files have one for each type of layers; older ones name the full layers' alone.
  const auto each = config.find("rope_parameters"), older = config.find("rope_scaling");
  if (older && older->find("type") && !older->find("rope_type"))
    older->fail("names its scaling by type alone, which not every release of transformers reads",
                "call it rope_type, if the model was made with it");
  if (each && older) each->fail("is there beside rope_scaling", "keep rope_parameters alone");
  if (older && (older->find("full_attention") || older->find("sliding_attention")))
    older->fail("has rotary positions for each type of layers", "call it rope_parameters");
  if (each && !each->find("full_attention") && !each->find("sliding_attention"))
    each->fail("has neither full_attention nor sliding_attention");
  if (each) gemma.rope = read_rope(config, each->find("full_attention"), D, positions, of_full);
  gemma.window_rope = read_rope(config, each ? each->find("sliding_attention") : std::nullopt, D,
                                positions, of_windows);
  if (gemma.rope->scaling == RopeScaling::longrope &&
      gemma.window_rope->scaling == RopeScaling::longrope &&
      gemma.rope->original_positions != gemma.window_rope->original_positions)
    each->fail("names two lengths from which texts are long");
  return gemma;
}

template <auto& read>
ModelTable make(const JsonReader& config, const TableOptions& options) {
  return make_decoder(read(config, options), options);
}

}  // namespace

Family gemma_family() {
  return {.model_type = "gemma",
          .is_decoder = true,
          .heads = DecoderHeads::kWithoutAnswers,
          .table = make<read_gemma>,
          .decoder = read_gemma};
}

Family gemma2_family() {
  return {.model_type = "gemma2",
          .is_decoder = true,
          .heads = DecoderHeads::kWithoutAnswers,
          .table = make<read_gemma2>,
          .decoder = read_gemma2};
}

Family gemma3_family() {
  return {.model_type = "gemma3_text",
          .is_decoder = true,
          .heads = DecoderHeads::kOfTexts,
          .table = make<read_gemma3>,
          .decoder = read_gemma3};
}

}  // namespace ferry
