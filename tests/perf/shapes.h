#pragma once
// The shapes of models that are measured, by name.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "models/bert/bert_table.h"
#include "models/decoder/decoder_table.h"
#include "src/base/error.h"

namespace ferry {

/** Llama's and GPT-2's layers, by shapes that others are measured with; nothing elsewhere. */
inline std::optional<DecoderConfig> decoder_of(const std::string& shape, int64_t n_layers) {
  std::optional<DecoderConfig> config;
  if (shape == "llama-3g") config = llama_3g();
  if (shape == "gpt2-13g") config = gpt2_13g();
  if (shape == "llama-tiny")  // for trying the program out
    config = DecoderConfig{.family = DecoderFamily::llama,
                           .vocab_size = 30522,
                           .hidden_size = 128,
                           .num_hidden_layers = 2,
                           .num_attention_heads = 4,
                           .num_key_value_heads = 2,
                           .intermediate_size = 256,
                           .max_position_embeddings = 2048};
  if (config && n_layers) config->num_hidden_layers = n_layers;
  return config;
}

/** The config.json of a BERT. Throws Error(usage) for other shapes. */
inline nlohmann::json bert_config_of(const std::string& shape, int64_t n_layers) {
  struct Size {
    int width, layers, heads, inner, vocab, positions = 512;
  };
  const std::map<std::string, Size> sizes = {{"minilm", {384, 6, 12, 1536, 30522}},
                                             {"bert-base", {768, 12, 12, 3072, 30522}},
                                             {"bert-large", {1024, 24, 16, 4096, 30522}},
                                             {"six-layers", {1024, 6, 16, 4096, 30522}},
                                             // 3.0 and 12.7 G parameters
                                             {"stack-3g", {3072, 26, 24, 12288, 32000, 1024}},
                                             {"stack-13g", {5120, 40, 40, 20480, 32000, 1024}}};
  const auto size = sizes.find(shape);
  if (size == sizes.end())
    throw Error(Fault::usage, "shape", "unknown shape " + shape,
                "minilm, bert-base, bert-large, six-layers, stack-3g, stack-13g, llama-3g, "
                "gpt2-13g or llama-tiny");
  const Size& s = size->second;
  return {{"model_type", "bert"},
          {"vocab_size", s.vocab},
          {"hidden_size", s.width},
          {"num_hidden_layers", n_layers ? n_layers : s.layers},
          {"num_attention_heads", s.heads},
          {"intermediate_size", s.inner},
          {"max_position_embeddings", s.positions},
          {"type_vocab_size", 2},
          {"hidden_act", "gelu"}};
}

/** The tensor table of a shape; `n_layers` 0: as many as it has. Throws Error(usage) for an unknown
 * one. */
inline ModelTable make_measured_table(const std::string& shape,
                                      int64_t n_layers,
                                      const TableOptions& options) {
  if (const std::optional<DecoderConfig> decoder = decoder_of(shape, n_layers))
    return make_decoder_table(*decoder,
                              {.compute = options.compute, .attention = options.attention});
  return make_bert_table(parse_bert_config(bert_config_of(shape, n_layers)), options);
}

}  // namespace ferry
