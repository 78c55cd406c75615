#include "models/mistral/mistral.h"

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig mistral = read_llama_like(config, options, llama_kin("mistral", "Mistral"));
  if (config.find("sliding_window"))
    mistral.window = config.integer("sliding_window", 1, kPositionsMax);
  return make_decoder(mistral, options);
}

}  // namespace

Family mistral_family() {
  return {.model_type = "mistral", .is_decoder = true, .heads = kDecoderHeads, .table = make};
}

}  // namespace ferry
