#include "models/bert/bert_table.h"

#include <fmt/format.h>

#include "models/ops/scratch_sizes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

using ops::stacked_bytes;

/** The numbers that the sizes of activations and scratch are made of. */
struct Sizes {
  int64_t W = 0;  ///< width
  int64_t F = 0;  ///< intermediate size
  int64_t V = 0;  ///< vocabulary
  int64_t L = 0;  ///< labels
  int64_t H = 0;  ///< heads
  DType type = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  int gpu_multiprocessors = 0;

  bool cuda() const { return attention != AttentionBackend::cpu_math; }
  int64_t bytes(int64_t n_elements) const {
    return round_up(n_elements * static_cast<int64_t>(size_of(type)), kTensorAlignment_bytes);
  }
};

/** Adds blocks and their Hugging Face names side by side. */
class TableBuilder {
 public:
  explicit TableBuilder(ModelTable& model) : model_(model) {}

  void begin(std::string name, BlockKind kind) {
    BlockTable block;
    block.name = std::move(name);
    block.kind = kind;
    model_.blocks.push_back(std::move(block));
  }
  BlockTable& block() { return model_.blocks.back(); }

  /** A matrix or an embedding: decays, starts normal. */
  void weight(
      std::string name, int64_t rows, int64_t columns, std::string hf, bool optional = false) {
    named(block().add(std::move(name), {rows, columns}, true, Init::normal), 0, rows,
          {rows, columns}, std::move(hf), optional);
  }
  /** Neither decays nor starts random (Hugging Face's rule: biases and norms). */
  void bias(std::string name, int64_t n, std::string hf, bool optional = false) {
    named(block().add(std::move(name), {n}, false, Init::zeros), 0, n, {n}, std::move(hf),
          optional);
  }
  /** A LayerNorm: `name`.weight and .bias; very old checkpoints say gamma and beta. */
  void norm(const std::string& name, int64_t n, const std::string& hf, bool optional = false) {
    named(block().add(name + ".weight", {n}, false, Init::ones), 0, n, {n}, hf + ".weight",
          optional, hf + ".gamma");
    named(block().add(name + ".bias", {n}, false, Init::zeros), 0, n, {n}, hf + ".bias", optional,
          hf + ".beta");
  }
  /** Query, key and value as one matrix and one bias. */
  void fused_qkv(const std::string& name, int64_t W, const std::string& hf) {
    const int weight = block().add(name + ".weight", {3 * W, W}, true, Init::normal);
    const int bias = block().add(name + ".bias", {3 * W}, false, Init::zeros);
    int64_t row = 0;
    for (const char* part : {"query", "key", "value"}) {
      named(weight, row, W, {W, W}, fmt::format("{}.{}.weight", hf, part), false);
      named(bias, row, W, {W}, fmt::format("{}.{}.bias", hf, part), false);
      row += W;
    }
  }
  void also_named(std::string hf) { model_.hf_names.back().also_named.push_back(std::move(hf)); }

 private:
  /** A file holds the model with its head, so names start with "bert.", or the bare BertModel. */
  void named(int param,
             int64_t row_begin,
             int64_t rows,
             std::vector<int64_t> shape,
             std::string hf,
             bool optional,
             const std::string& old_name = {}) {
    constexpr std::string_view kPrefix = "bert.";
    HfEntry entry;
    entry.block = static_cast<int>(model_.blocks.size()) - 1;
    entry.param = param;
    entry.row_begin = row_begin;
    entry.rows = rows;
    entry.hf_shape = std::move(shape);
    entry.optional = optional;
    for (const std::string& name : {hf, old_name}) {
      if (name.empty()) continue;
      if (name != hf) entry.also_named.push_back(name);
      if (name.starts_with(kPrefix)) entry.also_named.push_back(name.substr(kPrefix.size()));
    }
    entry.hf_name = std::move(hf);
    model_.hf_names.push_back(std::move(entry));
  }

  ModelTable& model_;
};

