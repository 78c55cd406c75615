// Models from scratch by the whole program: no weights are read, what is drawn depends on seed and
// configuration alone, and a run goes on, is used and exported like any other.

#include <random>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using nlohmann::json;

class Scratch : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    for (const char* file : {"config.json", "vocab.txt", "tokenizer_config.json"}) {
      fs::create_directories(root_ / "bert");
      fs::copy_file(root_ / "model" / file, root_ / "bert" / file);
    }
    const auto n_words = json::parse(text_of(root_ / "bert/config.json")).at("vocab_size");
    write_config("gpt2", {{"model_type", "gpt2"},
                          {"vocab_size", n_words},
                          {"n_positions", 32},
                          {"n_embd", 32},
                          {"n_layer", 2},
                          {"n_head", 2}});
    write_words(root_ / "words");
    std::ofstream text(root_ / "text.txt");
    std::mt19937 random(3);
    for (int line = 0; line < 300; ++line)
      text << (random() % 2 ? "the red car was new\n" : "a green bird is near the house\n");
  }

  /** A tokenizer of the same words that puts none of its own before or behind a text. */
  static void write_words(const fs::path& directory) {
    json vocabulary = json::object();
    std::ifstream words(root_ / "bert/vocab.txt");
    for (std::string word; std::getline(words, word);)
      vocabulary[word] = vocabulary.size();
    const json tokenizer = {{"version", "1.0"},
                            {"added_tokens", json::array()},
                            {"pre_tokenizer", {{"type", "Whitespace"}}},
                            {"model",
                             {{"type", "WordPiece"},
                              {"unk_token", "[UNK]"},
                              {"continuing_subword_prefix", "##"},
                              {"max_input_chars_per_word", 100},
                              {"vocab", vocabulary}}}};
    fs::create_directories(directory);
    std::ofstream(directory / "tokenizer.json") << tokenizer.dump(2);
  }

  static void write_config(const std::string& directory, const json& config) {
    fs::create_directories(root_ / directory);
    std::ofstream(root_ / directory / "config.json") << config.dump(2);
  }

  static std::vector<std::string> from_scratch(const std::string& config,
                                               const std::string& run,
                                               const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"train",
                                      "--from-config=" + config,
                                      "--dataset=train.tsv",
                                      "--eval-dataset=dev.tsv",
                                      "--device=" + device(),
                                      "--micro-batch-size=4",
                                      "--train-batch-size=8",
                                      "--lr=3e-3",
                                      "--epochs=3",
                                      "--save-steps=7",
                                      "--intra-op-threads=1",
                                      "--output-dir=" + run};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /** A few steps of a language model on the CPU. */
  static std::vector<std::string> language_model(const std::string& task,
                                                 const std::string& config,
                                                 const std::string& tokenizer,
                                                 const std::string& run) {
    return {
        "train",           "--from-config=" + config, "--tokenizer=" + tokenizer, "--task=" + task,
        "--device=cpu",    "--dataset=text.txt",      "--max-steps=30",           "--lr=1e-2",
        "--max-length=16", "--output-dir=" + run};
  }
  static double last_loss(const std::string& run) {
    const std::string lines = text_of(root_ / run / "metrics.jsonl");
    const size_t at = lines.rfind("\"loss\":");
    return at == lines.npos ? -1 : std::stod(lines.substr(at + 7));
  }
};

/** Before its first checkpoint a killed run draws its weights again; where they live and who draws
 * them shows nowhere. */
TEST_F(Scratch, KilledAndMovedTheSameBits) {
  ASSERT_EQ(ferry(from_scratch("bert", "whole", {"--placement=host"})).code(), 0)
      << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "whole/train.log").find("all weights are drawn, by seed = 42"),
            std::string::npos);
  auto arguments =
      from_scratch("bert/config.json", "killed", {"--placement=resident", "--worker-threads=1"});
  for (int step : {3, 20}) {
    const pid_t child = start(arguments);
    wait_for_line("killed", step);
    ::kill(child, SIGKILL);
    wait_for(child);
    arguments = {"train", "--resume=killed", "--placement=host", "--worker-threads=3",
                 "--activations=recompute"};
  }
  ASSERT_EQ(ferry(arguments).code(), 0) << text_of(root_ / "err");
  expect_same_run("whole", "killed");
  ASSERT_EQ(ferry(from_scratch("bert", "other_seed", {"--seed=43"})).code(), 0);
  EXPECT_NE(text_of(root_ / "whole/final/model.safetensors"),
            text_of(root_ / "other_seed/final/model.safetensors"));
}

TEST_F(Scratch, TheConfigurationBelongsToTheRun) {
  json config = json::parse(text_of(root_ / "bert/config.json"));
  config["layer_norm_eps"] = 1e-5;
  write_config("other_eps", config);
  ASSERT_EQ(ferry(from_scratch("bert", "its", {"--max-steps=9"})).code(), 0);
  ASSERT_EQ(
      ferry(from_scratch("other_eps", "others", {"--tokenizer=bert", "--max-steps=9"})).code(), 0);
  const auto identity = [](const char* run) {
    return json::parse(text_of(root_ / run / "run.json")).at("identity");
  };
  EXPECT_NE(identity("its").at("config"), identity("others").at("config"));
  EXPECT_EQ(identity("its").at("n_params"), identity("others").at("n_params"));

  fs::remove_all(root_ / "its/checkpoint-9");
  fs::remove_all(root_ / "its/final");
  const Outcome other = ferry({"train", "--resume=its", "--seed=7"});
  EXPECT_EQ(other.code(), 2);
  EXPECT_NE(other.err.find("seed was 42"), std::string::npos) << other.err;
  // The checkpoint has the run's configuration.
  const Outcome same = ferry({"train", "--resume=its", "--from-config=gpt2"});
  EXPECT_EQ(same.code(), 0) << same.err;
  EXPECT_NE(same.err.find("--from-config is not read"), std::string::npos) << same.err;
}

