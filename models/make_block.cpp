#include <fmt/format.h>

#include "models/bert/bert_blocks.h"
#include "models/block.h"
#include "src/base/error.h"

namespace ferry {
namespace {

std::unique_ptr<Block> make_head(HeadKind head,
                                 const bert::BlockSettings& settings,
                                 LossKind loss) {
  switch (head) {
    case HeadKind::classification:
      return bert::make_classifier(settings, loss);
    case HeadKind::masked_lm:
      return bert::make_masked_lm(settings);
    case HeadKind::token_classification:
      return bert::make_token_classifier(settings);
    case HeadKind::question_answering:
      return bert::make_question_answering();
  }
  return nullptr;
}

}  // namespace

HeadKind head_of(LossKind loss) {
  switch (loss) {
    case LossKind::cross_entropy:
    case LossKind::multi_label:
    case LossKind::regression:
      return HeadKind::classification;
    case LossKind::masked_lm:
      return HeadKind::masked_lm;
    case LossKind::token_classification:
      return HeadKind::token_classification;
    case LossKind::question_answering:
      return HeadKind::question_answering;
  }
  return HeadKind::classification;
}

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
      FERRY_CHECK(head_of(loss) == model.head, "loss {} with a head of kind {}",
                  static_cast<int>(loss), static_cast<int>(model.head));
      return make_head(model.head, settings, loss);
  }
  return nullptr;
}

}  // namespace ferry
