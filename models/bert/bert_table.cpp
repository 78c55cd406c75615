#include "models/bert/bert_table.h"

#include "models/encoder/encoder_blocks.h"

namespace ferry {
namespace {

void add_embeddings(ModelBuilder& builder, const BertConfig& config, const ModelTable& model) {
  const int64_t W = config.hidden_size;
  const std::string hf = "bert.embeddings.";
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word = b.words("word.weight", config.vocab_size, W, {hf + "word_embeddings.weight"},
                               {.zero_row = model.padding_row});
  const ParamId position = b.matrix("position.weight", config.max_position_embeddings, W,
                                    {hf + "position_embeddings.weight"});
  const ParamId type = b.matrix("token_type.weight", config.type_vocab_size, W,
                                {hf + "token_type_embeddings.weight"});
  const ParamId norm_weight = b.norm_weight("norm.weight", W, norm_weight_name(hf + "LayerNorm"));
  const ParamId norm_bias = b.bias("norm.bias", W, norm_bias_name(hf + "LayerNorm"));

  const ValueId sum = b.embedding("sum", word, position, type);
  b.end(b.norm("norm", sum, norm_weight, norm_bias, model.norm_eps, model.hidden_dropout,
               embedding_dropout));
}

/** The names in BERT checkpoints besides the weights that this model uses, other heads' among them.
 */
std::vector<std::string> ignored_names(HeadKind head) {
  using enum HeadKind;
  std::vector<std::string> names = {"cls.seq_relationship.weight", "cls.seq_relationship.bias",
                                    "cls.predictions.decoder.weight"};
  const auto ignore_unless = [&names](bool used, std::initializer_list<const char*> more) {
    if (!used) names.insert(names.end(), more.begin(), more.end());
  };
  ignore_unless(head == classification, {"pooler.dense.weight", "pooler.dense.bias",
                                         "bert.pooler.dense.weight", "bert.pooler.dense.bias"});
  ignore_unless(head == classification || head == token_classification,
                {"classifier.weight", "classifier.bias"});
  ignore_unless(head == question_answering, {"qa_outputs.weight", "qa_outputs.bias"});
  ignore_unless(
      head == masked_lm,
      {"cls.predictions.transform.dense.weight", "cls.predictions.transform.dense.bias",
       "cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.LayerNorm.bias",
       "cls.predictions.transform.LayerNorm.gamma", "cls.predictions.transform.LayerNorm.beta",
       "cls.predictions.bias", "cls.predictions.decoder.bias"});
  return names;
}

}  // namespace

ModelTable make_bert_table(const BertConfig& config, const TableOptions& options) {
  ModelTable model = start_encoder({.family = "bert",
                                    .stem = "Bert",
                                    .width = config.hidden_size,
                                    .n_heads = config.num_attention_heads,
                                    .max_positions = config.max_position_embeddings,
                                    .vocab_size = config.vocab_size,
                                    .padding_row = config.padding_row,
                                    .n_token_types = config.type_vocab_size,
                                    .norm_eps = config.layer_norm_eps,
                                    .init_std = config.initializer_range,
                                    .hidden_dropout = config.hidden_dropout_prob,
                                    .attention_dropout = config.attention_probs_dropout_prob,
                                    .head_dropout = config.classifier_dropout},
                                   options);
  ModelBuilder builder(model, "bert.", options.gpu_multiprocessors, options.cut);
  add_embeddings(builder, config, model);
  for (int64_t i = 0; i < config.num_hidden_layers; i++)
    add_encoder_layer(builder, i,
                      bert_like_layer("bert", i, config.hidden_size, config.intermediate_size,
                                      config.num_attention_heads),
                      model);
  add_encoder_head(builder, model,
                   {.classifier = {.dense = "bert.pooler.dense", .logits = "classifier"},
                    .masked_lm = {.width = model.width,
                                  .dense = "cls.predictions.transform.dense",
                                  .norm = "cls.predictions.transform.LayerNorm",
                                  .bias = "cls.predictions.bias",
                                  .decoder = "cls.predictions.decoder"}});
  model.hf_ignored = ignored_names(options.head);
  return model;
}

Family bert_family() {
  return {.model_type = "bert",
          .heads = kEncoderHeads,
          .old_buffers = kEncoderBuffers,
          .table = [](const JsonReader& config, const TableOptions& options) {
            check_encoder(config, options);
            return make_bert_table(parse_bert_config(config), options);
          }};
}

}  // namespace ferry
