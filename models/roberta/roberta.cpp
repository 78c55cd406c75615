#include "models/roberta/roberta.h"

#include "models/config_keys.h"
#include "models/encoder/encoder_blocks.h"

namespace ferry {
namespace {

/** Positions count from the padding token's id + 1: the rows before are of padding. */
void add_embeddings(ModelBuilder& builder, const ModelTable& model, int64_t position_offset) {
  const int64_t W = model.width;
  const std::string hf = "roberta.embeddings.";
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word = b.words("word.weight", model.vocab_size, W, {hf + "word_embeddings.weight"},
                               {.zero_row = model.padding_row});
  const ParamId position =
      b.matrix("position.weight", model.max_positions + position_offset, W,
               {hf + "position_embeddings.weight"}, {.zero_row = model.padding_row});
  const ParamId type =
      b.matrix("token_type.weight", model.n_token_types, W, {hf + "token_type_embeddings.weight"});
  const ParamId norm_weight = b.norm_weight("norm.weight", W, norm_weight_name(hf + "LayerNorm"));
  const ParamId norm_bias = b.bias("norm.bias", W, norm_bias_name(hf + "LayerNorm"));

  const ValueId sum =
      b.embedding("sum", word, position, type, {.position_offset = position_offset});
  b.end(b.norm("norm", sum, norm_weight, norm_bias, model.norm_eps, model.hidden_dropout,
               embedding_dropout));
}

ModelTable make(const JsonReader& config,
                const TableOptions& options,
                const char* family,
                const char* stem) {
  expect_text(config, "hidden_act", "gelu");
  check_encoder(config, options);
  EncoderFacts facts = {
      .family = family,
      .stem = stem,
      .width = config.integer("hidden_size", 1, kWidthMax),
      .n_heads = config.integer("num_attention_heads", 1, kHeadsMax),
      .vocab_size = config.integer("vocab_size", 1, kVocabMax),
      .n_token_types = config.integer("type_vocab_size", 1, kTokenTypesMax, 2),
      .norm_eps = read_eps(config, "layer_norm_eps", 1e-12f),
      .init_std = read_init_std(config),
      .hidden_dropout = read_dropout(config, "hidden_dropout_prob", 0.1f),
      .attention_dropout = read_dropout(config, "attention_probs_dropout_prob", 0.1f)};
  if (config.find("classifier_dropout"))
    facts.head_dropout = read_dropout(config, "classifier_dropout", 0);
  expect_divides(config, "num_attention_heads", facts.n_heads, "hidden_size", facts.width);
  facts.padding_row = config.integer("pad_token_id", 0, facts.vocab_size - 1, 1);
  const int64_t offset = facts.padding_row + 1;
  facts.max_positions =
      config.integer("max_position_embeddings", offset + 1, kPositionsMax, 512) - offset;
  const int64_t n_layers = config.integer("num_hidden_layers", 1, kLayersMax);
  const int64_t intermediate = config.integer("intermediate_size", 1, kIntermediateMax);

  ModelTable model = start_encoder(facts, options);
  ModelBuilder builder(model, "roberta.", options.gpu_multiprocessors, options.cut);
  add_embeddings(builder, model, offset);
  for (int64_t i = 0; i < n_layers; i++)
    add_encoder_layer(
        builder, i, bert_like_layer("roberta", i, facts.width, intermediate, facts.n_heads), model);
  add_encoder_head(builder, model,
                   {.classifier = {.dense = "classifier.dense",
                                   .logits = "classifier.out_proj",
                                   .drops_first = true},
                    .masked_lm = {.width = model.width,
                                  .dense = "lm_head.dense",
                                  .norm = "lm_head.layer_norm",
                                  .bias = "lm_head.bias",
                                  .decoder = "lm_head.decoder"}});
  model.hf_ignored = {"roberta.pooler.dense.weight", "roberta.pooler.dense.bias",
                      "lm_head.decoder.weight"};
  return model;
}

}  // namespace

Family roberta_family() {
  return {.model_type = "roberta",
          .heads = kEncoderHeads,
          .old_buffers = kEncoderBuffers,
          .table = [](const JsonReader& config, const TableOptions& options) {
            return make(config, options, "roberta", "Roberta");
          }};
}

Family xlm_roberta_family() {
  return {.model_type = "xlm-roberta",
          .heads = kEncoderHeads,
          .old_buffers = kEncoderBuffers,
          .table = [](const JsonReader& config, const TableOptions& options) {
            return make(config, options, "xlm-roberta", "XLMRoberta");
          }};
}

Family camembert_family() {
  return {.model_type = "camembert",
          .heads = kEncoderHeads,
          .old_buffers = kEncoderBuffers,
          .table = [](const JsonReader& config, const TableOptions& options) {
            return make(config, options, "camembert", "Camembert");
          }};
}

}  // namespace ferry