void add_embeddings(TableBuilder& builder, const BertConfig& config, const Sizes& sizes) {
  const int64_t W = sizes.W;
  builder.begin("embeddings", BlockKind::embeddings);
  const std::string hf = "bert.embeddings.";
  builder.weight("word.weight", config.vocab_size, W, hf + "word_embeddings.weight");
  builder.weight("position.weight", config.max_position_embeddings, W,
                 hf + "position_embeddings.weight");
  builder.weight("token_type.weight", config.type_vocab_size, W,
                 hf + "token_type_embeddings.weight");
  builder.norm("norm", W, hf + "LayerNorm");
  builder.block().saved = [](const BatchShape& shape) -> std::vector<SavedSpec> {
    return {{"norm.mean", {shape.tokens}, DType::f32}, {"norm.rstd", {shape.tokens}, DType::f32}};
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens, W = sizes.W;
    const int64_t norm = stacked_bytes(ops::norm_backward_scratch_bytes(T, W, sizes.cuda()));
    const int64_t table = stacked_bytes(ops::embedding_backward_scratch_bytes(T, W, sizes.cuda()));
    return {.forward_bytes = 0, .backward_bytes = std::max(sizes.bytes(T * W) + norm, table)};
  };
  const int64_t n_words = config.vocab_size + config.max_position_embeddings;
  builder.block().work = [sizes, n_words](const BatchShape& shape, bool backward) -> BlockWork {
    const int64_t row = sizes.bytes(shape.tokens * sizes.W);
    // Three lookups and a norm; backward three sums into tables that are cleared first.
    return backward ? BlockWork{.memory_bytes = 12 * row + sizes.bytes(n_words * sizes.W),
                                .compared_pairs = 3 * shape.tokens * shape.tokens,
                                .n_kernels = 16}
                    : BlockWork{.memory_bytes = 6 * row, .n_kernels = 2};
  };
}

void add_layer(TableBuilder& builder, int64_t index, const Sizes& sizes) {
  const int64_t W = sizes.W, F = sizes.F;
  builder.begin(fmt::format("layer.{}", index), BlockKind::layer);
  const std::string hf = fmt::format("bert.encoder.layer.{}.", index);
  builder.fused_qkv("attention.qkv", W, hf + "attention.self");
  builder.weight("attention.dense.weight", W, W, hf + "attention.output.dense.weight");
  builder.bias("attention.dense.bias", W, hf + "attention.output.dense.bias");
  builder.norm("attention.norm", W, hf + "attention.output.LayerNorm");
  builder.weight("up.weight", F, W, hf + "intermediate.dense.weight");
  builder.bias("up.bias", F, hf + "intermediate.dense.bias");
  builder.weight("down.weight", W, F, hf + "output.dense.weight");
  builder.bias("down.bias", W, hf + "output.dense.bias");
  builder.norm("norm", W, hf + "output.LayerNorm");
  builder.block().saved = [sizes](const BatchShape& shape) {
    const int64_t T = shape.tokens, W = sizes.W;
    std::vector<SavedSpec> saved = {{"attention.qkv", {T, 3 * W}, sizes.type},
                                    {"attention.context", {T, W}, sizes.type},
                                    {"attention.sum", {T, W}, sizes.type},
                                    {"attention.norm.mean", {T}, DType::f32},
                                    {"attention.norm.rstd", {T}, DType::f32},
                                    {"up", {T, sizes.F}, sizes.type, /*recomputed=*/true},
                                    {"sum", {T, W}, sizes.type},
                                    {"norm.mean", {T}, DType::f32},
                                    {"norm.rstd", {T}, DType::f32}};
    for (SavedSpec& spec : ops::attention_saved(sizes.attention, sizes.type, shape, sizes.H))
      saved.push_back(std::move(spec));
    return saved;
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens, W = sizes.W, F = sizes.F;
    const ScratchNeed attention =
        ops::attention_scratch(sizes.attention, sizes.type, shape, {sizes.H, sizes.H, W / sizes.H},
                               sizes.gpu_multiprocessors);
    const int64_t narrow = sizes.bytes(T * W), wide = sizes.bytes(T * F);
    const int64_t norm = stacked_bytes(ops::norm_backward_scratch_bytes(T, W, sizes.cuda()));
    const int64_t gelu = stacked_bytes(ops::column_sum_scratch_bytes(T, F));
    const int64_t qkv_bias = stacked_bytes(ops::column_sum_scratch_bytes(T, 3 * W));
    return {.forward_bytes = std::max(attention.forward_bytes, narrow + wide),
            .backward_bytes = narrow + std::max({norm, 2 * wide + gelu,
                                                 narrow + sizes.bytes(T * 3 * W) +
                                                     std::max(attention.backward_bytes, qkv_bias)}),
            .library_bytes = attention.library_bytes};
  };
  builder.block().work = [sizes](const BatchShape& shape, bool backward) {
    const int64_t T = shape.tokens, W = sizes.W, F = sizes.F;
    BlockWork work = {
        .attention_tokens = T, .attention_length = shape.max_length, .attention_width = W};
    work.add_linear(backward, T, W, 3 * W);
    work.add_linear(backward, T, W, W);
    work.add_linear(backward, T, W, F);
    work.add_linear(backward, T, F, W);
    // Forward: two norms with dropout and residual (read two rows, write two), gelu (read one,
    // write two). Backward: the norms' (four each), the first norm again (two), two residual sums
    // (two), the gradients of attention put together (six), gelu's (four).
    const int64_t narrow = sizes.bytes(T * W), wide = sizes.bytes(T * F);
    work.memory_bytes = backward ? 18 * narrow + 4 * wide : 8 * narrow + 3 * wide;
    work.n_kernels = backward ? 26 : 11;
    work.n_operations = 4;  // attention and copies of what it returns; or a slice cleared
    return work;
  };
  builder.block().recompute_work = [sizes](const BatchShape& shape) {
    const int64_t T = shape.tokens, W = sizes.W, F = sizes.F;
    BlockWork work;
    work.add_linear(false, T, W, F);
    work.memory_bytes = 2 * sizes.bytes(T * W) + 3 * sizes.bytes(T * F);
    work.n_kernels = 3;
    return work;
  };
}

