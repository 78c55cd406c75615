#include "models/bert/bert_table.h"

#include <fmt/format.h>

#include "models/core/block_builder.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Operations that draw random numbers. */
enum Random { embedding_dropout, attention_probs, attention_output, layer_output, head_dropout };

/** The names of a LayerNorm's parameters; very old checkpoints say gamma and beta. */
HfName norm_weight_name(const std::string& hf, bool optional = false) {
  return {.name = hf + ".weight", .optional = optional, .also_named = {hf + ".gamma"}};
}
HfName norm_bias_name(const std::string& hf, bool optional = false) {
  return {.name = hf + ".bias", .optional = optional, .also_named = {hf + ".beta"}};
}

void add_embeddings(ModelBuilder& builder, const BertConfig& config, const ModelTable& model) {
  const int64_t W = config.hidden_size;
  const std::string hf = "bert.embeddings.";
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word =
      b.matrix("word.weight", config.vocab_size, W, {hf + "word_embeddings.weight"});
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

void add_layer(ModelBuilder& builder,
               int64_t index,
               const BertConfig& config,
               const ModelTable& model) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const std::string hf = fmt::format("bert.encoder.layer.{}.", index);
  const std::string self = hf + "attention.self.", out = hf + "attention.output.";
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId qkv_weight = b.matrix(
      "attention.qkv.weight", W,
      {{{self + "query.weight"}, W}, {{self + "key.weight"}, W}, {{self + "value.weight"}, W}});
  const ParamId qkv_bias =
      b.bias("attention.qkv.bias",
             {{{self + "query.bias"}, W}, {{self + "key.bias"}, W}, {{self + "value.bias"}, W}});
  const ParamId dense_weight = b.matrix("attention.dense.weight", W, W, {out + "dense.weight"});
  const ParamId dense_bias = b.bias("attention.dense.bias", W, {out + "dense.bias"});
  const ParamId attention_norm_weight =
      b.norm_weight("attention.norm.weight", W, norm_weight_name(out + "LayerNorm"));
  const ParamId attention_norm_bias =
      b.bias("attention.norm.bias", W, norm_bias_name(out + "LayerNorm"));
  const ParamId up_weight = b.matrix("up.weight", F, W, {hf + "intermediate.dense.weight"});
  const ParamId up_bias = b.bias("up.bias", F, {hf + "intermediate.dense.bias"});
  const ParamId down_weight = b.matrix("down.weight", W, F, {hf + "output.dense.weight"});
  const ParamId down_bias = b.bias("down.bias", W, {hf + "output.dense.bias"});
  const ParamId norm_weight =
      b.norm_weight("norm.weight", W, norm_weight_name(hf + "output.LayerNorm"));
  const ParamId norm_bias = b.bias("norm.bias", W, norm_bias_name(hf + "output.LayerNorm"));

  const int64_t H = config.num_attention_heads;
  const BlockBuilder::Heads heads = {.n_heads = H, .n_kv_heads = H, .head_width = W / H};
  const ValueId x = b.input();                                             // (T, W)
  const ValueId qkv = b.linear("attention.qkv", x, qkv_weight, qkv_bias);  // (T, 3W)
  const ValueId context = b.attention("attention.context", qkv, heads, /*causal=*/false,
                                      model.attention_dropout, attention_probs);
  const ValueId dense = b.linear("attention.dense", context, dense_weight);
  const auto [attention_sum, attended] = b.residual_norm(
      "attention.sum", "attention.norm", dense, dense_bias, x, attention_norm_weight,
      attention_norm_bias, model.norm_eps, model.hidden_dropout, attention_output);
  const auto [up, activated] =
      b.activation("activated", Activation::gelu, b.linear("up", attended, up_weight), up_bias);
  b.recompute(up);  // (T, F)
  const ValueId down = b.linear("down", activated, down_weight);
  const auto [sum, y] =
      b.residual_norm("sum", "norm", down, down_bias, attended, norm_weight, norm_bias,
                      model.norm_eps, model.hidden_dropout, layer_output);
  b.end(y);
}

