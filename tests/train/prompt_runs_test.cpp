// Prompts by the whole program: a masked model and a decoder learn to tell labels by words, are
// evaluated, asked, killed and resumed, and what bad settings get.

#include <cmath>
#include <regex>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

constexpr const char* kTemplate = R"({"placeholder": "text_a"} is {"mask"})";
/** A label's word is another one, so that names alone cannot do. */
constexpr const char* kWords = R"({"red": ["car"], "green": ["house", "bird"], "blue": ["old"]})";

class PromptRuns : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    // A masked model is trained first, since one without a head answers at random.
    write_tiny_language_model(root_ / "decoder");
    const Outcome train = ferry({"train", "--model=model", "--task=mlm", "--dataset=train.tsv",
                                 "--output-dir=masked", "--device=cpu", "--max-steps=3"});
    ASSERT_EQ(train.code(), 0) << train.err;
  }

  static std::vector<std::string> prompt_run(const std::string& run,
                                             const std::string& model,
                                             std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"train",
                                    "--model=" + model,
                                    "--dataset=train.tsv",
                                    "--eval-dataset=dev.tsv",
                                    "--output-dir=" + run,
                                    std::string("--template=") + kTemplate,
                                    std::string("--verbalizer=") + kWords,
                                    "--num-train-epochs=6",
                                    "--learning-rate=2e-3",
                                    "--logging-steps=1",
                                    "--micro-batch-size=4",
                                    "--train-batch-size=8",
                                    "--intra-op-threads=1",
                                    "--save-steps=4",
                                    "--device=" + device()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::string out() { return text_of(root_ / "out"); }
  static nlohmann::json figures(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"eval", "--dataset=dev.tsv", "--device=cpu", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome eval = ferry(all);
    EXPECT_EQ(eval.code(), 0) << eval.err;
    return nlohmann::json::parse(out());
  }
  static nlohmann::json last_evaluation(const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    nlohmann::json last;
    for (std::string line; std::getline(lines, line);)
      if (auto json = nlohmann::json::parse(line); json.contains("eval_loss"))
        last = std::move(json);
    return last;
  }
  static nlohmann::json config_of(const std::string& run) {
    return nlohmann::json::parse(text_of(root_ / run / "final/config.json"));
  }

  /** A finished run learnt its data, and answers alone. */
  static void expect_learnt(const std::string& run) {
    const auto of_run = last_evaluation(run);
    EXPECT_GT(of_run.at("eval_accuracy").get<double>(), 0.9) << of_run;
    const auto eval = figures({"--model=" + run});
    EXPECT_NEAR(eval.at("eval_loss").get<double>(), of_run.at("eval_loss").get<double>(), 1e-5);
    EXPECT_EQ(eval.at("accuracy"), of_run.at("eval_accuracy"));
    ASSERT_EQ(ferry({"predict", "--model=" + run, "--device=cpu", "the green bird"}).code(), 0);
    EXPECT_TRUE(std::regex_search(out(), std::regex("green \\([01]\\.[0-9]+\\)"))) << out();
  }
};

TEST_F(PromptRuns, AMaskedModelTellsLabelsByWords) {
  const Outcome train = ferry(prompt_run("manual", "masked"));
  ASSERT_EQ(train.code(), 0) << train.err;
  EXPECT_NE((out() + train.err).find("task = prompt-classification"), std::string::npos);
  const auto config = config_of("manual");
  EXPECT_EQ(config["architectures"][0], "BertForMaskedLM");
  EXPECT_EQ(config["ferry_prompt"]["template"], kTemplate);
  expect_learnt("manual");

  // A model that another task goes on with asks for no word any more.
  ASSERT_EQ(ferry({"train", "--model=manual/final", "--task=classification", "--dataset=train.tsv",
                   "--output-dir=classifier", "--device=cpu", "--max-steps=1"})
                .code(),
            0);
  EXPECT_TRUE(config_of("classifier")["ferry_prompt"].is_null());
  EXPECT_EQ(figures({"--model=classifier"}).at("samples"), 40);
}

TEST_F(PromptRuns, AKilledRunGoesOnWithTheSameBits) {
  ASSERT_EQ(ferry(prompt_run("whole", "masked", {"--max-steps=12"})).code(), 0);
  const pid_t child = start(prompt_run("killed", "masked", {"--max-steps=12"}));
  wait_for_line("killed", 7);
  ::kill(child, SIGKILL);
  wait_for(child);
  const Outcome resumed = ferry({"train", "--resume=killed"});
  ASSERT_EQ(resumed.code(), 0) << resumed.err;
  EXPECT_EQ(curve_of("whole"), curve_of("killed"));
  for (const char* file : {"final/model.safetensors", "final/config.json", "predictions.jsonl"})
    EXPECT_EQ(text_of(root_ / "whole" / file), text_of(root_ / "killed" / file)) << file;
}

