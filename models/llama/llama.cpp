#include "models/llama/llama.h"

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

DecoderConfig read(const JsonReader& config, const TableOptions& options) {
  DecoderConfig llama = read_llama_like(config, options, llama_kin("llama", "Llama"));
  llama.model_prefix = prefix_of_answers(options);
  pass_over(config, {"is_llama_config", "max_sequence_length"});
  llama.mlp_bias = config.flag("mlp_bias", false);
  return llama;
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  return make_decoder(read(config, options), options);
}

constexpr std::string_view kOldBuffers[] = {".rotary_emb.inv_freq"};

}  // namespace

Family llama_family() {
  return {.model_type = "llama",
          .is_decoder = true,
          .heads = DecoderHeads::kAll,
          .old_buffers = kOldBuffers,
          .table = make,
          .decoder = read};
}

}  // namespace ferry
