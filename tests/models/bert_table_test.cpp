#include "models/bert/bert_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "models/bert/bert_config.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

using nlohmann::json;

json small() {
  return {{"model_type", "bert"},         {"vocab_size", 100},        {"hidden_size", 24},
          {"num_hidden_layers", 2},       {"num_attention_heads", 3}, {"intermediate_size", 40},
          {"max_position_embeddings", 16}};
}

/** The message of the Error that reading throws. */
std::string refusal(const json& config, const std::string& file = "config.json") {
  try {
    make_table(JsonReader::of(config, {file, "model.config", ""}), {});
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    return error.what();
  }
  return "";
}

ModelTable table_of(HeadKind head, DType type = DType::f32) {
  TableOptions options;
  options.head = head;
  options.n_labels = 5;
  options.compute = type;
  return make_bert_table(parse_bert_config(small()), options);
}

TEST(BertConfig, DefaultsAreThoseOfHuggingFace) {
  const BertConfig c = parse_bert_config(small());
  EXPECT_EQ(c.type_vocab_size, 2);
  EXPECT_EQ(c.padding_row, 0);
  EXPECT_FLOAT_EQ(c.layer_norm_eps, 1e-12f);
  EXPECT_FLOAT_EQ(c.hidden_dropout_prob, 0.1f);
  EXPECT_FLOAT_EQ(c.attention_probs_dropout_prob, 0.1f);
  EXPECT_FALSE(c.classifier_dropout.has_value());
}

TEST(BertConfig, RefusalsNameTheKey) {
  const std::vector<std::pair<const char*, json>> bad = {
      {"vocab_size", "many"},
      {"vocab_size", 0},
      {"hidden_size", -3},
      {"hidden_size", 1e30},
      {"hidden_size", 10.5},
      {"num_hidden_layers", 1025},
      {"num_hidden_layers", 1000000},
      {"hidden_size", 1 << 20},
      {"vocab_size", 1 << 25},
      {"intermediate_size", 1 << 20},
      {"max_position_embeddings", 1 << 20},
      {"type_vocab_size", 1 << 20},
      {"num_attention_heads", 2048},
      {"num_attention_heads", 5},
      {"hidden_dropout_prob", 1.0},
      {"hidden_dropout_prob", -0.1},
      {"layer_norm_eps", "small"},
      {"hidden_act", "relu"},
      {"hidden_act", "gelu_new"},
      {"position_embedding_type", "relative_key"},
      {"is_decoder", true},
      {"pad_token_id", 100},
      {"vocab_size", 18446744073709551615u}};
  for (const auto& [key, value] : bad) {
    json config = small();
    config[key] = value;
    EXPECT_NE(refusal(config).find(key), std::string::npos) << key << " = " << value;
  }
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "max_position_embeddings"}) {
    json config = small();
    config.erase(key);
    EXPECT_NE(refusal(config).find(key), std::string::npos) << key;
    config[key] = nullptr;
    EXPECT_NE(refusal(config).find(key), std::string::npos) << key << " = null";
  }
  EXPECT_NE(refusal(json::array()), "");
  json unset = small();
  unset["is_decoder"] = false;
  unset["hidden_act"] = "gelu";
  unset["classifier_dropout"] = nullptr;
  EXPECT_EQ(refusal(unset), "");
}

