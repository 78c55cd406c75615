// Learning from pairs of answers by the whole program: the model comes to prefer the better ones, a
// run goes on with the bits of one that never stopped, and what it compares with is kept.

#include <cmath>
#include <random>

#include "tests/train/run_test.h"
#include "tests/train/tensor_files.h"

namespace ferry::test {
namespace {

using nlohmann::json;

class Preferences : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_chat_model(root_ / "llama");
    write_pairs(root_ / "pairs.jsonl", 64, 1);
    write_pairs(root_ / "dev.jsonl", 16, 2);
  }
  /** "the car is" goes on with a colour that is better, or a worse word. */
  static void write_pairs(const fs::path& file, int n, unsigned seed) {
    std::mt19937 random(seed);
    std::ofstream out(file);
    const std::vector<std::string> things = {"car", "house", "bird"}, good = {"red", "green"},
                                   bad = {"old", "near"};
    for (int i = 0; i < n; ++i)
      out << json({{"prompt", "the " + things[random() % 3] + " is "},
                   {"chosen", good[random() % 2]},
                   {"rejected", bad[random() % 2] + (random() % 2 ? " the" : "")}})
                 .dump()
          << '\n';
  }
  static std::vector<std::string> run_of(const std::string& run,
                                         const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"train",
                                      "--task=preference",
                                      "--model=llama",
                                      "--dataset=pairs.jsonl",
                                      "--eval-dataset=dev.jsonl",
                                      "--device=" + device(),
                                      "--train-batch-size=8",
                                      "--micro-batch-size=4",
                                      "--lr=3e-3",
                                      "--epochs=2",
                                      "--max-length=32",
                                      "--save-steps=5",
                                      "--intra-op-threads=1",
                                      "--output-dir=" + run};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static void train(const std::string& run, const std::vector<std::string>& more = {}) {
    const Outcome outcome = ferry(run_of(run, more));
    ASSERT_EQ(outcome.code(), 0) << outcome.err;
  }
  static json last_evaluation(const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    json last;
    for (std::string line; std::getline(lines, line);)
      if (auto its = json::parse(line); its.contains("eval_loss")) last = std::move(its);
    return last;
  }
  /** `ferry eval` of a run says of the data what the run itself said at its end. */
  static void expect_same(const std::string& run, const std::string& data) {
    SCOPED_TRACE(run);
    ASSERT_EQ(
        ferry({"eval", "--model=" + run, "--dataset=" + data, "--json", "--device=" + device()})
            .code(),
        0)
        << text_of(root_ / "err");
    const json asked = json::parse(text_of(root_ / "out"));
    const json end = last_evaluation(run);
    EXPECT_NEAR(asked.at("eval_loss").get<double>(), end.at("eval_loss").get<double>(), 1e-4);
    for (const auto& [name, value] : asked.items()) {
      const auto its = end.find("eval_" + name);
      if (its == end.end()) continue;
      EXPECT_NEAR(value.get<double>(), its->get<double>(), 1e-3) << name;
    }
    EXPECT_TRUE(asked.contains("rewards/margins"));
  }
  static std::string model_of(const std::string& run) {
    return text_of(root_ / run / "final/model.safetensors");
  }
};

TEST_F(Preferences, TheBetterAnswersBecomeLikelier) {
  train("dpo", {"--logging-steps=1"});
  // Before the first step both are as likely as they were.
  EXPECT_NEAR(losses_of("dpo").front(), std::log(2.0), device() == "cuda" ? 1e-3 : 1e-6);
  const json end = last_evaluation("dpo");
  EXPECT_LT(end["eval_loss"], 0.6);
  EXPECT_GT(end["eval_rewards/accuracies"], 0.9);
  EXPECT_GT(end["eval_rewards/margins"], 0.0);
  EXPECT_NEAR(end["eval_rewards/margins"].get<double>(),
              end["eval_rewards/chosen"].get<double>() - end["eval_rewards/rejected"].get<double>(),
              1e-9);
  // Each line of the training tells the same of its step's pairs.
  std::istringstream lines(text_of(root_ / "dpo/metrics.jsonl"));
  std::string line;
  std::getline(lines, line);
  const json first = json::parse(line);
  EXPECT_NEAR(first.at("rewards/margins").get<double>(), 0, 1e-3);
  EXPECT_EQ(first.at("rewards/chosen").get<double>() - first.at("rewards/rejected").get<double>(),
            first.at("rewards/margins"));

  // It is a language model as before.
  EXPECT_EQ(ferry({"generate", "--model=dpo", "--max-new-tokens=3", "the car is"}).code(), 0)
      << text_of(root_ / "err");
}

