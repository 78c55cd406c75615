// Token classification and question answering by the whole program: train, evaluate, predict, be
// killed and resumed, and what bad data gets.

#include <regex>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class TaskRuns : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_tags(root_ / "ner.jsonl", 200, 1);
    write_tiny_tags(root_ / "ner_dev.jsonl", 40, 2);
    write_tiny_questions(root_ / "qa.jsonl", 200, 1);
    write_tiny_questions(root_ / "qa_dev.jsonl", 40, 2);
  }

  static std::vector<std::string> ner_run(const std::string& run) {
    return new_run(run, {"--task=ner", "--dataset=ner.jsonl", "--eval-dataset=ner_dev.jsonl"});
  }
  static std::vector<std::string> qa_run(const std::string& run) {
    return new_run(run, {"--task=qa", "--dataset=qa.jsonl", "--eval-dataset=qa_dev.jsonl",
                         "--max-length=24", "--doc-stride=4"});
  }
  static std::string out() { return text_of(root_ / "out"); }

  /** "--json" figures of `ferry eval`. */
  static nlohmann::json figures(const std::string& run, const std::string& data) {
    const Outcome eval =
        ferry({"eval", "--model=" + run, "--dataset=" + data, "--device=cpu", "--json"});
    EXPECT_EQ(eval.code(), 0) << eval.err;
    return nlohmann::json::parse(out());
  }
  /** The last evaluation of the run's own log. */
  static nlohmann::json last_evaluation(const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    nlohmann::json last;
    for (std::string line; std::getline(lines, line);)
      if (auto json = nlohmann::json::parse(line); json.contains("eval_loss"))
        last = std::move(json);
    return last;
  }
  static nlohmann::json first_line(const fs::path& file) {
    std::istringstream lines(text_of(file));
    std::string line;
    std::getline(lines, line);
    return nlohmann::json::parse(line);
  }

  /** A run that is killed and resumed ends as one that was not. */
  static void expect_resumes(const std::vector<std::string>& arguments,
                             const std::string& run,
                             const std::string& whole) {
    const pid_t child = start(arguments);
    wait_for_line(run, 9);
    ::kill(child, SIGKILL);
    wait_for(child);
    const Outcome resumed = ferry({"train", "--resume=" + run});
    ASSERT_EQ(resumed.code(), 0) << resumed.err;
    EXPECT_EQ(curve_of(whole), curve_of(run));
    for (const char* file : {"final/model.safetensors", "final/config.json", "predictions.jsonl"})
      EXPECT_EQ(text_of(root_ / whole / file), text_of(root_ / run / file)) << file;
  }

  /** Metrics that an evaluation of the finished model shares with the run's own last one. */
  static void expect_same_figures(const nlohmann::json& eval,
                                  const nlohmann::json& of_run,
                                  const std::vector<std::string>& names) {
    EXPECT_NEAR(eval.at("eval_loss").get<double>(), of_run.at("eval_loss").get<double>(), 1e-5);
    for (const std::string& name : names)
      EXPECT_NEAR(eval.at(name).get<double>(), of_run.at("eval_" + name).get<double>(), 1e-9)
          << name;
  }
};