TEST(BertConfig, RefusalsNameTheFileAndStayShort) {
  const std::vector<std::pair<const char*, json>> bad = {
      {"hidden_size", -3},         {"hidden_act", std::string(10'000, 'x')},
      {"layer_norm_eps", "small"}, {"is_decoder", true},
      {"num_attention_heads", 5},  {"vocab_size", nullptr}};
  for (const auto& [key, value] : bad) {
    json config = small();
    config[key] = value;
    try {
      make_table(JsonReader::of(config, {"some/where/config.json", "model.config", ""}), {});
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(std::string("'some/where/config.json': ") + key), std::string::npos)
          << message;
      EXPECT_LT(message.size(), 300u);
    }
  }
  EXPECT_NE(refusal(json::array()).find("config.json"), std::string::npos);
}

TEST(BertTable, BlocksAndParameterCount) {
  const ModelTable model = table_of(HeadKind::classification);
  ASSERT_EQ(model.blocks.size(), 4u);
  EXPECT_EQ(model.blocks[0].name, "embeddings");
  EXPECT_EQ(model.blocks[2].name, "layer.1");
  EXPECT_EQ(model.blocks[3].name, "head");
  const int64_t W = 24, F = 40;
  const int64_t layer = 3 * W * W + 3 * W + W * W + W + 2 * W + F * W + F + W * F + W + 2 * W;
  EXPECT_EQ(model.blocks[1].n_params(), layer);
  EXPECT_EQ(model.n_params(), (100 + 16 + 2) * W + 2 * W + 2 * layer + W * W + W + 5 * W + 5);
}

TEST(BertTable, EveryParameterIsNamedWholeAndOnce) {
  for (const HeadKind head : {HeadKind::classification, HeadKind::masked_lm,
                              HeadKind::token_classification, HeadKind::question_answering}) {
    const ModelTable model = table_of(head);
    std::set<std::string> names;
    std::map<std::pair<int, int>, int64_t> rows;
    for (const HfEntry& entry : model.hf_names) {
      EXPECT_TRUE(names.insert(entry.hf_name).second) << entry.hf_name;
      for (const std::string& other : entry.also_named)
        EXPECT_TRUE(names.insert(other).second) << other;
      EXPECT_EQ(entry.hf_shape.at(0), entry.rows);
      const int64_t before = rows[{entry.block, entry.param}];
      EXPECT_EQ(entry.row_begin, before) << entry.hf_name;
      rows[{entry.block, entry.param}] += entry.rows;
    }
    for (size_t b = 0; b < model.blocks.size(); b++) {
      for (size_t i = 0; i < model.blocks[b].params.size(); i++) {
        const ParamSpec& spec = model.blocks[b].params[i];
        EXPECT_EQ((rows[{static_cast<int>(b), static_cast<int>(i)}]), spec.shape[0]) << spec.name;
        EXPECT_EQ(spec.offset % 256, 0) << spec.name;
        EXPECT_EQ(spec.decay, spec.shape.size() == 2) << spec.name;
      }
    }
    for (const std::string& ignored : model.hf_ignored)
      EXPECT_FALSE(names.contains(ignored)) << ignored;
  }
}

TEST(BertTable, NamesOfOldAndBareCheckpoints) {
  const ModelTable model = table_of(HeadKind::classification);
  const auto find = [&](const std::string& name) {
    return *std::find_if(model.hf_names.begin(), model.hf_names.end(),
                         [&](const HfEntry& entry) { return entry.hf_name == name; });
  };
  const HfEntry norm = find("bert.encoder.layer.1.output.LayerNorm.weight");
  EXPECT_EQ(norm.also_named,
            (std::vector<std::string>{"encoder.layer.1.output.LayerNorm.weight",
                                      "bert.encoder.layer.1.output.LayerNorm.gamma",
                                      "encoder.layer.1.output.LayerNorm.gamma"}));
  EXPECT_FALSE(norm.optional);
  EXPECT_TRUE(find("classifier.weight").optional);
  EXPECT_TRUE(find("bert.pooler.dense.bias").optional);
  EXPECT_EQ(find("bert.encoder.layer.0.attention.self.key.weight").row_begin, 24);
  const ModelTable lm = table_of(HeadKind::masked_lm);
  EXPECT_EQ(lm.hf_names.back().hf_name, "cls.predictions.bias");
  EXPECT_EQ(lm.hf_names.back().also_named,
            std::vector<std::string>{"cls.predictions.decoder.bias"});
  ASSERT_EQ(lm.blocks.back().borrowed.size(), 1u);
  EXPECT_EQ(lm.blocks[lm.blocks.back().borrowed[0].block].params[0].name, "word.weight");
}

TEST(BertTable, HeadsForTokensHaveNoPooler) {
  const int64_t W = 24;
  const int64_t body = table_of(HeadKind::classification).n_params() - (W * W + W + 5 * W + 5);
  const ModelTable tokens = table_of(HeadKind::token_classification);
  EXPECT_EQ(tokens.hf_architecture, "BertForTokenClassification");
  EXPECT_EQ(tokens.n_params(), body + 5 * W + 5);
  EXPECT_EQ(tokens.hf_names.back().hf_name, "classifier.bias");
  const ModelTable answers = table_of(HeadKind::question_answering);
  EXPECT_EQ(answers.hf_architecture, "BertForQuestionAnswering");
  EXPECT_EQ(answers.n_labels, 2) << "start and end, whatever number of labels is asked for";
  EXPECT_EQ(answers.n_params(), body + 2 * W + 2);
  EXPECT_EQ(answers.hf_names.back().hf_name, "qa_outputs.bias");
  const auto ignores = [](const ModelTable& model, const char* name) {
    return std::find(model.hf_ignored.begin(), model.hf_ignored.end(), name) !=
           model.hf_ignored.end();
  };
  EXPECT_TRUE(ignores(tokens, "bert.pooler.dense.weight"));
  EXPECT_TRUE(ignores(tokens, "qa_outputs.weight"));
  EXPECT_TRUE(ignores(answers, "pooler.dense.bias"));
  EXPECT_TRUE(ignores(answers, "classifier.bias"));
  EXPECT_TRUE(ignores(answers, "cls.predictions.bias"));
}

TEST(BertTable, DropoutsComeFromConfigUnlessGiven) {
  json config = small();
  config["hidden_dropout_prob"] = 0.2;
  TableOptions options;
  EXPECT_FLOAT_EQ(make_bert_table(parse_bert_config(config), options).head_dropout, 0.2f);
  config["classifier_dropout"] = 0.3;
  EXPECT_FLOAT_EQ(make_bert_table(parse_bert_config(config), options).head_dropout, 0.3f);
  options.classifier_dropout = options.hidden_dropout = options.attention_dropout = 0.0f;
  const ModelTable model = make_bert_table(parse_bert_config(config), options);
  EXPECT_EQ(model.head_dropout + model.hidden_dropout + model.attention_dropout, 0.0f);
}

TEST(BertTable, HalfTheBytesIn16Bits) {
  const BatchShape shape = {.tokens = 512, .n_seqs_max = 8, .max_length = 128};
  const int64_t wide = laid_out_bytes(table_of(HeadKind::classification).blocks[1].saved(shape));
  const int64_t narrow =
      laid_out_bytes(table_of(HeadKind::classification, DType::bf16).blocks[1].saved(shape));
  const int64_t moments = 4 * 512 * 4;
  EXPECT_EQ(wide - moments, 2 * (narrow - moments));
}

TEST(ScratchSizes, FlashSplitsItsSumsWhereSequencesAreFew) {
  const BatchShape one = {.tokens = 512, .n_seqs_max = 1, .max_length = 512};
  const BatchShape many = {.tokens = 512, .n_seqs_max = 32, .max_length = 512};
  const auto bytes = [](const BatchShape& shape, int multiprocessors) {
    return ops::attention_scratch(AttentionBackend::flash, DType::bf16, shape, {16, 16, 64},
                                  multiprocessors)
        .library_bytes;
  };
  const int64_t dq = (512 + 128) * 1024 * 4;
  EXPECT_EQ(bytes(one, 132) - bytes(one, 16), 8 * dq);
  EXPECT_GE(bytes(many, 132), bytes(one, 132));
}

TEST(ScratchSizes, FlashTakesTheWorstOfAllSequenceCounts) {
  const int64_t T = 4096, heads = 2, width = 64, rounded_width = 32;
  for (int64_t n_seqs : {8, 40, 131, 132, 500}) {
    int64_t worst = 0;  // over every count that this shape may have
    for (int64_t n = 8; n <= n_seqs; n++) {
      const int64_t rows = T + 128 * n, splits = (132 + n * heads - 1) / (n * heads);
      worst = std::max(
          worst, ops::stacked_bytes(heads * rows * 4, splits * rows * heads * rounded_width * 4));
    }
    const BatchShape shape = {.tokens = T, .n_seqs_max = n_seqs, .max_length = 512};
    const int64_t bytes = ops::attention_scratch(AttentionBackend::flash, DType::bf16, shape,
                                                 {heads, heads, width / heads}, 132)
                              .library_bytes;
    EXPECT_EQ(bytes, 3 * ops::stacked_bytes(T * width * 2) + worst) << n_seqs;
  }
}

TEST(ScratchSizes, FlashIsCountedAtOnceForMillionsOfSequences) {
  const BatchShape shape = {.tokens = int64_t{1} << 30, .n_seqs_max = 1 << 30, .max_length = 3};
  // A count of one sequence after the other would take hours.
  for (int layer = 0; layer < 100; layer++)
    EXPECT_GT(ops::attention_scratch(AttentionBackend::flash, DType::bf16, shape, {8, 8, 64}, 192)
                  .library_bytes,
              0);
}

}  // namespace
}  // namespace ferry
