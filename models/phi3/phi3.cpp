#include "models/phi3/phi3.h"

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig phi = read_llama_like(config);
  phi.name = "phi3";
  phi.stem = "Phi3";
  phi.is_fused = true;
  expect_off(config, "resid_pdrop", "its branches are trained without dropout");
  expect_off(config, "embd_pdrop", "its embeddings are trained without dropout");
  if (config.find("sliding_window"))
    phi.window = config.integer("sliding_window", 1, kPositionsMax);
  return make_decoder(phi, options);
}

}  // namespace

Family phi3_family() {
  return {.model_type = "phi3", .is_decoder = true, .heads = kDecoderHeads, .table = make};
}

}  // namespace ferry
