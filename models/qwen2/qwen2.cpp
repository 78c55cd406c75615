#include "models/qwen2/qwen2.h"

#include <utility>

#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

DecoderConfig read(const JsonReader& config, const TableOptions& options) {
  DecoderConfig kin = llama_kin("qwen2", "Qwen2");
  kin.num_key_value_heads = 32;
  kin.reads_attention_bias = false;
  DecoderConfig qwen = read_llama_like(config, options, std::move(kin));
  qwen.model_prefix = prefix_of_answers(options);
  qwen.qkv_bias = true;
  read_window_of_last_layers(config, qwen);
  return qwen;
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  return make_decoder(read(config, options), options);
}

}  // namespace

Family qwen2_family() {
  return {.model_type = "qwen2",
          .is_decoder = true,
          .heads = DecoderHeads::kAll,
          .table = make,
          .decoder = read};
}

}  // namespace ferry
