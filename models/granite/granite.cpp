#include "models/granite/granite.h"

#include <string_view>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig granite = read_llama_like(config, options, llama_kin("granite", "Granite"));
  const auto number = [&](std::string_view key) { return config.number(key, 1e-6, 1e6, 1.0); };
  granite.mlp_bias = config.flag("mlp_bias", false);
  granite.embedding.word_scale = static_cast<float>(number("embedding_multiplier"));
  granite.score_scale = number("attention_multiplier");
  granite.branch_factor = static_cast<float>(number("residual_multiplier"));
  granite.logits.factor = static_cast<float>(1 / number("logits_scaling"));
  return make_decoder(granite, options);
}

}  // namespace

Family granite_family() {
  return {
      .model_type = "granite", .is_decoder = true, .heads = DecoderHeads::kOfWords, .table = make};
}

}  // namespace ferry
