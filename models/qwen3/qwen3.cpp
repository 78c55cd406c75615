#include "models/qwen3/qwen3.h"

#include <utility>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig qwen = read_llama_like(config);
  qwen.name = "qwen3";
  qwen.stem = "Qwen3";
  qwen.norms_heads = true;
  const bool has_window = config.flag("use_sliding_window", false);
  const int64_t n_full = config.integer("max_window_layers", 0, kLayersMax, 28);
  const auto window = config.find("sliding_window");
  std::vector<bool> last_layers;
  for (int64_t i = 0; i < qwen.num_hidden_layers; ++i)
    last_layers.push_back(i >= n_full);
  qwen.layer_has_window =
      read_layers_with_window(config, qwen.num_hidden_layers, std::move(last_layers));
  if (has_window && window) qwen.window = window->integer(1, kPositionsMax);
  return make_decoder(qwen, options);
}

}  // namespace

Family qwen3_family() {
  return {.model_type = "qwen3", .is_decoder = true, .heads = kDecoderHeads, .table = make};
}

}  // namespace ferry