/** Pooler (dense, tanh) over each sequence's first token, dropout, classifier. */
void add_classifier(ModelBuilder& builder, const ModelTable& model) {
  const int64_t W = model.width, L = model.n_labels;
  BlockBuilder b = builder.block("head", BlockKind::head);
  const ParamId pooler_weight =
      b.matrix("pooler.weight", W, W, {.name = "bert.pooler.dense.weight", .optional = true});
  const ParamId pooler_bias =
      b.bias("pooler.bias", W, {.name = "bert.pooler.dense.bias", .optional = true});
  const ParamId weight =
      b.matrix("classifier.weight", L, W, {.name = "classifier.weight", .optional = true});
  const ParamId bias = b.bias("classifier.bias", L, {.name = "classifier.bias", .optional = true});

  const ValueId first = b.first_rows("first", b.input());  // (n_seqs, W)
  const ValueId pooled = b.tanh("pooled", b.linear("pooler", first, pooler_weight, pooler_bias));
  const ValueId dropped = b.dropout("dropped", pooled, model.head_dropout, head_dropout);
  b.label_loss(b.logits(dropped, weight, bias));  // (n_seqs, L) fp32
  b.end();
}

/** Dropout, classifier of each token. transformers builds this head, and the next, without a
 * pooler. */
void add_token_classifier(ModelBuilder& builder, const ModelTable& model) {
  const int64_t W = model.width, L = model.n_labels;
  BlockBuilder b = builder.block("head", BlockKind::head);
  const ParamId weight =
      b.matrix("classifier.weight", L, W, {.name = "classifier.weight", .optional = true});
  const ParamId bias = b.bias("classifier.bias", L, {.name = "classifier.bias", .optional = true});

  const ValueId dropped = b.dropout("dropped", b.input(), model.head_dropout, head_dropout);
  b.label_loss(b.logits(dropped, weight, bias));  // (T, L) fp32
  b.end();
}

/** One linear map to two logits a token: start and end of the answer. */
void add_question_answering(ModelBuilder& builder, const ModelTable& model) {
  const int64_t W = model.width, L = model.n_labels;
  BlockBuilder b = builder.block("head", BlockKind::head);
  const ParamId weight =
      b.matrix("qa_outputs.weight", L, W, {.name = "qa_outputs.weight", .optional = true});
  const ParamId bias = b.bias("qa_outputs.bias", L, {.name = "qa_outputs.bias", .optional = true});

  b.span_loss(b.logits(b.input(), weight, bias, /*by_column=*/true));  // (2, T) fp32
  b.end();
}

/** Dense, gelu, norm, then the embeddings' matrix and a bias, on the tokens that have a label. */
void add_masked_lm(ModelBuilder& builder, const ModelTable& model) {
  const int64_t W = model.width;
  const std::string hf = "cls.predictions.transform.";
  BlockBuilder b = builder.block("head", BlockKind::head);
  const ParamId dense_weight =
      b.matrix("dense.weight", W, W, {.name = hf + "dense.weight", .optional = true});
  const ParamId dense_bias = b.bias("dense.bias", W, {.name = hf + "dense.bias", .optional = true});
  const ParamId norm_weight =
      b.norm_weight("norm.weight", W, norm_weight_name(hf + "LayerNorm", /*optional=*/true));
  const ParamId norm_bias =
      b.bias("norm.bias", W, norm_bias_name(hf + "LayerNorm", /*optional=*/true));
  const ParamId decoder_bias = b.bias("decoder.bias", model.vocab_size,
                                      {.name = "cls.predictions.bias",
                                       .optional = true,
                                       .also_named = {"cls.predictions.decoder.bias"}});
  const ParamId word = b.borrow(/*block=*/0, /*param=*/0);

  const ValueId labelled = b.labelled_rows("labelled", b.input());  // (label tokens, W)
  const auto [dense, activated] =
      b.activation("gelu", Activation::gelu, b.linear("dense", labelled, dense_weight), dense_bias);
  b.vocabulary_loss(b.norm("norm", activated, norm_weight, norm_bias, model.norm_eps), word,
                    decoder_bias);
  b.end();
}

/** The names in BERT checkpoints besides the weights that this model uses, other heads' among them.
 */
