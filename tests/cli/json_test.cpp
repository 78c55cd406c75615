// What programs read (--json of every verb, errors too), and what `ferry plan` says of a model: its
// task, its blocks, drives that are not used.

#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

using nlohmann::json;

constexpr const char* kLlama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64,
        "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 16, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "hidden_act": "silu"})";
constexpr const char* kBert =
    R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 64,
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 64, "pad_token_id": 0})";

class ForPrograms : public FerryTest {
 protected:
  void SetUp() override {
    FerryTest::SetUp();
    directory_.write("llama/config.json", kLlama);
    directory_.write("bert/config.json", kBert);
    directory_.write("book.txt", "It was the best of times.\n");
    directory_.write("notes.md", "# A heading\n\nIt was the best of times.\n");
    directory_.write("pc.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
    directory_.write("pairs.jsonl",
                     "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n");
    directory_.write("labelled.tsv", "text\tlabel\na b\tx\nc d\ty\n");
  }
  /** The task of a model from scratch: no weights are needed. */
  std::string task_of(const std::string& model_and_more) const {
    return json_of("plan --device cpu --from-config " + model_and_more)["task"];
  }
};

TEST_F(ForPrograms, ADecoderWithoutLabelsIsALanguageModel) {
  EXPECT_EQ(task_of("llama"), "causal-lm");
  for (const std::string data : {"book.txt", "notes.md", "pc.jsonl"})
    EXPECT_EQ(task_of("llama --dataset " + data), "causal-lm") << data;
  EXPECT_EQ(task_of("llama --dataset labelled.tsv"), "classification");
  EXPECT_EQ(task_of("llama --task classification"), "classification");
  EXPECT_EQ(task_of("bert"), "classification");
  const Outcome said = run("plan --from-config llama --device cpu --dataset book.txt");
  EXPECT_CONTAINS(said.err,
                  "task = causal-lm: the model is a decoder, and 'book.txt' has no labels");
  EXPECT_CONTAINS(said.out, "llama for causal-lm");
}

TEST_F(ForPrograms, ADecoderWithPairsOfAnswersLearnsToPrefer) {
  EXPECT_EQ(task_of("llama --dataset pairs.jsonl"), "preference");
  EXPECT_EQ(task_of("llama --task reward --dataset pairs.jsonl"), "reward");
  const Outcome said = run("plan --from-config llama --device cpu --dataset pairs.jsonl");
  EXPECT_CONTAINS(said.err, "task = preference: the model is a decoder");
  EXPECT_CONTAINS(said.out, "llama for preference");
}

TEST_F(ForPrograms, AnEncoderWithoutLabelsIsToldOfTheTasksThatNeedNone) {
  for (const std::string data : {"book.txt", "pc.jsonl"})
    for (const char* task : {"mlm", "--task causal-lm"})
      expect_refused("plan --from-config bert --device cpu --dataset " + data, 4, task);
}

TEST_F(ForPrograms, APlanSaysWhatItsBlocksAre) {
  const Outcome small = run("plan --from-config llama --device cpu");
  EXPECT_CONTAINS(small.out, "5 blocks (embeddings, 3 layers, head)");
  const Outcome large = run("plan --model Llama-3.1-8B --machine 4090-24g --host-memory 128GiB");
  EXPECT_CONTAINS(large.out, "llama for causal-lm, 8.03 B parameters");
  EXPECT_CONTAINS(large.out, "32 layers");
  EXPECT_CONTAINS(large.out, "pieces");
}

TEST_F(ForPrograms, APresetsPlanNamesTheOneForItsCard) {
  const Outcome outcome = run("plan --preset gpt2-lm-2080ti-11g --device cpu");
  EXPECT_CONTAINS(outcome.err, "add --machine 2080ti-11g");
}

TEST_F(ForPrograms, ADriveThatIsNotUsedIsSaid) {
  const Outcome outcome = run("plan --from-config llama --device cpu --nvme-path .");
  if (outcome.err.find("O_DIRECT") != std::string::npos)
    GTEST_SKIP() << "no direct transfers in the temporary directory";
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_CONTAINS(outcome.out, "nvme_path is not used");
}

TEST_F(ForPrograms, FilesThatTheKernelMakesUpAreNoDrive) {
  EXPECT_NE(run("train --from-config llama --tokenizer llama --device cpu --dataset book.txt "
                "--nvme-path /proc --dry-run")
                .exit_code,
            0);
  expect_refused("plan --from-config llama --device cpu --nvme-path /proc", 2,
                 "the kernel makes its files up");
}

TEST_F(ForPrograms, ErrorsAreJsonWhereResultsAre) {
  for (const std::string line :
       {"plan --model nowhere", "train --model nowhere --dataset book.txt", "train --use_dora true",
        "export --model nowhere --output x", "runs check nowhere", "runs delete nowhere",
        "runs nothing", "nothing"}) {
    const Outcome outcome = run(line + " --json");
    const json error = json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(error.is_object() && error.contains("error")) << line << ": " << outcome.out;
    EXPECT_EQ(error["error"]["exit_code"], outcome.exit_code);
    EXPECT_FALSE(error["error"]["message"].get<std::string>().empty());
    EXPECT_TRUE(error["error"]["where"].is_string());
    EXPECT_FALSE(outcome.err.empty()) << "people are told, too";
    EXPECT_EQ(run(line).out, "") << line;
  }
  const Outcome text = run("predict --model nowhere -- --json");
  EXPECT_EQ(text.out, "") << "behind -- it is a text";
}

TEST_F(ForPrograms, ADryRunIsOneObject) {
  directory_.write("llama/tokenizer.json",
                   R"({"version": "1.0", "added_tokens": [], "normalizer": null,
                       "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
                       "decoder": null, "model": {"type": "WordLevel", "unk_token": "[UNK]",
                       "vocab": {"[UNK]": 0, "It": 1, "was": 2}}})");
  const std::string line =
      "train --from-config llama --tokenizer llama --device cpu --dataset book.txt --dry-run";
  EXPECT_EQ(json_of(line)["dataset"]["value"], "book.txt");
  directory_.write("book.txt", std::string("a\0b\n", 4));  // found when the data are read
  const Outcome outcome = run(line + " --json");
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  const json error = json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(error.is_object()) << outcome.out;
  EXPECT_EQ(error["error"]["exit_code"], 4);
}

