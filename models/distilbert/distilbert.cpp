#include "models/distilbert/distilbert.h"

#include <fmt/format.h>

#include "models/config_keys.h"
#include "models/encoder/encoder_blocks.h"

namespace ferry {
namespace {

void add_embeddings(ModelBuilder& builder, const ModelTable& model) {
  const int64_t W = model.width;
  const std::string hf = "distilbert.embeddings.";
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word = b.words("word.weight", model.vocab_size, W, {hf + "word_embeddings.weight"},
                               {.zero_row = model.padding_row});
  const ParamId position =
      b.matrix("position.weight", model.max_positions, W, {hf + "position_embeddings.weight"});
  const ParamId norm_weight = b.norm_weight("norm.weight", W, norm_weight_name(hf + "LayerNorm"));
  const ParamId norm_bias = b.bias("norm.bias", W, norm_bias_name(hf + "LayerNorm"));

  b.end(b.norm("norm", b.embedding("sum", word, position, kNone), norm_weight, norm_bias,
               model.norm_eps, model.hidden_dropout, embedding_dropout));
}

EncoderLayer layer_of(int64_t index, const EncoderFacts& facts, int64_t intermediate) {
  const std::string hf = fmt::format("distilbert.transformer.layer.{}.", index);
  return {.width = facts.width,
          .intermediate = intermediate,
          .n_heads = facts.n_heads,
          .query = hf + "attention.q_lin",
          .key = hf + "attention.k_lin",
          .value = hf + "attention.v_lin",
          .attention_output = hf + "attention.out_lin",
          .attention_norm = hf + "sa_layer_norm",
          .up = hf + "ffn.lin1",
          .down = hf + "ffn.lin2",
          .norm = hf + "output_layer_norm"};
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  check_encoder(config, options);
  expect_off(config, "sinusoidal_pos_embds", "positions that are not learned are not trained");
  expect_on(config, "tie_weights_");
  const float sequence_dropout = read_dropout(config, "seq_classif_dropout", 0.2f);
  const float question_dropout = read_dropout(config, "qa_dropout", 0.1f);
  EncoderFacts facts = {
      .family = "distilbert",
      .stem = "DistilBert",
      .width = config.integer("dim", 1, kWidthMax, 768),
      .n_heads = config.integer("n_heads", 1, kHeadsMax, 12),
      .max_positions = config.integer("max_position_embeddings", 1, kPositionsMax, 512),
      .vocab_size = config.integer("vocab_size", 1, kVocabMax, 30522),
      .init_std = read_init_std(config),
      .hidden_dropout = read_dropout(config, "dropout", 0.1f),
      .attention_dropout = read_dropout(config, "attention_dropout", 0.1f)};
  expect_divides(config, "n_heads", facts.n_heads, "dim", facts.width);
  facts.padding_row = read_padding_row(config, facts.vocab_size, 0);
  if (options.head == HeadKind::classification) facts.head_dropout = sequence_dropout;
  if (options.head == HeadKind::question_answering) facts.head_dropout = question_dropout;
  const int64_t n_layers = config.integer("n_layers", 1, kLayersMax, 6);
  const int64_t intermediate = config.integer("hidden_dim", 1, kIntermediateMax, 3072);
  const Activation activation = read_activation(config, "activation", Activation::gelu);

  ModelTable model = start_encoder(facts, options);
  ModelBuilder builder(model, "distilbert.", options.gpu_multiprocessors, options.cut);
  add_embeddings(builder, model);
  for (int64_t i = 0; i < n_layers; i++) {
    EncoderLayer layer = layer_of(i, facts, intermediate);
    layer.activation = activation;
    add_encoder_layer(builder, i, layer, model);
  }
  add_encoder_head(builder, model,
                   {.classifier = {.dense = "pre_classifier",
                                   .logits = "classifier",
                                   .activation = Activation::relu},
                    .masked_lm = {.width = model.width,
                                  .activation = activation,
                                  .dense = "vocab_transform",
                                  .norm = "vocab_layer_norm",
                                  .bias = "vocab_projector.bias",
                                  .decoder = "vocab_projector"},
                    .answers_drop = true});
  model.hf_ignored = {"vocab_projector.weight"};
  return model;
}

}  // namespace

Family distilbert_family() {
  return {.model_type = "distilbert",
          .heads = kEncoderHeads,
          .old_buffers = kEncoderBuffers,
          .table = make};
}

}  // namespace ferry
