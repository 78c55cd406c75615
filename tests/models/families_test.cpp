// Families of models: each finds its own, takes a small config.json of its kind, and refuses what
// it does not compute by name. Figures are compared with transformers in tests/parity/families.py.

#include "models/family.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "models/core/compile.h"
#include "models/core/describe.h"
#include "models/ops/head_norm/head_norm_op.h"
#include "src/base/error.h"
#include "tests/models/small_configs.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** With the keys that the family cannot do without. */
ordered_json small(std::string_view type) {
  return test::small_config(type);
}

JsonReader reader(const ordered_json& config) {
  return JsonReader::of(config, {"config.json", "model.config", ""});
}

std::string refusal(const ordered_json& config, HeadKind head, Fault fault = Fault::data) {
  try {
    make_table(reader(config), {.head = head});
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    return error.what();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Families, EachMakesATableOfEachOfItsHeads) {
  std::set<std::string_view> types;
  for (const Family& family : families()) {
    EXPECT_TRUE(types.insert(family.model_type).second) << family.model_type;
    for (const HeadKind head : family.heads) {
      const ModelTable model = make_table(reader(small(family.model_type)), {.head = head});
      EXPECT_EQ(model.head, head);
      EXPECT_EQ(model.blocks.size(), 4) << family.model_type;
      EXPECT_EQ(model.width, 24);
      EXPECT_GT(model.head_width, 0);
      EXPECT_FALSE(model.hf_architecture.empty());
      EXPECT_TRUE(family.is_decoder || head != HeadKind::causal_lm) << family.model_type;
    }
  }
}

/** All rows of a parameter come from the file, each once. */
TEST(Families, NamesCoverEachParameterOnce) {
  for (const Family& family : families()) {
    const ModelTable model =
        make_table(reader(small(family.model_type)), {.head = family.heads.front()});
    std::map<std::pair<int, int>, int64_t> rows;
    std::set<std::string> names;
    for (const HfEntry& entry : model.hf_names) {
      EXPECT_TRUE(names.insert(entry.hf_name).second) << entry.hf_name;
      EXPECT_EQ((rows[{entry.block, entry.param}]), entry.row_begin) << entry.hf_name;
      rows[{entry.block, entry.param}] += entry.rows;
    }
    for (size_t b = 0; b < model.blocks.size(); ++b)
      for (size_t p = 0; p < model.blocks[b].params.size(); ++p)
        EXPECT_EQ((rows[{static_cast<int>(b), static_cast<int>(p)}]),
                  model.blocks[b].params[p].shape[0])
            << family.model_type << " " << model.blocks[b].params[p].name;
  }
}

TEST(Families, BuffersOfOldFilesAreToldFromBiases) {
  EXPECT_TRUE(is_old_buffer("gpt2", "transformer.h.3.attn.bias"));
  EXPECT_TRUE(is_old_buffer("gpt2", "h.3.attn.masked_bias"));
  EXPECT_TRUE(is_old_buffer("gpt_neox", "gpt_neox.layers.0.attention.bias"));
  EXPECT_TRUE(is_old_buffer("llama", "model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_TRUE(is_old_buffer("bert", "embeddings.position_ids"));
  EXPECT_FALSE(is_old_buffer("gpt2", "transformer.h.3.attn.c_attn.bias"));
  EXPECT_FALSE(is_old_buffer("gpt_neox", "gpt_neox.layers.0.attention.dense.bias"));
  EXPECT_FALSE(is_old_buffer("qwen2", "model.layers.0.self_attn.q_proj.bias"));
  EXPECT_FALSE(is_old_buffer("t5", "transformer.h.3.attn.bias"));
}

TEST(Families, AMatrixThatTheHeadSharesHasItsNameToo) {
  const auto tied_names = [](const ordered_json& config, HeadKind head) {
    return make_table(reader(config), {.head = head}).hf_names.front().tied_names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(tied_names(small("gpt2"), HeadKind::causal_lm), Names{"lm_head.weight"});
  EXPECT_EQ(tied_names(small("gpt2"), HeadKind::classification), Names());
  EXPECT_EQ(tied_names(small("llama"), HeadKind::causal_lm), Names());
  EXPECT_EQ(tied_names(small("bert"), HeadKind::masked_lm),
            Names{"cls.predictions.decoder.weight"});
  ordered_json neox = small("gpt_neox");
  neox["tie_word_embeddings"] = true;
  EXPECT_EQ(tied_names(neox, HeadKind::causal_lm), Names{"embed_out.weight"});
}

TEST(Families, AnUnknownKeyIsRefusedByNameUnlessItIsOff) {
  for (const Family& family : families()) {
    const HeadKind head = family.heads.front();
    ordered_json config = small(family.model_type);
    config["transformers_version"] = "5.0";  // such keys change nothing
    config["use_cache"] = true;
    config["attention_sinks"] = nullptr;
    config["token_mixer"] = "";
    config["sentence_transformers"] = {{"version", "4.1.0"}};
    config["sbert_ce_default_activation_function"] = "torch.nn.modules.linear.Identity";
    config["adapters"] = {{"adapters", ordered_json::object()}};
    EXPECT_EQ(refusal(config, head), "");
    config["attention_sinks"] = true;
    EXPECT_TRUE(has(refusal(config, head), "attention_sinks may change what the model computes"))
        << family.model_type;
    config = small(family.model_type);
    config["quantization_config"] = {{"quant_method", "bitsandbytes"}};
    EXPECT_TRUE(has(refusal(config, head), "quantization_config")) << family.model_type;
  }
}

TEST(Families, AnUnknownScalingOfPositionsIsRefused) {
  ordered_json config = small("llama");
  config["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 2.0}};
  EXPECT_TRUE(has(refusal(config, HeadKind::causal_lm), "rope_scaling.rope_type is \"spiral\""));
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}, {"twist", 3}};
  EXPECT_TRUE(has(refusal(config, HeadKind::causal_lm), "rope_scaling.twist"));
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(refusal(config, HeadKind::causal_lm), "");
}

/** The page that shows what a layer of each family does. FERRY_RENEW_GOLDEN=1 writes it anew. */
TEST(Families, ALayerDoesWhatItsPageSays) {
  for (const Family& family : families()) {
    const ModelTable model =
        make_table(reader(small(family.model_type)), {.head = family.heads.front()});
    const auto layer = std::ranges::find(model.blocks, BlockKind::layer, &BlockTable::kind);
    ASSERT_NE(layer, model.blocks.end());
    const std::string page =
        fmt::format(FERRY_SOURCE_ROOT "/tests/models/layers/{}.txt", family.model_type);
    if (std::getenv("FERRY_RENEW_GOLDEN")) std::ofstream(page) << describe(*layer);
    std::ifstream in(page);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    EXPECT_EQ(describe(*layer), text) << page;
  }
}

/** The rotary table of the first layer. */
RopeTable rope_of(const ordered_json& config) {
  const ModelTable model = make_table(reader(config), {.head = HeadKind::causal_lm});
  for (const BlockTable& block : model.blocks)
    for (const Op& op : block.compiled->program.ops) {
      if (op.def == &ops::kRotary) return op.with<ops::RotaryAttributes>().rope;
      if (op.def == &ops::kHeadNorm) return op.with<ops::HeadNormAttributes>().rope;
    }
  return {};
}

/** Classes that turn whole heads do not read the share. */
TEST(Families, APartOfEachHeadIsTurnedByItsClassesAlone) {
  for (const char* type :
       {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"}) {
    SCOPED_TRACE(type);
    ordered_json config = small(type);
    const auto whole = rope_of(config).frequencies;
    config["partial_rotary_factor"] = 0.5;
    EXPECT_EQ(rope_of(config).frequencies, whole);
    config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}};
    EXPECT_NE(refusal(config, HeadKind::causal_lm), "");
  }
  ordered_json phi = small("phi3");
  phi["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(rope_of(phi).frequencies.size(), 2u);
  ordered_json neox = small("gpt_neox");
  neox["partial_rotary_factor"] = 1.0;
  EXPECT_EQ(rope_of(neox).frequencies.size(), 2u);  // rotary_pct says 0.5
}

TEST(Families, OriginalPositionsAreOptional) {
  ordered_json config = small("llama"), said = config;
  config["rope_parameters"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  said["rope_parameters"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 20}};
  EXPECT_EQ(rope_of(config).frequencies, rope_of(said).frequencies);
  // Beside the scaling they count, whatever stands in it.
  said["original_max_position_embeddings"] = 7;
  config["original_max_position_embeddings"] = 7;
  EXPECT_EQ(rope_of(config).frequencies, rope_of(said).frequencies);
}

TEST(Families, LongTextsHaveFrequenciesOfTheirOwn) {
  ordered_json config = small("phi3");
  config["original_max_position_embeddings"] = 16;
  config["rope_scaling"] = {{"type", "su"},
                            {"short_factor", {1.0, 1.1, 1.2, 1.3}},
                            {"long_factor", {2.0, 3.0, 4.0, 5.0}}};
  const ModelTable model = make_table(reader(config), {.head = HeadKind::causal_lm});
  EXPECT_EQ(model.long_from, 16);
  const RopeTable rope = rope_of(config);
  ASSERT_EQ(rope.long_frequencies.size(), 4u);
  EXPECT_EQ(rope.frequencies[0], 1);
  EXPECT_EQ(rope.long_frequencies[0], 0.5f);
  EXPECT_EQ(make_table(reader(small("phi3")), {.head = HeadKind::causal_lm}).long_from, 0);
}

TEST(Families, WhatIsNotTrainedIsSaid) {
  EXPECT_TRUE(has(refusal({{"model_type", "t5"}}, HeadKind::causal_lm),
                  "model_type t5, which is not trained by this version"));
  EXPECT_TRUE(has(refusal(small("bert"), HeadKind::causal_lm, Fault::usage),
                  "a bert model has no head for causal-lm"));
  EXPECT_TRUE(has(refusal(small("llama"), HeadKind::masked_lm, Fault::usage),
                  "it is trained for: causal-lm, classification, token-classification, "
                  "question-answering"));
  EXPECT_TRUE(has(refusal(small("opt"), HeadKind::token_classification, Fault::usage),
                  "a opt model has no head for token-classification"));
}

/** The parameter of a block whose Hugging Face name ends so. */
const ParamSpec& param_of(const ModelTable& model, std::string_view end) {
  const auto found = std::ranges::find_if(
      model.hf_names, [&](const HfEntry& entry) { return entry.hf_name.ends_with(end); });
  if (found == model.hf_names.end()) throw std::out_of_range(std::string(end));
  return model.param_of(*found);
}

TEST(Families, TheRowOfPaddingStartsAsZeros) {
  const std::map<std::string_view, int64_t> absent = {
      {"bert", 0},       {"roberta", 1},     {"xlm-roberta", 1}, {"camembert", 1},
      {"distilbert", 0}, {"electra", 0},     {"opt", 1},         {"gemma", 0},
      {"gemma2", 0},     {"gemma3_text", 0}, {"phi3", 0}};  // as small() says
  const std::set<std::string_view> without = {"gpt2", "gpt_neox", "gptj"};
  const std::set<std::string_view> are_roberta = {"roberta", "xlm-roberta", "camembert"};
  for (const Family& family : families()) {
    const auto row = [&](const ordered_json& config) {
      const ModelTable model = make_table(reader(config), {.head = family.heads.front()});
      const ParamSpec& word = model.blocks[0].params[0];
      EXPECT_EQ(word.shape[0], 100) << family.model_type;
      if (are_roberta.contains(family.model_type)) {
        EXPECT_EQ(param_of(model, "position_embeddings.weight").normal.zero_row,
                  word.normal.zero_row);
      }
      return word.normal.zero_row;
    };
    ordered_json config = small(family.model_type);
    const auto found = absent.find(family.model_type);
    EXPECT_EQ(row(config), found == absent.end() ? -1 : found->second) << family.model_type;
    config["pad_token_id"] = 7;
    EXPECT_EQ(row(config), without.contains(family.model_type) ? -1 : 7) << family.model_type;
    if (without.contains(family.model_type) || are_roberta.contains(family.model_type)) continue;
    config["pad_token_id"] = nullptr;
    EXPECT_EQ(row(config), -1) << family.model_type;
    config["pad_token_id"] = -1;  // of older LLaMA
    EXPECT_EQ(row(config), 99) << family.model_type;
    config["pad_token_id"] = 100;
    EXPECT_TRUE(has(refusal(config, family.heads.front()), "pad_token_id is 100"));
  }
  ordered_json config = small("phi3");
  config.erase("pad_token_id");
  EXPECT_TRUE(has(refusal(config, HeadKind::causal_lm), "which is 32000 where it is absent"));
}

TEST(Families, TheEndsOfGpt2sBranchesStartSmaller) {
  const ModelTable model = make_table(reader(small("gpt2")), {.head = HeadKind::causal_lm});
  for (const char* end : {"attn.c_proj.weight", "mlp.c_proj.weight"})
    EXPECT_DOUBLE_EQ(param_of(model, end).normal.factor, 0.5) << end;  // of 2 layers
  EXPECT_DOUBLE_EQ(param_of(model, "mlp.c_fc.weight").normal.factor, 1);
  const ModelTable opt = make_table(reader(small("opt")), {.head = HeadKind::causal_lm});
  EXPECT_DOUBLE_EQ(param_of(opt, "fc2.weight").normal.factor, 1);
}

TEST(Families, BadShapesNameTheKey) {
  ordered_json config = small("llama");
  config["num_key_value_heads"] = 2;
  EXPECT_TRUE(has(refusal(config, HeadKind::causal_lm), "num_key_value_heads is 2"));
  config = small("mistral");
  config["sliding_window"] = 0;
  EXPECT_TRUE(has(refusal(config, HeadKind::causal_lm), "sliding_window"));
  config = small("qwen2");
  config["layer_types"] = {"full_attention"};
  EXPECT_TRUE(has(refusal(config, HeadKind::causal_lm), "layer_types"));
  config = small("gptj");
  config["rotary_dim"] = 5;
  EXPECT_TRUE(has(refusal(config, HeadKind::causal_lm), "rotary_dim"));
}

}  // namespace
}  // namespace ferry