TEST_F(PromptRuns, ADecoderIsAskedForItsNextWord) {
  const Outcome train = ferry(prompt_run("next_word", "decoder"));
  ASSERT_EQ(train.code(), 0) << train.err;
  EXPECT_EQ(config_of("next_word")["architectures"][0], "LlamaForCausalLM");
  expect_learnt("next_word");
}

TEST_F(PromptRuns, RowsOfLabelsAndSoftTokensAreTrainedAndKept) {
  const std::string soft =
      R"(--template={"soft": 2} {"placeholder": "text_a"} {"soft": "is the"} {"mask"})";
  for (const char* model : {"masked", "decoder"}) {
    const std::string run = std::string("soft_") + model;
    const Outcome train = ferry(prompt_run(run, model, {soft, "--verbalizer-type=soft"}));
    ASSERT_EQ(train.code(), 0) << train.err;
    EXPECT_EQ(config_of(run)["ferry_prompt"]["soft_tokens"].size(), 4);
    expect_learnt(run);
    ASSERT_EQ(ferry({"export", "--model=" + run, "--output-dir=exported_" + run}).code(), 0);
    EXPECT_EQ(figures({"--model=exported_" + run}).at("eval_loss"),
              figures({"--model=" + run}).at("eval_loss"));
  }
}

TEST_F(PromptRuns, AdaptersKeepWhatAPromptAdds) {
  const Outcome train =
      ferry(prompt_run("lora", "masked",
                       {"--tuning=lora", "--verbalizer-type=soft", "--learning-rate=1e-2",
                        R"(--template={"soft": "is the"} {"placeholder": "text_a"} {"mask"})"}));
  ASSERT_EQ(train.code(), 0) << train.err;
  expect_learnt("lora");
}

TEST_F(PromptRuns, AModelIsAskedWithoutTraining) {
  const auto eval = figures({"--model=masked", std::string("--template=") + kTemplate,
                             std::string("--verbalizer=") + kWords});
  EXPECT_EQ(eval.at("samples"), 40);
  EXPECT_NEAR(eval.at("eval_loss").get<double>(), std::log(3.0), 1.0);
  ASSERT_EQ(ferry({"predict", "--model=masked", std::string("--template=") + kTemplate,
                   std::string("--verbalizer=") + kWords, "--device=cpu", "the red car"})
                .code(),
            0);
  EXPECT_TRUE(std::regex_search(out(), std::regex("(red|green|blue) \\(0\\.[0-9]+\\)"))) << out();
}

TEST_F(PromptRuns, ThePreviewShowsTheQuestion) {
  const Outcome preview =
      ferry({"preview", "--model=masked", "--dataset=train.tsv",
             std::string("--template=") + kTemplate, std::string("--verbalizer=") + kWords});
  ASSERT_EQ(preview.code(), 0) << preview.err;
  EXPECT_NE(out().find("[MASK]"), std::string::npos) << out();
}

