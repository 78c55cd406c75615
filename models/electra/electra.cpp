#include "models/electra/electra.h"

#include "models/config_keys.h"
#include "models/encoder/encoder_blocks.h"

namespace ferry {
namespace {

void add_embeddings(ModelBuilder& builder, const ModelTable& model, int64_t embedding_width) {
  const int64_t E = embedding_width, W = model.width;
  const std::string hf = "electra.embeddings.";
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word = b.words("word.weight", model.vocab_size, E, {hf + "word_embeddings.weight"},
                               {.zero_row = model.padding_row});
  const ParamId position =
      b.matrix("position.weight", model.max_positions, E, {hf + "position_embeddings.weight"});
  const ParamId type =
      b.matrix("token_type.weight", model.n_token_types, E, {hf + "token_type_embeddings.weight"});
  const ParamId norm_weight = b.norm_weight("norm.weight", E, norm_weight_name(hf + "LayerNorm"));
  const ParamId norm_bias = b.bias("norm.bias", E, norm_bias_name(hf + "LayerNorm"));

  const ValueId sum = b.embedding("sum", word, position, type);  // (T, E)
  const ValueId normed = b.norm("norm", sum, norm_weight, norm_bias, model.norm_eps,
                                model.hidden_dropout, embedding_dropout);
  if (E == W) return b.end(normed);
  const ParamId weight = b.matrix("projection.weight", W, E, {"electra.embeddings_project.weight"});
  const ParamId bias = b.bias("projection.bias", W, {"electra.embeddings_project.bias"});
  b.end(b.linear("projected", normed, weight, bias));  // (T, W)
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  check_encoder(config, options);
  EncoderFacts facts = {
      .family = "electra",
      .stem = "Electra",
      .width = config.integer("hidden_size", 1, kWidthMax, 256),
      .n_heads = config.integer("num_attention_heads", 1, kHeadsMax, 4),
      .max_positions = config.integer("max_position_embeddings", 1, kPositionsMax, 512),
      .vocab_size = config.integer("vocab_size", 1, kVocabMax, 30522),
      .n_token_types = config.integer("type_vocab_size", 1, kTokenTypesMax, 2),
      .norm_eps = read_eps(config, "layer_norm_eps", 1e-12f),
      .init_std = read_init_std(config),
      .hidden_dropout = read_dropout(config, "hidden_dropout_prob", 0.1f),
      .attention_dropout = read_dropout(config, "attention_probs_dropout_prob", 0.1f)};
  if (config.find("classifier_dropout"))
    facts.head_dropout = read_dropout(config, "classifier_dropout", 0);
  expect_divides(config, "num_attention_heads", facts.n_heads, "hidden_size", facts.width);
  facts.padding_row = read_padding_row(config, facts.vocab_size, 0);
  const int64_t embedding_width = config.integer("embedding_size", 1, kWidthMax, 128);
  const int64_t n_layers = config.integer("num_hidden_layers", 1, kLayersMax, 12);
  const int64_t intermediate = config.integer("intermediate_size", 1, kIntermediateMax, 1024);
  const Activation activation = read_activation(config, "hidden_act", Activation::gelu);

  ModelTable model = start_encoder(facts, options);
  ModelBuilder builder(model, "electra.", options.gpu_multiprocessors, options.cut);
  add_embeddings(builder, model, embedding_width);
  for (int64_t i = 0; i < n_layers; i++) {
    EncoderLayer layer = bert_like_layer("electra", i, facts.width, intermediate, facts.n_heads);
    layer.activation = activation;
    add_encoder_layer(builder, i, layer, model);
  }
  add_encoder_head(builder, model,
                   {.classifier = {.dense = "classifier.dense",
                                   .logits = "classifier.out_proj",
                                   .activation = Activation::gelu,
                                   .drops_first = true},
                    .masked_lm = {.width = embedding_width,
                                  .dense = "generator_predictions.dense",
                                  .norm = "generator_predictions.LayerNorm",
                                  .bias = "generator_lm_head.bias",
                                  .decoder = "generator_lm_head"}});
  model.hf_ignored = {"generator_lm_head.weight", "discriminator_predictions.dense.weight",
                      "discriminator_predictions.dense.bias",
                      "discriminator_predictions.dense_prediction.weight",
                      "discriminator_predictions.dense_prediction.bias"};
  return model;
}

}  // namespace

Family electra_family() {
  return {.model_type = "electra",
          .heads = kEncoderHeads,
          .old_buffers = kEncoderBuffers,
          .table = make};
}

}  // namespace ferry