TEST_F(ForPrograms, ADryRunLooksForTheEndToken) {
  const auto write_tokenizer = [&](int end_id, const std::string& settings) {
    directory_.write(
        "llama/tokenizer.json",
        R"({"version": "1.0", "added_tokens": [{"id": )" + std::to_string(end_id) +
            R"(, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}], "normalizer": null,
            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
            "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "It": 1}}})");
    directory_.write("llama/tokenizer_config.json", settings);
    return run(
        "train --from-config llama --tokenizer llama --device cpu --dataset book.txt --dry-run");
  };
  const std::string named = R"({"eos_token": "<end>"})";
  const Outcome right = write_tokenizer(2, named);
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_FALSE(config::contains(right.err, "end token")) << right.err;
  const Outcome none = write_tokenizer(2, "{}");
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_CONTAINS(none.err, "the tokenizer names no end token");
  const Outcome beyond = write_tokenizer(64, named);  // the model has rows for 64 tokens
  EXPECT_EQ(beyond.exit_code, 4) << beyond.err;
  EXPECT_CONTAINS(beyond.err, "<end>");
}

TEST_F(ForPrograms, APlanThatDoesNotFitIsOneAnswer) {
  const Outcome outcome =
      run("plan --model Llama-3.1-8B --machine 4090-24g --host-memory 16GiB --json");
  EXPECT_EQ(outcome.exit_code, 3);
  const json answer = json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << outcome.out;
  EXPECT_EQ(answer["fits"], false);
}

TEST_F(ForPrograms, HelpIsJson) {
  const json all = json_of("help");
  EXPECT_GE(all["verbs"].size(), 12u);
  EXPECT_EQ(all["exit_codes"]["3"], "does not fit");
  const json train = json_of("help train");
  EXPECT_EQ(train["verb"], "train");
  bool has_rate = false;
  for (const json& option : train["options"])
    has_rate =
        has_rate || (option["key"] == "learning_rate" && option["flag"] == "--learning-rate");
  EXPECT_TRUE(has_rate);
}

TEST_F(ForPrograms, ARecipeIsTakenAsAWord) {
  directory_.write("recipe.yaml", "base_model: Llama-3.1-8B\nadapter: oft\nlora_r: 8\n");
  expect_refused("plan recipe.yaml", 2, "recipe.yaml:2");
  directory_.write("full.yaml",
                   "base_model: Llama-3.1-8B\nadapter:\nsequence_len: 1024\nmicro_batch_size: 1\n"
                   "gradient_accumulation_steps: 8\noptimizer: paged_adamw_8bit\n");
  const json full = json_of("plan full.yaml --machine 4090-24g --host-memory 128GiB");
  EXPECT_EQ(full["task"], "causal-lm");
  EXPECT_EQ(full["train_batch_size"], 8);
}

}  // namespace
}  // namespace ferry::cli