void add_classifier(TableBuilder& builder, const Sizes& sizes) {
  const int64_t W = sizes.W, L = sizes.L;
  builder.begin("head", BlockKind::head);
  builder.weight("pooler.weight", W, W, "bert.pooler.dense.weight", true);
  builder.bias("pooler.bias", W, "bert.pooler.dense.bias", true);
  builder.weight("classifier.weight", L, W, "classifier.weight", true);
  builder.bias("classifier.bias", L, "classifier.bias", true);
  builder.block().saved = [sizes](const BatchShape& shape) -> std::vector<SavedSpec> {
    return {{"pooled", {shape.n_seqs_max, sizes.W}, sizes.type},
            {"logits", {shape.n_seqs_max, sizes.L}, DType::f32}};
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t n = shape.n_seqs_max;
    const int64_t rows = sizes.bytes(n * sizes.W);
    const int64_t logits = stacked_bytes(n * sizes.L * ops::kF32_bytes);
    const int64_t rounded = sizes.type == DType::f32 ? 0 : sizes.bytes(n * sizes.L);
    const int64_t bias =
        stacked_bytes(ops::column_sum_scratch_bytes(n, std::max(sizes.W, sizes.L)));
    const ScratchNeed loss = ops::cross_entropy_scratch(n, sizes.L);
    return {.forward_bytes = 2 * rows + std::max(rounded, loss.forward_bytes),
            .backward_bytes = 3 * rows + logits + rounded + std::max(loss.backward_bytes, bias),
            .library_bytes = loss.library_bytes};
  };
  builder.block().work = [sizes](const BatchShape& shape, bool backward) {
    BlockWork work = {.n_kernels = backward ? 21 : 11, .n_operations = backward ? 17 : 9};
    work.add_linear(backward, shape.n_seqs_max, sizes.W, sizes.W);
    work.add_linear(backward, shape.n_seqs_max, sizes.W, sizes.L);
    // The gradient of the layers' output is zero except for each sequence's first token.
    work.memory_bytes = backward ? sizes.bytes(shape.tokens * sizes.W) : 0;
    return work;
  };
}

void add_token_classifier(TableBuilder& builder, const Sizes& sizes) {
  builder.begin("head", BlockKind::head);
  builder.weight("classifier.weight", sizes.L, sizes.W, "classifier.weight", true);
  builder.bias("classifier.bias", sizes.L, "classifier.bias", true);
  builder.block().saved = [sizes](const BatchShape& shape) -> std::vector<SavedSpec> {
    return {{"logits", {shape.tokens, sizes.L}, DType::f32}};
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens, W = sizes.W, L = sizes.L;
    const int64_t logits = stacked_bytes(T * L * ops::kF32_bytes);
    const int64_t rounded = sizes.type == DType::f32 ? 0 : sizes.bytes(T * L);
    const int64_t bias = stacked_bytes(ops::column_sum_scratch_bytes(T, L));
    const int64_t dropped = sizes.bytes(T * W);
    const ScratchNeed loss = ops::cross_entropy_scratch(T, L);
    return {.forward_bytes = std::max(dropped + rounded, loss.forward_bytes),
            .backward_bytes = logits + rounded + std::max({loss.backward_bytes, dropped, bias}),
            .library_bytes = loss.library_bytes};
  };
  builder.block().work = [sizes](const BatchShape& shape, bool backward) {
    BlockWork work = {.memory_bytes = 4 * sizes.bytes(shape.tokens * sizes.W),
                      .n_kernels = backward ? 16 : 10,
                      .n_operations = backward ? 14 : 9};
    work.add_linear(backward, shape.tokens, sizes.W, sizes.L);
    return work;
  };
}

