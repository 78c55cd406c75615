#include "models/phi3/phi3.h"

#include <utility>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

DecoderConfig read(const JsonReader& config, const TableOptions& options) {
  DecoderConfig kin = llama_kin("phi3", "Phi3");
  kin.norm_eps = 1e-5f;
  kin.padding_row = 32000;
  kin.reads_attention_bias = false;
  kin.rope_reading = {.turns_part = true, .original_positions = 4096, .is_longrope_alone = true};
  DecoderConfig phi = read_llama_like(config, options, std::move(kin));
  phi.is_fused = true;
  expect_off(config, "resid_pdrop", "its branches are trained without dropout");
  expect_off(config, "embd_pdrop", "its embeddings are trained without dropout");
  pass_over(config, {"full_attn_mod", "interpolate_factor"});  // of code that files name
  phi.window = read_window(config, 0);
  return phi;
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  return make_decoder(read(config, options), options);
}

}  // namespace

Family phi3_family() {
  return {.model_type = "phi3",
          .is_decoder = true,
          .heads = DecoderHeads::kWithoutAnswers,
          .table = make,
          .decoder = read};
}

}  // namespace ferry