TEST_F(Preferences, AnEvaluationComparesWithTheFirstWeights) {
  train("measured", {"--preference-beta=0.3", "--label-smoothing=0.1"});
  expect_same("measured", "dev.jsonl");
  train("measured_odds", {"--preference-loss=orpo"});
  expect_same("measured_odds", "dev.jsonl");
  train("measured_lora", {"--tuning=lora"});
  expect_same("measured_lora", "dev.jsonl");

  // Plain texts are measured as by any language model; the first weights are not needed.
  std::ofstream(root_ / "said.txt") << "the car is red\nthe house is green\n";
  fs::rename(root_ / "llama", root_ / "moved");
  EXPECT_EQ(ferry({"eval", "--model=measured", "--dataset=said.txt", "--device=cpu"}).code(), 0)
      << text_of(root_ / "err");
  const Outcome without =
      ferry({"eval", "--model=measured", "--dataset=dev.jsonl", "--device=cpu"});
  EXPECT_NE(without.code(), 0);
  EXPECT_NE(without.err.find("llama"), std::string::npos) << without.err;
  fs::rename(root_ / "moved", root_ / "llama");
}

TEST_F(Preferences, EachLossIsLearnt) {
  for (const char* kind : {"hinge", "ipo", "robust", "sigmoid_norm", "nca_pair", "sppo_hard",
                           "apo_zero", "apo_down", "orpo", "simpo", "cpo"}) {
    SCOPED_TRACE(kind);
    std::vector<std::string> more = {std::string("--preference-loss=") + kind,
                                     "--save-strategy=no"};
    if (std::string(kind) == "robust") more.push_back("--label-smoothing=0.1");
    train(kind, more);
    const std::vector<double> losses = losses_of(kind);
    EXPECT_LT(losses.back(), losses.front());
    EXPECT_GT(last_evaluation(kind)["eval_rewards/accuracies"], 0.9);
    const bool compares =
        std::string(kind) != "orpo" && std::string(kind) != "simpo" && std::string(kind) != "cpo";
    EXPECT_EQ(fs::exists(root_ / kind / "references.bin"), compares);
  }
}

TEST_F(Preferences, GoOnWithTheSameBits) {
  train("whole");
  for (const char* placement : {"--placement=host", "--placement=resident"}) {
    const std::string run = std::string("killed") + (placement + 12);
    const pid_t child = start(run_of(run, {placement}));
    wait_for_line(run, 8);
    ::kill(child, SIGKILL);
    wait_for(child);
    const Outcome outcome = ferry({"train", "--resume=" + run});
    ASSERT_EQ(outcome.code(), 0) << outcome.err;
    EXPECT_EQ(curve_of("whole"), curve_of(run));
    EXPECT_TRUE(model_of("whole") == model_of(run));
  }
  if (device() != "cuda") {
    const pid_t two = start(run_of("ranks", {"--device=cpu", "--gpus=2"}));
    wait_for_line("ranks", 8);
    ::kill(two, SIGKILL);
    wait_for(two);
    const Outcome outcome = ferry({"train", "--resume=ranks", "--gpus=3"});
    ASSERT_EQ(outcome.code(), 0) << outcome.err;
    EXPECT_EQ(curve_of("whole"), curve_of("ranks"));
    EXPECT_TRUE(model_of("whole") == model_of("ranks"));
  }
  // What the run compares with is not made anew from weights that have changed.
  fs::rename(root_ / "killedhost/final", root_ / "final_away");
  fs::remove(root_ / "killedhost/references.bin");
  fs::rename(root_ / "killedresident/final", root_ / "other_final_away");
  const Outcome without = ferry({"train", "--resume=killedhost"});
  EXPECT_EQ(without.code(), 4) << without.err;
  EXPECT_NE(without.err.find("references.bin"), std::string::npos) << without.err;
  const Outcome other = ferry({"train", "--resume=killedresident", "--preference-loss=ipo"});
  EXPECT_EQ(other.code(), 2) << other.err;
}

TEST_F(Preferences, AdaptersCompareWithTheirBase) {
  train("lora", {"--tuning=lora", "--lora-r=4", "--lora-dropout=0.1"});
  EXPECT_NEAR(losses_of("lora").front(), std::log(2.0), device() == "cuda" ? 1e-3 : 1e-6);
  EXPECT_GT(last_evaluation("lora")["eval_rewards/accuracies"], 0.9);
  EXPECT_FALSE(fs::exists(root_ / "lora/final/model.safetensors"));
}

