#include "models/qwen3/qwen3.h"

#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig qwen = read_llama_like(config);
  qwen.name = "qwen3";
  qwen.stem = "Qwen3";
  qwen.norms_heads = true;
  read_window_of_last_layers(config, qwen);
  return make_decoder(qwen, options);
}

}  // namespace

Family qwen3_family() {
  return {.model_type = "qwen3", .is_decoder = true, .heads = kDecoderHeads, .table = make};
}

}  // namespace ferry