TEST_F(TaskRuns, TagsWords) {
  const Outcome train = ferry(ner_run("ner"));
  ASSERT_EQ(train.code(), 0) << train.err;
  const std::string printed = out();
  for (const char* part : {"precision: ", "recall: ", "f1: ", "predictions on held-out", "(COL"})
    EXPECT_NE(printed.find(part), std::string::npos) << part << " in:\n" << printed;
  const auto config = nlohmann::json::parse(text_of(root_ / "ner/final/config.json"));
  EXPECT_EQ(config["architectures"][0], "BertForTokenClassification");
  EXPECT_EQ(config["id2label"]["0"], "B-COL");
  const auto row = first_line(root_ / "ner/predictions.jsonl");
  EXPECT_EQ(row["label"].size(), row["predicted"].size());

  const auto of_run = last_evaluation("ner");
  EXPECT_GT(of_run.at("eval_f1").get<double>(), 0.8);
  expect_same_figures(figures("ner", "ner_dev.jsonl"), of_run,
                      {"precision", "recall", "f1", "accuracy"});

  ASSERT_EQ(ferry({"predict", "--model=ner", "--device=cpu", "the old red car", "a bird"}).code(),
            0);
  EXPECT_TRUE(std::regex_search(out(), std::regex("red car \\(COL 0\\.[0-9]+\\)\nnone\n")))
      << out();
  ASSERT_EQ(ferry({"predict", "--model=ner", "--device=cpu", "--json", "the red"}).code(), 0);
  const auto answer = nlohmann::json::parse(out());
  EXPECT_EQ(answer["tags"], nlohmann::json({"O", "B-COL"}));
  EXPECT_EQ(answer["entities"][0]["text"], "red");
  EXPECT_EQ(answer["entities"][0]["start"], 4);
  expect_resumes(ner_run("ner_killed"), "ner_killed", "ner");
}

TEST_F(TaskRuns, ReadsConllAndTheBestModelOfAnF1) {
  std::ofstream(root_ / "ner.conll") << "-DOCSTART- O\n\nthe O\nred B-COL\ncar I-COL\n\nold O\n\n"
                                        "blue B-COL\nbird O\n\ngreen B-COL\ncar I-COL\n";
  const Outcome train = ferry(new_run(
      "conll", {"--task=ner", "--dataset=ner.conll", "--eval-dataset=ner.conll",
                "--load-best-model-at-end=true", "--metric-for-best-model=f1", "--max-steps=4"}));
  EXPECT_EQ(train.code(), 0) << train.err;
  EXPECT_EQ(figures("conll", "ner.conll").at("samples"), 4);
}

TEST_F(TaskRuns, AnswersQuestions) {
  const Outcome train = ferry(qa_run("qa"));
  ASSERT_EQ(train.code(), 0) << train.err;
  const std::string printed = out();
  for (const char* part : {"exact_match: ", "f1: ", "predictions on held-out", "no answer"})
    EXPECT_NE(printed.find(part), std::string::npos) << part << " in:\n" << printed;
  const auto config = nlohmann::json::parse(text_of(root_ / "qa/final/config.json"));
  EXPECT_EQ(config["architectures"][0], "BertForQuestionAnswering");
  EXPECT_EQ(config["task_specific_params"]["question-answering"]["has_unanswered"], true);
  EXPECT_EQ(first_line(root_ / "qa/predictions.jsonl")["id"], "q0");

  const auto of_run = last_evaluation("qa");
  EXPECT_GT(of_run.at("eval_f1").get<double>(), 80);
  // With max_length and doc_stride of the run: the same windows, and the same figures.
  const auto eval = figures("qa", "qa_dev.jsonl");
  EXPECT_GT(eval.at("samples"), 40);
  expect_same_figures(eval, of_run, {"exact_match", "f1"});

  // Long contexts: `ferry plan` counts windows as training does.
  std::smatch trained, planned;
  ASSERT_TRUE(std::regex_search(printed, trained, std::regex("; ([0-9]+) steps of"))) << printed;
  auto plan = qa_run("planned");
  plan[0] = "plan";
  plan.insert(plan.end(), {"--machine=2080ti-11g", "--device=auto"});
  ASSERT_EQ(ferry(plan).code(), 0) << text_of(root_ / "err");
  const std::string plan_text = out();
  ASSERT_TRUE(std::regex_search(plan_text, planned, std::regex("run's ([0-9]+) steps")))
      << plan_text;
  EXPECT_EQ(trained[1], planned[1]);

  ASSERT_EQ(ferry({"predict", "--model=qa", "--device=cpu", "--json", "--pairs", "the car is",
                   "a very old green bird"})
                .code(),
            0);
  const auto answer = nlohmann::json::parse(out());
  EXPECT_EQ(answer["answer"], "green");
  EXPECT_EQ(answer["start"], 11);
  EXPECT_EQ(answer["end"], 16);
  ASSERT_EQ(ferry({"predict", "--model=qa", "--device=cpu", "--dataset=qa_dev.jsonl"}).code(), 0);
  const std::string answers = out();
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 40);
  expect_resumes(qa_run("qa_killed"), "qa_killed", "qa");
}

