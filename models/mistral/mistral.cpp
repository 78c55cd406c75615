#include "models/mistral/mistral.h"

#include <utility>

#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

DecoderConfig read(const JsonReader& config, const TableOptions& options) {
  DecoderConfig kin = llama_kin("mistral", "Mistral");
  kin.num_key_value_heads = 8;
  kin.reads_attention_bias = false;
  DecoderConfig mistral = read_llama_like(config, options, std::move(kin));
  mistral.window = read_window(config, 4096);
  return mistral;
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  return make_decoder(read(config, options), options);
}

}  // namespace

Family mistral_family() {
  return {.model_type = "mistral",
          .is_decoder = true,
          .heads = DecoderHeads::kAll,
          .table = make,
          .decoder = read};
}

}  // namespace ferry
