#include "models/stablelm/stablelm.h"

#include <utility>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig kin = llama_kin("stablelm", "StableLm");
  kin.num_key_value_heads = 32;
  kin.has_layer_norms = true;
  kin.norm_eps = 1e-5f;
  kin.head_dropout = 0;
  kin.reads_attention_bias = false;
  kin.rope_reading = {.partial = 0.25, .turns_part = true};
  DecoderConfig stablelm = read_llama_like(config, options, std::move(kin));
  expect_off(config, "qk_layernorm", "norms of heads' queries and keys are not computed here");
  stablelm.qkv_bias = config.flag("use_qkv_bias", false);
  stablelm.is_parallel = config.flag("use_parallel_residual", false);
  stablelm.hidden_dropout = read_dropout(config, "hidden_dropout", 0);
  return make_decoder(stablelm, options);
}

}  // namespace

Family stablelm_family() {
  return {.model_type = "stablelm",
          .is_decoder = true,
          .heads = DecoderHeads::kWithoutAnswers,
          .table = make};
}

}  // namespace ferry
