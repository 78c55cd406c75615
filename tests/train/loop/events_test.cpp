// `ferry train --json` and its kin by the whole program: a line of JSON for each event and nothing
// else on standard output, errors too; why a language model added nothing.

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using nlohmann::json;

class Events : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_language_model(root_ / "decoder");
    std::ofstream docs(root_ / "docs.jsonl");
    for (int i = 0; i < 40; ++i)
      docs << json{{"text", "the old red car is near a bird"}} << "\n";
    std::ofstream(root_ / "book.txt") << "the old red car is near a bird\n";
  }
  /** Every line of standard output, each an object. */
  static std::vector<json> lines() {
    std::istringstream text(text_of(root_ / "out"));
    std::vector<json> all;
    for (std::string line; std::getline(text, line);) {
      all.push_back(json::parse(line, nullptr, false));
      EXPECT_TRUE(all.back().is_object()) << line;
    }
    return all;
  }
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const json& line : lines())
      all.push_back(line.value("event", ""));
    return all;
  }
};

TEST_F(Events, OfATrainingAreLinesOfJson) {
  const Outcome outcome =
      ferry({"train", "--model=model", "--dataset=train.tsv", "--eval-dataset=dev.tsv",
             "--output-dir=run", "--max-steps=4", "--device=cpu", "--json"});
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  const std::vector<std::string> found = names();
  ASSERT_GE(found.size(), 9u);
  EXPECT_EQ((std::vector<std::string>(found.begin(), found.begin() + 3)),
            (std::vector<std::string>{"start", "plan", "promise"}));
  EXPECT_EQ(std::ranges::count(found, "progress"), 4);
  EXPECT_GE(std::ranges::count(found, "evaluation"), 1);
  EXPECT_EQ(found.back(), "end");
  const std::vector<json> all = lines();
  EXPECT_EQ(all.front()["n_steps"], 4);
  EXPECT_EQ(all.front()["task"], "classification");
  EXPECT_EQ(all.back()["exit_code"], 0);
  EXPECT_TRUE(fs::exists(root_ / all.back()["model"].get<std::string>()));
  // The lines are those of the run's own log.
  std::istringstream metrics(text_of(root_ / "run/metrics.jsonl"));
  std::string first;
  std::getline(metrics, first);
  const auto progress = std::ranges::find(
      all, "progress", [](const json& line) { return line.value("event", std::string()); });
  json line = *progress;
  line.erase("event");
  EXPECT_EQ(line, json::parse(first));
  EXPECT_NE(outcome.err.find("expected:"), std::string::npos) << "people read standard error";

  ASSERT_EQ(ferry({"train", "--resume=run", "--json"}).code(), 0);
  EXPECT_EQ(names(), std::vector<std::string>{"end"});
  ASSERT_EQ(ferry({"export", "--model=run", "--output=exported", "--json"}).code(), 0);
  EXPECT_TRUE(fs::exists(root_ / lines().at(0)["model"].get<std::string>() / "config.json"));
}

TEST_F(Events, AFailureIsTheEnd) {
  std::ofstream(root_ / "bad.tsv") << "text\tlabel\nred\tred\nblue\n";
  const Outcome outcome = ferry({"train", "--model=model", "--dataset=bad.tsv",
                                 "--output-dir=failed", "--device=cpu", "--json"});
  EXPECT_EQ(outcome.code(), 4) << outcome.err;
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["exit_code"], 4);
  EXPECT_NE(all[0]["error"]["message"].get<std::string>().find("bad.tsv"), std::string::npos);
}

TEST_F(Events, ADecoderLearnsAPlainTextWithoutATask) {
  const Outcome outcome = ferry({"train", "--model=decoder", "--dataset=book.txt",
                                 "--output-dir=book", "--max-steps=1", "--device=cpu", "--json"});
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_EQ(lines().front()["task"], "causal-lm");
  EXPECT_NE(text_of(root_ / "book/config.toml").find("task = \"causal-lm\""), std::string::npos);
  EXPECT_NE(outcome.err.find("has no labels"), std::string::npos);
}

/** The likeliest next token of a model whose output is the same for all is the first, its end. */
TEST_F(Events, AnEmptyAnswerIsExplained) {
  fs::copy(root_ / "decoder", root_ / "mute", fs::copy_options::recursive);
  const auto config = json::parse(text_of(root_ / "mute/config.json"));
  json generation = {{"eos_token_id", json::array()}};
  for (int id = 0; id < config["vocab_size"].get<int>(); ++id)
    generation["eos_token_id"].push_back(id);  // whatever comes ends the text
  std::ofstream(root_ / "mute/generation_config.json") << generation;
  const std::vector<std::string> words = {"generate", "--model=mute", "--device=cpu", "the old"};
  Outcome outcome = ferry(words);
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("ended the text at once, with the token"), std::string::npos)
      << outcome.err;
  std::ofstream(root_ / "mute/chat_template.jinja") << "{{ '<|im_start|>user' }}";
  outcome = ferry(words);
  EXPECT_NE(outcome.err.find("it is a chat model"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("`ferry chat mute`"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace ferry::test
