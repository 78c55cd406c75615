#include "src/files/hf/peft_config.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using ::testing::HasSubstr;

PeftConfig read(const test::TempDir& directory, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json json = {{"peft_type", "LORA"}, {"r", 8}, {"lora_alpha", 16}};
  json.update(fields);
  const auto file = directory.path() / kPeftConfigName;
  std::ofstream(file) << json.dump();
  return read_peft_config(file);
}

/** PEFT's get_pattern_key() takes the first key that fits the end of the name. */
TEST(PeftConfig, TheFirstPatternThatFitsCounts) {
  const test::TempDir directory;
  const std::string q = "model.layers.0.self_attn.q_proj",
                    other = "model.layers.1.self_attn.q_proj";
  PeftConfig config =
      read(directory, {{"alpha_pattern", {{"q_proj", 4}, {R"(layers\.0\.self_attn\.q_proj)", 8}}}});
  EXPECT_EQ(config.factor(q, 8), 0.5);
  EXPECT_EQ(config.factor(other, 8), 0.5);
  EXPECT_EQ(config.factor("model.layers.0.self_attn.k_proj", 8), 2);
  config = read(directory, {{"alpha_pattern", {{"layers.0.self_attn.q_proj", 8}, {"q_proj", 4}}}});
  EXPECT_EQ(config.factor(q, 8), 1);
  EXPECT_EQ(config.factor(other, 8), 0.5);
  EXPECT_THAT(error_of([&] {
                read(directory, {{"alpha_pattern", {{"layers.[01].*q_proj", 8}}}});
              }),
              HasSubstr("layers.[01].*q_proj"));
}

TEST(PeftConfig, TellsOfLengthsOfRows) {
  const test::TempDir directory;
  EXPECT_FALSE(read(directory, {{"r", 4}}).dora);
  const PeftConfig config = read(directory, {{"use_dora", true}});
  EXPECT_TRUE(config.dora);
  EXPECT_EQ(to_json(config)["use_dora"], true);
}

TEST(PeftConfig, RefusesStartsThatChangeTheModel) {
  const test::TempDir directory;
  for (const char* start : {"pissa", "pissa_niter_16", "olora", "loftq", "corda", "lora_ga"})
    EXPECT_THAT(error_of([&] {
                  read(directory, {{"init_lora_weights", start}});
                }),
                HasSubstr(start));
  for (const nlohmann::ordered_json& start :
       {nlohmann::ordered_json(true), nlohmann::ordered_json(false),
        nlohmann::ordered_json("gaussian"), nlohmann::ordered_json("orthogonal")})
    EXPECT_EQ(read(directory, {{"init_lora_weights", start}}).rank, 8) << start;
}

TEST(PeftConfig, VirtualTokensAreWrittenAsTheyAreRead) {
  const test::TempDir directory;
  const PeftConfig config = {.type = PeftType::prompt_tuning,
                             .base_model = "base",
                             .task_type = "CAUSAL_LM",
                             .prompt = {.n_tokens = 20,
                                        .token_width = 576,
                                        .n_layers = 30,
                                        .n_heads = 9,
                                        .init = "TEXT",
                                        .init_text = "Is it kind?",
                                        .tokenizer = "base"}};
  const nlohmann::ordered_json json = to_json(config);
  EXPECT_EQ(json["peft_type"], "PROMPT_TUNING");
  EXPECT_EQ(json["num_virtual_tokens"], 20);
  EXPECT_EQ(json["token_dim"], 576);
  EXPECT_EQ(json["prompt_tuning_init_text"], "Is it kind?");
  EXPECT_FALSE(json.contains("r"));
  const PeftConfig again = read(directory, json);
  EXPECT_EQ(again.type, PeftType::prompt_tuning);
  EXPECT_EQ(again.prompt.n_tokens, 20);
  EXPECT_EQ(again.base(), "base");
  EXPECT_THAT(error_of([&] {
                read(directory, {{"peft_type", "PROMPT_TUNING"}});
              }),
              HasSubstr("num_virtual_tokens"));
  EXPECT_THAT(error_of([&] {
                read(directory, {{"peft_type", "PROMPT_TUNING"},
                                 {"num_virtual_tokens", 4},
                                 {"num_transformer_submodules", 2}});
              }),
              HasSubstr("num_transformer_submodules"));
}

}  // namespace
}  // namespace ferry