TEST_F(PromptRuns, VirtualTokensAreAnAdapter) {
  // A language model, whose rows come in one order.
  write_tiny_documents(root_ / "documents.jsonl", 120, 1);
  const std::vector<std::string> more = {"--model=decoder",
                                         "--dataset=documents.jsonl",
                                         "--task=causal-lm",
                                         "--tuning=soft_prompt",
                                         "--num-virtual-tokens=4",
                                         "--learning-rate=3e-2",
                                         "--max-length=32",
                                         "--eval-dataset=documents.jsonl",
                                         "--num-train-epochs=2",
                                         "--prompt-tuning-init=text",
                                         "--prompt-tuning-init-text=the old car"};
  const Outcome train = ferry(new_run("virtual", more));
  ASSERT_EQ(train.code(), 0) << train.err;
  const auto adapter = nlohmann::json::parse(text_of(root_ / "virtual/final/adapter_config.json"));
  EXPECT_EQ(adapter["peft_type"], "PROMPT_TUNING");
  EXPECT_EQ(adapter["num_virtual_tokens"], 4);
  EXPECT_EQ(adapter["token_dim"], 32);
  EXPECT_EQ(adapter["task_type"], "CAUSAL_LM");
  EXPECT_TRUE(fs::exists(root_ / "virtual/final/adapter_model.safetensors"));
  const auto losses = losses_of("virtual");
  EXPECT_LT(losses.back(), 0.98 * losses.front());
  const auto of_run = last_evaluation("virtual");
  const Outcome eval = ferry({"eval", "--model=virtual/final", "--dataset=documents.jsonl",
                              "--max-length=32", "--device=cpu", "--json"});
  ASSERT_EQ(eval.code(), 0) << eval.err;
  EXPECT_NEAR(nlohmann::json::parse(out()).at("eval_loss").get<double>(),
              of_run.at("eval_loss").get<double>(), 1e-5);
  ASSERT_EQ(ferry({"generate", "--model=virtual", "--device=cpu", "--max-new-tokens=4", "the car"})
                .code(),
            0);
  EXPECT_FALSE(out().empty());
  const Outcome merged = ferry({"export", "--model=virtual", "--output-dir=merged"});
  EXPECT_NE(merged.code(), 0);
  EXPECT_NE(merged.err.find("are no part of any weight"), std::string::npos) << merged.err;

  // Killed and resumed, it ends with the same bits.
  std::vector<std::string> again = more;
  again.push_back("--save-steps=4");
  const pid_t child = start(new_run("virtual_killed", again));
  wait_for_line("virtual_killed", 9);
  ::kill(child, SIGKILL);
  wait_for(child);
  const Outcome resumed = ferry({"train", "--resume=virtual_killed"});
  ASSERT_EQ(resumed.code(), 0) << resumed.err;
  const char* file = "final/adapter_model.safetensors";
  EXPECT_EQ(text_of(root_ / "virtual" / file), text_of(root_ / "virtual_killed" / file));
}

TEST_F(PromptRuns, VirtualTokensTeachAClassifierAndATemplate) {
  const Outcome classifier = ferry(
      new_run("virtual_classes", {"--tuning=soft_prompt", "--num-virtual-tokens=4", "--lr=3e-2"}));
  ASSERT_EQ(classifier.code(), 0) << classifier.err;
  const auto of_run = last_evaluation("virtual_classes");
  EXPECT_NEAR(figures({"--model=virtual_classes"}).at("eval_loss").get<double>(),
              of_run.at("eval_loss").get<double>(), 1e-5);
  for (const bool has_soft : {true, false}) {
    const std::string run = has_soft ? "virtual_in_template" : "virtual_before",
                      model = has_soft ? "masked" : "decoder",
                      text = has_soft ? R"({"soft": 3} {"placeholder": "text_a"} {"mask"})"
                                      : kTemplate;
    const Outcome prompt = ferry(prompt_run(
        run, model,
        {"--template=" + text, "--tuning=soft_prompt", "--learning-rate=3e-2", "--max-steps=30"}));
    ASSERT_EQ(prompt.code(), 0) << prompt.err;
    EXPECT_NEAR(figures({"--model=" + run}).at("eval_loss").get<double>(),
                last_evaluation(run).at("eval_loss").get<double>(), 1e-5);
    // PEFT puts virtual tokens before texts where it knows a task.
    const auto adapter = nlohmann::json::parse(text_of(root_ / run / "final/adapter_config.json"));
    EXPECT_EQ(adapter["peft_type"], has_soft ? "BITFIT" : "PROMPT_TUNING");
    EXPECT_EQ(adapter["task_type"].is_null(), has_soft);
  }
}

TEST_F(PromptRuns, BadSettingsAreSaid) {
  const auto refusal = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train", "--model=masked", "--dataset=train.tsv",
                                    "--output-dir=refused", "--device=cpu"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome train = ferry(all);
    EXPECT_NE(train.code(), 0);
    return train.err;
  };
  const auto expect = [&](const std::string& said, const std::vector<std::string>& more) {
    const std::string error = refusal(more);
    EXPECT_NE(error.find(said), std::string::npos) << error;
  };
  expect("asks for no word", {R"(--template={"placeholder": "text_a"} is)"});
  expect("without a template", {"--task=prompt"});
  expect("is for task = prompt-classification",
         {"--task=classification", std::string("--prompt-template=") + kTemplate});
  expect("no words stand for the label 'blue'",
         {std::string("--template=") + kTemplate, R"(--verbalizer={"red": ["car"]})"});
  expect("is for tuning = soft_prompt", {"--num-virtual-tokens=4"});
  expect("there is no text", {"--tuning=soft_prompt", "--prompt-tuning-init=text"});
  expect("tuning = soft_prompt with task = mlm", {"--tuning=soft_prompt", "--task=mlm"});
}

}  // namespace
}  // namespace ferry::test