void add_question_answering(TableBuilder& builder, const Sizes& sizes) {
  const int64_t L = sizes.L;  // start and end
  builder.begin("head", BlockKind::head);
  builder.weight("qa_outputs.weight", L, sizes.W, "qa_outputs.weight", true);
  builder.bias("qa_outputs.bias", L, "qa_outputs.bias", true);
  builder.block().saved = [L](const BatchShape& shape) -> std::vector<SavedSpec> {
    return {{"logits", {L, shape.tokens}, DType::f32}, {"lse", {shape.n_seqs_max, L}, DType::f32}};
  };
  builder.block().scratch = [sizes, L](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens, n = shape.n_seqs_max;
    const int64_t wide = stacked_bytes(T * L * ops::kF32_bytes);
    const int64_t rounded = sizes.type == DType::f32 ? 0 : sizes.bytes(T * L);
    return {
        .forward_bytes = std::max(wide + rounded, ops::span_loss_scratch_bytes(n, sizes.cuda())),
        .backward_bytes = sizes.bytes(T * L) + wide,
        // The sum of the losses, and what ATen adds it up in.
        .library_bytes =
            sizes.cuda() ? stacked_bytes(ops::kF32_bytes) + ops::span_loss_scratch_bytes(n, true)
                         : 0};
  };
  builder.block().work = [sizes, L](const BatchShape& shape, bool backward) {
    BlockWork work = {.memory_bytes = 2 * sizes.bytes(shape.tokens * sizes.W),
                      .n_kernels = backward ? 14 : 10,
                      .n_operations = backward ? 12 : 9};
    work.add_linear(backward, shape.tokens, sizes.W, L);
    return work;
  };
}

void add_masked_lm(TableBuilder& builder, const Sizes& sizes) {
  const int64_t W = sizes.W;
  builder.begin("head", BlockKind::head);
  builder.weight("dense.weight", W, W, "cls.predictions.transform.dense.weight", true);
  builder.bias("dense.bias", W, "cls.predictions.transform.dense.bias", true);
  builder.norm("norm", W, "cls.predictions.transform.LayerNorm", true);
  builder.bias("decoder.bias", sizes.V, "cls.predictions.bias", true);
  builder.also_named("cls.predictions.decoder.bias");
  builder.block().borrowed = {{0, bert::embeddings::word}};
  builder.block().saved = [sizes](const BatchShape& shape) -> std::vector<SavedSpec> {
    const int64_t T = shape.tokens;
    return {{"dense", {T, sizes.W}, sizes.type},
            {"gelu", {T, sizes.W}, sizes.type},
            {"norm.mean", {T}, DType::f32},
            {"norm.rstd", {T}, DType::f32},
            {"lse", {T}, DType::f32}};
  };
  builder.block().scratch = [sizes](const BatchShape& shape) -> ScratchNeed {
    const int64_t T = shape.tokens, W = sizes.W;
    const int64_t rows = sizes.bytes(T * W);
    const ScratchNeed vocabulary = ops::vocabulary_scratch(sizes.type, T, sizes.V, W, sizes.cuda());
    const int64_t norm = stacked_bytes(ops::norm_backward_scratch_bytes(T, W, sizes.cuda()));
    const int64_t gelu = stacked_bytes(ops::column_sum_scratch_bytes(T, W));
    const int64_t labels = stacked_bytes(T * static_cast<int64_t>(sizeof(int32_t)));
    return {.forward_bytes = rows + labels + vocabulary.forward_bytes,
            .backward_bytes =
                2 * rows + std::max({labels + vocabulary.backward_bytes, norm, gelu, rows}),
            .library_bytes = vocabulary.library_bytes};
  };
  builder.block().work = [sizes](const BatchShape& shape, bool backward) {
    // The head works on the tokens that have a label: 15 of 100, as masks are drawn.
    const int64_t rows = std::max<int64_t>(1, shape.tokens * 15 / 100);
    BlockWork work = {.n_kernels = backward ? 40 : 20, .n_operations = backward ? 36 : 18};
    work.add_linear(backward, rows, sizes.W, sizes.W);
    work.add_linear(backward, rows, sizes.W, sizes.V);
    work.memory_bytes = 8 * sizes.bytes(rows * sizes.W) + 4 * sizes.bytes(rows * sizes.V) +
                        sizes.bytes(shape.tokens * sizes.W);
    return work;
  };
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

void add_head(TableBuilder& builder, BertHead head, const Sizes& sizes) {
  switch (head) {
    case BertHead::classification:
      return add_classifier(builder, sizes);
    case BertHead::masked_lm:
      return add_masked_lm(builder, sizes);
    case BertHead::token_classification:
      return add_token_classifier(builder, sizes);
    case BertHead::question_answering:
      return add_question_answering(builder, sizes);
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

  const Sizes sizes = {.W = config.hidden_size,
                       .F = config.intermediate_size,
                       .V = config.vocab_size,
                       .L = model.n_labels,
                       .H = config.num_attention_heads,
                       .type = options.compute,
                       .attention = options.attention,
                       .gpu_multiprocessors = options.gpu_multiprocessors};
  TableBuilder builder(model);
  add_embeddings(builder, config, sizes);
  for (int64_t i = 0; i < config.num_hidden_layers; i++)
    add_layer(builder, i, sizes);
  add_head(builder, options.head, sizes);
  model.hf_ignored = ignored_names(options.head);
  return model;
}

}  // namespace ferry
