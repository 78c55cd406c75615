#include "models/qwen2/qwen2.h"

#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig qwen = read_llama_like(config, options, llama_kin("qwen2", "Qwen2"));
  qwen.model_prefix = prefix_of_answers(options);
  qwen.qkv_bias = true;
  read_window_of_last_layers(config, qwen);
  return make_decoder(qwen, options);
}

}  // namespace

Family qwen2_family() {
  return {.model_type = "qwen2", .is_decoder = true, .heads = kDecoderHeads, .table = make};
}

}  // namespace ferry