TEST_F(TaskRuns, AStrideOfItsOwnIsPartOfARun) {
  auto words = qa_run("stride");
  words.push_back("--max-steps=2");
  ASSERT_EQ(ferry(words).code(), 0) << text_of(root_ / "err");
  const Outcome other = ferry({"train", "--resume=stride", "--doc-stride=2", "--max-steps=4"});
  EXPECT_EQ(other.code(), 2);
  EXPECT_NE(other.err.find("doc_stride"), std::string::npos) << other.err;
}

std::vector<std::string> with_packing(std::vector<std::string> words, bool packs) {
  // Four texts of 8 tokens are a pack.
  const std::vector<std::string> more =
      packs ? std::vector<std::string>{"--packing=true", "--micro-batch-size=1",
                                       "--train-batch-size=2"}
            : std::vector<std::string>{};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(TaskRuns, PackedTextsTrainAsUnpackedOnes) {
  // All alike: a micro-batch is the same in whatever order they come.
  for (const char* name : {"same-1.txt", "same-2.txt"}) {
    std::ofstream out(root_ / name);
    for (int i = 0; i < 32; ++i)
      out << "the old red car is new\n";
  }
  const auto arguments = [](const std::string& run, bool packs) {
    return with_packing(new_run(run, {"--task=mlm", "--dataset=same-*.txt",
                                      "--eval-dataset=same-1.txt,same-2.txt", "--max-length=32"}),
                        packs);
  };
  ASSERT_EQ(ferry(arguments("plain", false)).code(), 0) << text_of(root_ / "err");
  const Outcome packed = ferry(arguments("packed", true));
  ASSERT_EQ(packed.code(), 0) << packed.err;
  EXPECT_NE(packed.err.find("packed into 16 samples"), std::string::npos) << packed.err;
  // Masks tell the texts apart: were one to see another, losses and gradients would differ.
  EXPECT_EQ(curve_of("plain"), curve_of("packed"));
  expect_resumes(arguments("packed_killed", true), "packed_killed", "packed");

  const Outcome other = ferry({"train", "--resume=packed", "--packing=false", "--epochs=4"});
  EXPECT_EQ(other.code(), 2);
  EXPECT_NE(other.err.find("packing was true when the run began"), std::string::npos) << other.err;
}

/** Rows of one or two questions with answers, in the words of the tiny language model. */
void write_chats(const fs::path& file, int n) {
  const char* colours[] = {"red", "blue", "green"};
  std::ofstream out(file);
  for (int i = 0; i < n; ++i) {
    nlohmann::json turns = nlohmann::json::array();
    for (int t = 0; t <= i % 2; ++t) {
      turns.push_back(
          {{"role", "user"}, {"content", std::string("the old car ") + colours[i % 3]}});
      turns.push_back({{"role", "assistant"}, {"content", std::string(colours[(i + t) % 3])}});
    }
    out << nlohmann::json{{"messages", turns}}.dump() << '\n';
  }
}

TEST_F(TaskRuns, ChatsAreLearntByATemplateThatGoesWithTheResult) {
  write_tiny_language_model(root_ / "chat_lm");
  write_chats(root_ / "chats.jsonl", 48);
  write_chats(root_ / "chats_dev.jsonl", 8);
  const std::string source =
      "{% for m in messages %}{{ m.content + ' ' + eos_token + ' ' }}{% endfor %}";
  std::ofstream(root_ / "own.jinja") << source;
  const auto arguments = [](const std::string& run, const std::string& turns) {
    return with_packing(
        new_run(run, {"--model=chat_lm", "--task=causal-lm", "--dataset=chats.jsonl",
                      "--eval-dataset=chats_dev.jsonl", "--max-length=32",
                      "--chat-template=own.jinja", "--train-on-turns=" + turns,
                      "--lr-scheduler-type=constant", "--max-steps=12", "--eval-steps=4"}),
        true);
  };
  const Outcome none = ferry(
      new_run("chats_none", {"--model=chat_lm", "--task=causal-lm", "--dataset=chats.jsonl"}));
  EXPECT_EQ(none.code(), 4);
  EXPECT_NE(none.err.find("has no chat template - name one with --chat-template"),
            std::string::npos)
      << none.err;

  const Outcome train = ferry(arguments("chats", "each"));
  if (train.err.find("this build has no engine for chat templates") != std::string::npos)
    GTEST_SKIP() << train.err;
  ASSERT_EQ(train.code(), 0) << train.err;
  EXPECT_EQ(text_of(root_ / "chats/final/chat_template.jinja"), source);
  // The result is measured by the template that lies beside it.
  const auto eval = figures("chats", "chats_dev.jsonl");
  EXPECT_NEAR(eval.at("eval_loss").get<double>(),
              last_evaluation("chats").at("eval_loss").get<double>(), 1e-5);
  ASSERT_EQ(ferry(arguments("chats_last", "last")).code(), 0) << text_of(root_ / "err");
  EXPECT_NE(curve_of("chats"), curve_of("chats_last"));

  // A run that goes on takes the template from its checkpoint.
  auto words = arguments("chats_short", "each");
  words.push_back("--max-steps=9");
  ASSERT_EQ(ferry(words).code(), 0) << text_of(root_ / "err");
  fs::remove(root_ / "own.jinja");
  const Outcome resumed = ferry({"train", "--resume=chats_short", "--max-steps=12"});
  ASSERT_EQ(resumed.code(), 0) << resumed.err;
  EXPECT_EQ(curve_of("chats"), curve_of("chats_short"));
  for (const char* file : {"final/model.safetensors", "final/chat_template.jinja"})
    EXPECT_EQ(text_of(root_ / "chats" / file), text_of(root_ / "chats_short" / file)) << file;
}

TEST_F(TaskRuns, OnlyLanguageModelsArePacked) {
  const Outcome tags = ferry(with_packing(ner_run("unpackable"), true));
  EXPECT_EQ(tags.code(), 2);
  EXPECT_NE(tags.err.find("texts are packed for language models"), std::string::npos) << tags.err;
}

TEST_F(TaskRuns, PatternsThatMatchNothingAreNamed) {
  const Outcome none = ferry(new_run("no_data", {"--dataset=none-*.tsv"}));
  EXPECT_EQ(none.code(), 4);
  EXPECT_NE(none.err.find("no file matches 'none-*.tsv'"), std::string::npos) << none.err;
  EXPECT_FALSE(fs::exists(root_ / "no_data"));
}

TEST_F(TaskRuns, BadDataNamesItsLine) {
  std::ofstream(root_ / "bad.jsonl") << R"({"tokens": ["a", "b"], "ner_tags": ["O"]})";
  const Outcome tags = ferry(new_run("bad", {"--task=ner", "--dataset=bad.jsonl"}));
  EXPECT_EQ(tags.code(), 4);
  EXPECT_NE(tags.err.find("bad.jsonl:1: 'tokens' has 2 words, and 'ner_tags' 1 tags"),
            std::string::npos)
      << tags.err;
  std::ofstream(root_ / "bad_qa.jsonl")
      << R"({"question": "q", "context": "a", "answers": {"text": ["b"], "answer_start": [0]}})";
  const Outcome answer = ferry(new_run("bad", {"--task=qa", "--dataset=bad_qa.jsonl"}));
  EXPECT_EQ(answer.code(), 4);
  EXPECT_NE(answer.err.find("the answer 'b' does not stand at character 0"), std::string::npos)
      << answer.err;
  EXPECT_FALSE(fs::exists(root_ / "bad"));
}

}  // namespace
}  // namespace ferry::test
