#include <fmt/format.h>

#include "models/bert/bert_blocks.h"
#include "models/block.h"
#include "models/decoder/decoder_blocks.h"
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
    case HeadKind::causal_lm:
      break;
  }
  FERRY_CHECK(false, "BERT has no head of kind {}", static_cast<int>(head));
  return nullptr;
}

std::unique_ptr<Block> make_bert_block(const ModelTable& model, BlockKind kind, LossKind loss) {
  const bert::BlockSettings settings = {.n_heads = model.n_heads,
                                        .norm_eps = model.norm_eps,
                                        .attention = model.attention,
                                        .hidden_dropout = model.hidden_dropout,
                                        .attention_dropout = model.attention_dropout,
                                        .head_dropout = model.head_dropout};
  switch (kind) {
    case BlockKind::embeddings:
      return bert::make_embeddings(settings);
    case BlockKind::layer:
      return bert::make_layer(settings);
    case BlockKind::head:
      return make_head(model.head, settings, loss);
  }
  return nullptr;
}

std::unique_ptr<Block> make_decoder_block(const ModelTable& model, BlockKind kind) {
  const decoder::BlockSettings settings = {.n_heads = model.n_heads,
                                           .n_kv_heads = model.n_kv_heads,
                                           .norm_eps = model.norm_eps,
                                           .rope_theta = model.rope_theta,
                                           .attention = model.attention,
                                           .hidden_dropout = model.hidden_dropout,
                                           .attention_dropout = model.attention_dropout};
  const bool is_llama = model.family == "llama";
  switch (kind) {
    case BlockKind::embeddings:
      return decoder::make_embeddings(settings);
    case BlockKind::layer:
      return is_llama ? decoder::make_llama_layer(settings) : decoder::make_gpt2_layer(settings);
    case BlockKind::head:
      return is_llama ? decoder::make_llama_head(settings) : decoder::make_gpt2_head(settings);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Block> make_block(const ModelTable& model, int block, LossKind loss) {
  const BlockKind kind = model.blocks[static_cast<size_t>(block)].kind;
  FERRY_CHECK(kind != BlockKind::head || head_of(loss) == model.head,
              "loss {} with a head of kind {}", static_cast<int>(loss),
              static_cast<int>(model.head));
  if (model.family == "bert") return make_bert_block(model, kind, loss);
  FERRY_CHECK(model.family == "llama" || model.family == "gpt2", "family '{}' has no code",
              model.family);
  return make_decoder_block(model, kind);
}

}  // namespace ferry
