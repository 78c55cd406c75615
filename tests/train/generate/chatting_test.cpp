// `ferry chat` by the whole program: answers are those of `ferry generate` for the text that the
// template makes of the turns, whatever is kept from one turn to the next.

#include <fcntl.h>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using nlohmann::json;

class Chatting : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_language_model(root_ / "plain");
    write_tiny_chat_model(root_ / "chat");
  }
  /** The answers to lines of standard input, an object each. */
  static std::vector<json> chat(const std::string& lines,
                                std::vector<std::string> more = {},
                                const std::string& model = "chat") {
    std::ofstream(root_ / "lines") << lines;
    std::vector<std::string> words = {"chat", model, "--json", "--device=cpu",
                                      "--max-new-tokens=5"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = wait_for(
        start_ferry(root_, words, "", [] { ::dup2(::open("lines", O_RDONLY), STDIN_FILENO); }));
    EXPECT_EQ(outcome.code(), 0) << outcome.err;
    std::vector<json> answers;
    std::istringstream out(text_of(root_ / "out"));
    for (std::string line; std::getline(out, line);)
      answers.push_back(json::parse(line));
    return answers;
  }
  static json generated(const std::string& prompt, const std::string& model = "chat") {
    EXPECT_EQ(ferry({"generate", "--model=" + model, "--json", "--device=cpu", "--max-new-tokens=5",
                     prompt})
                  .code(),
              0)
        << text_of(root_ / "err");
    return json::parse(text_of(root_ / "out"));
  }
};

TEST_F(Chatting, AnswersAsTheTemplateSays) {
  const auto answers = chat(
      "the red car\na bird was old\n/undo\nthe house\n/reset\nthe red car\n/system very new\n"
      "the red car\n\"\"\"the\nold\"\"\"\n/exit\nred\n");
  ASSERT_EQ(answers.size(), 6u);
  const std::string first = answers[0]["content"], system = answers[4]["content"];
  const std::string prompts[] = {
      "[BOS] the red car [EOS]is",
      "[BOS] the red car [EOS]is " + first + " [EOS][BOS] a bird was old [EOS]is",
      "[BOS] the red car [EOS]is " + first + " [EOS][BOS] the house [EOS]is",
      "[BOS] the red car [EOS]is",
      "a very new[BOS] the red car [EOS]is",
      "a very new[BOS] the red car [EOS]is " + system + " [EOS][BOS] the\nold [EOS]is"};
  for (size_t i = 0; i < answers.size(); ++i) {
    const json whole = generated(prompts[i]);
    EXPECT_EQ(answers[i]["content"], whole["text"]) << prompts[i];
    EXPECT_EQ(answers[i]["n_prompt_tokens"], whole["n_prompt_tokens"]) << prompts[i];
    EXPECT_EQ(answers[i]["ended"], whole["ended"]);
    EXPECT_EQ(answers[i]["role"], "assistant");
  }
}

TEST_F(Chatting, VirtualTokensStandBeforeTheTurns) {
  write_tiny_documents(root_ / "documents.jsonl", 40, 1);
  const Outcome train =
      ferry({"train", "--model=chat", "--dataset=documents.jsonl", "--task=causal-lm",
             "--tuning=soft_prompt", "--max-steps=3", "--num-virtual-tokens=3",
             "--learning-rate=0.1", "--device=cpu", "--output-dir=virtual"});
  ASSERT_EQ(train.code(), 0) << train.err;
  const auto answers = chat("the red car\na bird was old\n", {}, "virtual");
  ASSERT_EQ(answers.size(), 2u);
  const std::string first = "[BOS] the red car [EOS]is";
  const json whole = generated(first, "virtual");
  EXPECT_EQ(answers[0]["content"], whole["text"]);
  EXPECT_EQ(answers[0]["n_prompt_tokens"], whole["n_prompt_tokens"]);
  const std::string said = answers[0]["content"];
  EXPECT_EQ(
      answers[1]["content"],
      generated(first + " " + said + " [EOS][BOS] a bird was old [EOS]is", "virtual")["text"]);
  const json plain = generated(first);
  EXPECT_EQ(whole["n_prompt_tokens"].get<int>(), plain["n_prompt_tokens"].get<int>() + 3);
}

TEST_F(Chatting, LeavesOutTheOldestTurns) {
  std::string lines;
  for (int turn = 0; turn < 6; ++turn)
    lines += "the old red car was new and the bird\n";
  const auto answers = chat(lines, {"--system=very", "--max-length=48"});
  ASSERT_EQ(answers.size(), 6u);
  EXPECT_EQ(answers[0]["n_turns_left_out"], 0);
  EXPECT_GT(answers[5]["n_turns_left_out"], 0);
  for (const json& answer : answers)
    EXPECT_LE(answer["n_prompt_tokens"], 24);
  EXPECT_NE(text_of(root_ / "err").find("were left out"), std::string::npos);
}

TEST_F(Chatting, SaysWhatIsWrong) {
  const auto refused = [&](const std::string& lines, const std::vector<std::string>& words,
                           int code, const std::string& says) {
    std::ofstream(root_ / "lines") << lines;
    const Outcome outcome = wait_for(
        start_ferry(root_, words, "", [] { ::dup2(::open("lines", O_RDONLY), STDIN_FILENO); }));
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  };
  refused("red\n", {"chat", "plain", "--device=cpu"}, 4, "has no chat template");
  refused("red\n", {"chat", "model", "--device=cpu"}, 4, "is no language model that generates");
  refused("red\n", {"chat"}, 2, "model");
  refused("/nothing\n", {"chat", "chat", "--device=cpu"}, 4, "'/nothing' is no command");
  refused("/retry\n", {"chat", "chat", "--device=cpu"}, 4, "there is no turn yet");
  refused("red \xff\n", {"chat", "chat", "--device=cpu"}, 4, "UTF-8");
  std::string long_turn;
  for (int i = 0; i < 70; ++i)
    long_turn += "red ";
  refused(long_turn + "\n", {"chat", "chat", "--device=cpu"}, 4, "the context is 64");
  std::ofstream(root_ / "strict.jinja")
      << "{% if messages[0].role == 'system' %}{{ raise_exception('no system turns') }}{% endif %}"
         "{{ messages[0].content }}";
  refused("red\n", {"chat", "plain", "--device=cpu", "--chat-template=strict.jinja", "--system=x"},
          4, "no system turns");
}

}  // namespace
}  // namespace ferry::test
