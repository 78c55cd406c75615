#include <fmt/format.h>

#include "models/bert/bert_blocks.h"
#include "models/block.h"
#include "src/base/error.h"

namespace ferry {

std::unique_ptr<Block> make_block(const ModelTable& model, int block, LossKind loss) {
  FERRY_CHECK(model.family == "bert", "family '{}' has no code", model.family);
  const bert::BlockSettings settings = {.n_heads = model.n_heads,
                                        .norm_eps = model.norm_eps,
                                        .attention = model.attention,
                                        .hidden_dropout = model.hidden_dropout,
                                        .attention_dropout = model.attention_dropout,
                                        .head_dropout = model.head_dropout};
  switch (model.blocks[static_cast<size_t>(block)].kind) {
    case BlockKind::embeddings:
      return bert::make_embeddings(settings);
    case BlockKind::layer:
      return bert::make_layer(settings);
    case BlockKind::head:
      FERRY_CHECK((loss == LossKind::masked_lm) == (model.n_labels == 0), "loss {} with {} labels",
                  static_cast<int>(loss), model.n_labels);
      return loss == LossKind::masked_lm ? bert::make_masked_lm(settings)
                                         : bert::make_classifier(settings, loss);
  }
  return nullptr;
}

}  // namespace ferry