TEST_F(Preferences, ChatsGoThroughTheTemplate) {
  std::ofstream out(root_ / "chats.jsonl");
  const auto turn = [](const char* role, const char* text) {
    return json({{"role", role}, {"content", text}});
  };
  for (int i = 0; i < 32; ++i)
    out << json({{"prompt", json::array({turn("user", "the car")})},
                 {"chosen", json::array({turn("assistant", i % 2 ? "red" : "green")})},
                 {"rejected", json::array({turn("assistant", "old")})}})
               .dump()
        << '\n';
  out.close();
  train("chats", {"--dataset=chats.jsonl", "--eval-dataset=chats.jsonl"});
  EXPECT_GT(last_evaluation("chats")["eval_rewards/accuracies"], 0.9);
  expect_same("chats", "chats.jsonl");
}

TEST_F(Preferences, SingleAnswersAreGoodOrBad) {
  for (const char* name : {"rated.jsonl", "rated_dev.jsonl"}) {
    std::ifstream pairs(root_ / (name == std::string("rated.jsonl") ? "pairs.jsonl" : "dev.jsonl"));
    std::ofstream out(root_ / name);
    for (std::string line; std::getline(pairs, line);) {
      const json pair = json::parse(line);
      for (const char* which : {"chosen", "rejected"})
        out << json({{"prompt", pair["prompt"]},
                     {"completion", pair[which]},
                     {"label", which == std::string("chosen")}})
                   .dump()
            << '\n';
    }
  }
  const std::vector<std::string> rated = {"--task=kto", "--dataset=rated.jsonl",
                                          "--eval-dataset=rated_dev.jsonl", "--epochs=1"};
  train("kto", rated);
  // A half, since no answer has gained.
  EXPECT_NEAR(losses_of("kto").front(), 0.5, device() == "cuda" ? 1e-3 : 1e-6);
  const json end = last_evaluation("kto");
  expect_same("kto", "rated_dev.jsonl");
  EXPECT_LT(end["eval_loss"], 0.48);
  EXPECT_GT(end["eval_rewards/margins"], 0.0);
  EXPECT_GE(end["eval_kl"], 0.0);
  auto killed = run_of("kto_killed", rated);
  const pid_t child = start(killed);
  wait_for_line("kto_killed", 8);
  ::kill(child, SIGKILL);
  wait_for(child);
  ASSERT_EQ(ferry({"train", "--resume=kto_killed"}).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(curve_of("kto"), curve_of("kto_killed"));
  EXPECT_TRUE(model_of("kto") == model_of("kto_killed"));
}

TEST_F(Preferences, ARewardModelGivesNumbers) {
  train("reward", {"--task=reward"});
  EXPECT_NEAR(losses_of("reward").front(), std::log(2.0), 0.2);
  EXPECT_GT(last_evaluation("reward")["eval_accuracy"], 0.9);
  const auto reward_of = [](const std::string& text) {
    EXPECT_EQ(ferry({"predict", "--model=reward", "--device=cpu", "--json", text}).code(), 0)
        << text_of(root_ / "err");
    const json answer = json::parse(text_of(root_ / "out"));
    return answer.at("logits").at(0).get<double>();
  };
  EXPECT_GT(reward_of("the car is red"), reward_of("the car is old"));
  const json config = json::parse(text_of(root_ / "reward/final/config.json"));
  EXPECT_EQ(config["architectures"][0], "LlamaForSequenceClassification");
  EXPECT_EQ(config["id2label"].size(), 1u);

  // `ferry eval` measures it on pairs as the run did at its end.
  ASSERT_EQ(
      ferry({"eval", "--model=reward", "--dataset=dev.jsonl", "--device=" + device(), "--json"})
          .code(),
      0)
      << text_of(root_ / "err");
  const json asked = json::parse(text_of(root_ / "out"));
  const json end = last_evaluation("reward");
  EXPECT_EQ(asked.at("samples"), 16);
  for (const char* name : {"accuracy", "margin", "mean_reward"})
    EXPECT_NEAR(asked.at(name).get<double>(), end.at(std::string("eval_") + name).get<double>(),
                1e-4)
        << name;
  EXPECT_NEAR(asked.at("eval_loss").get<double>(), end.at("eval_loss").get<double>(), 1e-4);
}

TEST_F(Preferences, BadInputIsNamed) {
  const auto says = [](const std::vector<std::string>& more, int code, const char* what) {
    const Outcome outcome = ferry(run_of("bad", more));
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
    fs::remove_all(root_ / "bad");
  };
  std::ofstream(root_ / "sft.jsonl") << R"({"prompt": "a", "completion": "b"})" << '\n';
  says({"--dataset=sft.jsonl"}, 4, "'chosen' is missing");
  says({"--dataset=train.tsv"}, 4, "prompt, chosen and rejected");
  says({"--packing=true"}, 2, "packed");
  says({"--preference-loss=ipo", "--label-smoothing=0.1"}, 2, "label_smoothing_factor");
  says({"--preference-loss=kto"}, 2, "sigmoid");
  says({"--task=causal-lm"}, 4, "--task preference");
}

}  // namespace
}  // namespace ferry::test