std::vector<std::string> ignored_names(BertHead head) {
  std::vector<std::string> names = {
      "embeddings.position_ids",        "bert.embeddings.position_ids", "embeddings.token_type_ids",
      "bert.embeddings.token_type_ids", "cls.seq_relationship.weight",  "cls.seq_relationship.bias",
      "cls.predictions.decoder.weight"};
  const auto ignore_unless = [&names](bool used, std::initializer_list<const char*> more) {
    if (!used) names.insert(names.end(), more.begin(), more.end());
  };
  ignore_unless(head == BertHead::classification,
                {"pooler.dense.weight", "pooler.dense.bias", "bert.pooler.dense.weight",
                 "bert.pooler.dense.bias"});
  ignore_unless(head == BertHead::classification || head == BertHead::token_classification,
                {"classifier.weight", "classifier.bias"});
  ignore_unless(head == BertHead::question_answering, {"qa_outputs.weight", "qa_outputs.bias"});
  ignore_unless(
      head == BertHead::masked_lm,
      {"cls.predictions.transform.dense.weight", "cls.predictions.transform.dense.bias",
       "cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.LayerNorm.bias",
       "cls.predictions.transform.LayerNorm.gamma", "cls.predictions.transform.LayerNorm.beta",
       "cls.predictions.bias", "cls.predictions.decoder.bias"});
  return names;
}

const char* architecture_of(BertHead head) {
  constexpr const char* kNames[] = {"BertForSequenceClassification", "BertForMaskedLM",
                                    "BertForTokenClassification", "BertForQuestionAnswering"};
  return kNames[static_cast<size_t>(head)];
}

int64_t n_labels_of(const BertTableOptions& options) {
  switch (options.head) {
    case BertHead::classification:
    case BertHead::token_classification:
      FERRY_CHECK(options.n_labels >= 1, "{} labels", options.n_labels);
      return options.n_labels;
    case BertHead::masked_lm:
      return 0;
    case BertHead::question_answering:
      return 2;  // start and end
    case BertHead::causal_lm:
      break;  // refused before
  }
  return 0;
}

void add_head(ModelBuilder& builder, const ModelTable& model) {
  switch (model.head) {
    case BertHead::classification:
      return add_classifier(builder, model);
    case BertHead::masked_lm:
      return add_masked_lm(builder, model);
    case BertHead::token_classification:
      return add_token_classifier(builder, model);
    case BertHead::question_answering:
      return add_question_answering(builder, model);
    case BertHead::causal_lm:
      break;  // refused before
  }
}

}  // namespace

ModelTable make_bert_table(const BertConfig& config, const BertTableOptions& options) {
  FERRY_CHECK(options.attention != AttentionBackend::flash || options.compute != DType::f32,
              "flash attention has no fp32 form");
  FERRY_CHECK(options.head != BertHead::causal_lm, "BERT sees what follows a token");

  ModelTable model;
  model.family = "bert";
  model.hf_architecture = architecture_of(options.head);
  model.head = options.head;
  model.width = config.hidden_size;
  model.n_heads = config.num_attention_heads;
  model.norm_eps = config.layer_norm_eps;
  model.compute = options.compute;
  model.attention = options.attention;
  model.hidden_dropout = options.hidden_dropout.value_or(config.hidden_dropout_prob);
  model.attention_dropout = options.attention_dropout.value_or(config.attention_probs_dropout_prob);
  model.head_dropout =
      options.classifier_dropout.value_or(config.classifier_dropout.value_or(model.hidden_dropout));
  model.init_std = config.initializer_range;
  model.max_positions = config.max_position_embeddings;
  model.vocab_size = config.vocab_size;
  model.n_token_types = config.type_vocab_size;
  model.n_labels = n_labels_of(options);

  ModelBuilder builder(model, "bert.", options.gpu_multiprocessors);
  add_embeddings(builder, config, model);
  for (int64_t i = 0; i < config.num_hidden_layers; i++)
    add_layer(builder, i, config, model);
  add_head(builder, model);
  model.hf_ignored = ignored_names(options.head);
  return model;
}

}  // namespace ferry
