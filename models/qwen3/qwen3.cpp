#include "models/qwen3/qwen3.h"

#include <utility>

#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

DecoderConfig read(const JsonReader& config, const TableOptions& options) {
  constexpr int64_t kHeadWidth = 128;  // whatever the model's width
  DecoderConfig kin = llama_kin("qwen3", "Qwen3");
  kin.head_dim = kHeadWidth;
  kin.num_key_value_heads = 32;
  DecoderConfig qwen = read_llama_like(config, options, std::move(kin));
  qwen.model_prefix = prefix_of_answers(options);
  qwen.norms_heads = true;
  read_window_of_last_layers(config, qwen);
  return qwen;
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  return make_decoder(read(config, options), options);
}

}  // namespace

Family qwen3_family() {
  return {.model_type = "qwen3",
          .is_decoder = true,
          .heads = DecoderHeads::kAll,
          .table = make,
          .decoder = read};
}

}  // namespace ferry