TEST_F(Scratch, LanguageModelsLearnAndAreUsed) {
  for (const auto& [task, config, tokenizer, file_of_it] :
       {std::tuple{"causal-lm", "gpt2", "words", "tokenizer.json"},
        {"mlm", "bert", "bert", "vocab.txt"}}) {
    const std::string run = std::string("lm_") + config;
    ASSERT_EQ(ferry(language_model(task, config, tokenizer, run)).code(), 0)
        << text_of(root_ / "err");
    EXPECT_LT(last_loss(run), 2.0) << "of 20 words, drawn at random, it would be 3";
    ASSERT_EQ(ferry({"eval", "--model=" + run, "--dataset=text.txt", "--device=cpu"}).code(), 0)
        << text_of(root_ / "err");
    ASSERT_EQ(ferry({"export", "--model=" + run, "--output=" + run + "_exported"}).code(), 0);
    for (const char* file : {"config.json", "model.safetensors", file_of_it})
      EXPECT_TRUE(fs::exists(root_ / (run + "_exported") / file)) << file;
  }
  ASSERT_EQ(ferry({"generate", "--model=lm_gpt2", "the red", "--device=cpu", "--max-new-tokens=3"})
                .code(),
            0);
  EXPECT_NE(text_of(root_ / "out").find("car was new"), std::string::npos);
  // The ids are the tokenizer's: transformers' default for GPT-2 is 50256.
  const json written = json::parse(text_of(root_ / "lm_gpt2/final/config.json"));
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    ASSERT_TRUE(written.contains(key)) << key;
    EXPECT_TRUE(written[key].is_null() || written[key] < 20) << key << " " << written[key];
  }
}

TEST_F(Scratch, WeightsThatAreThereAreNotRead) {
  fs::copy(root_ / "bert", root_ / "with_weights");
  std::ofstream(root_ / "with_weights/model.safetensors") << "these are none";
  for (const char* config : {"bert", "with_weights"})
    ASSERT_EQ(ferry(from_scratch(config, std::string("of_") + config, {"--max-steps=2"})).code(), 0)
        << text_of(root_ / "err");
  EXPECT_EQ(text_of(root_ / "of_bert/final/model.safetensors"),
            text_of(root_ / "of_with_weights/final/model.safetensors"));
}

TEST_F(Scratch, IsPlannedByNameAlone) {
  ASSERT_EQ(ferry({"plan", "--from-config=gpt2-medium", "--task=causal-lm", "--gpu-memory=11GiB",
                   "--host-memory=64GiB", "--json"})
                .code(),
            0)
      << text_of(root_ / "err");
  EXPECT_EQ(json::parse(text_of(root_ / "out")).at("n_parameters"), 354823168);
  EXPECT_EQ(ferry(from_scratch("bert", "dry", {"--dry-run"})).code(), 0) << text_of(root_ / "err");
  EXPECT_FALSE(fs::exists(root_ / "dry"));
}

TEST_F(Scratch, BadInputIsNamed) {
  const auto config = [&](const char* key, const json& value) {
    json changed = json::parse(text_of(root_ / "bert/config.json"));
    changed[key] = value;
    return changed;
  };
  write_config("unknown", config("model_type", "mamba"));
  write_config("narrow", config("vocab_size", 11));
  write_config("odd", config("use_sideways_attention", true));
  write_config("padding", config("pad_token_id", 400));
  std::ofstream(root_ / "broken.json") << "{\"model_type\": \"bert\", ";
  struct Bad {
    std::string config;
    std::vector<std::string> more;
    int code;
    const char* says;
  };
  for (const Bad& bad :
       {Bad{"unknown", {"--tokenizer=bert"}, 4, "mamba"},
        {"narrow", {"--tokenizer=bert"}, 4, "has 20 tokens, the model only 11"},
        {"odd", {"--tokenizer=bert"}, 4, "use_sideways_attention"},
        {"padding", {"--tokenizer=bert"}, 4, "pad_token_id"},
        {"gpt2", {}, 4, "tokenizer"},
        {"gpt2-xl", {}, 4, "--tokenizer takes a directory"},
        {"nowhere/config.json", {"--tokenizer=bert"}, 4, "no config.json at 'nowhere/config.json'"},
        {"broken.json", {"--tokenizer=bert"}, 4, "broken.json"},
        {"bert", {"--tokenizer=nowhere"}, 4, "nowhere"},
        {"bert", {"--task=causal-lm"}, 2, "has no head for causal-lm"},
        {"bert", {"--model=model"}, 2, "leave one out"}})
    for (const std::string dry : {"--dry-run", "--dry-run=false"}) {
      std::vector<std::string> more = bad.more;
      if (dry == "--dry-run") more.push_back(dry);
      const Outcome outcome = ferry(from_scratch(bad.config, "bad", more));
      EXPECT_EQ(outcome.code(), bad.code) << bad.config << " " << dry << ": " << outcome.err;
      EXPECT_NE(outcome.err.find(bad.says), std::string::npos) << bad.config << ": " << outcome.err;
      EXPECT_FALSE(fs::exists(root_ / "bad"));
    }
  const Outcome alone =
      ferry({"train", "--model=model", "--tokenizer=bert", "--dataset=train.tsv"});
  EXPECT_EQ(alone.code(), 2);
  EXPECT_NE(alone.err.find("without config_name"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace ferry::test
