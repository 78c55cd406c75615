// Answers to questions: windows and labels, the choice of an answer, and its scores.

#include <gmock/gmock.h>

#include "src/tasks/answer_text.h"
#include "tests/files/test_files.h"
#include "tests/tasks/made.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;
using test::Made;
using test::metric;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/** A question on a context, and the parts that answer it. */
Example asked(const std::string& question,
              const std::string& context,
              const std::vector<std::string>& answers) {
  Example example = {.text = question, .text_pair = context};
  for (const std::string& answer : answers) {
    const auto at = static_cast<uint32_t>(context.find(answer));
    example.label.answers.push_back({at, at + static_cast<uint32_t>(answer.size())});
  }
  return example;
}

LabelScheme answers_scheme() {
  return {.problem = ProblemType::answers, .labels = {}, .has_pairs = true};
}

/** Outputs of a micro-batch: 0 but for starts and ends at some tokens. */
struct Outputs {
  std::vector<float> logits;
  explicit Outputs(const Made& made)
      : logits(2 * static_cast<size_t>(made.batch.n_real_tokens), 0.0f) {}
  Outputs& start(size_t token, float value) { return logits[2 * token] = value, *this; }
  Outputs& end(size_t token, float value) { return logits[2 * token + 1] = value, *this; }
};

TEST(QuestionAnswering, LabelsAreTokensOfTheAnswer) {
  // [CLS] the [SEP] hello un ##aff ##able world ! [SEP]
  const Made made("question-answering", answers_scheme(),
                  {asked("the", "hello unaffable world!", {"unaffable world", "hello"}),
                   asked("the", "hello", {})},
                  {}, /*max_length=*/16);
  ASSERT_EQ(made.data.size(), 2);
  EXPECT_THAT(made.data.labels(0), ElementsAre(4, 7));
  EXPECT_THAT(made.data.labels(1), ElementsAre(0, 0));
  EXPECT_THAT(made.data.type_ids(1), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(made.batch.labels, ElementsAre(4, 7, 0, 0));
  EXPECT_EQ(made.batch.n_label_items, 2);
  EXPECT_EQ(made.batch.n_end_items, 2);
}

TEST(QuestionAnswering, ALongContextFallsIntoWindowsThatShareTokens) {
  // [CLS] the [SEP] + four tokens of the context + [SEP]; two of them are shared.
  const Made made("question-answering", answers_scheme(),
                  {asked("the", "hello world the cafe un hello world", {"cafe un"})},
                  {.doc_stride = 2});
  ASSERT_EQ(made.data.size(), 3);
  EXPECT_THAT(made.data.lengths(), ElementsAre(8, 8, 7));
  EXPECT_THAT(made.data.labels(0), ElementsAre(0, 0));  // has the first half of the answer
  EXPECT_THAT(made.data.labels(1), ElementsAre(4, 5));
  EXPECT_THAT(made.data.labels(2), ElementsAre(0, 0));
  for (int64_t window = 0; window < 3; ++window) {
    EXPECT_EQ(made.data.example_of(window), 0);
    EXPECT_EQ(made.data.ids(window)[1], made.data.ids(0)[1]);      // the question is whole
    EXPECT_EQ(made.data.ids(window).back(), made.data.ids(0)[2]);  // [SEP]
  }
  EXPECT_EQ(made.data.ids(1)[3], made.data.ids(0)[5]);
}

TEST(QuestionAnswering, AStrideBeyondTheRoomStillMovesOn) {
  const Made made("question-answering", answers_scheme(),
                  {asked("the", "hello world the cafe un hello", {"un"})}, {.doc_stride = 128});
  EXPECT_EQ(made.data.size(), 3);  // a token on each time
}

TEST(QuestionAnswering, AQuestionWithoutRoomForItsContextIsRefused) {
  EXPECT_THAT(
      test::error_of([] {
        Made("question-answering", answers_scheme(),
             {asked("hello world the cafe un", "hello", {"hello"})});
      }),
      HasSubstr("the question 'hello world the cafe un' has 8 tokens with the special ones, "
                "max_length is 8"));
}

TEST(QuestionAnswering, AQuestionWithoutRoomIsLeftOutOfATraining) {
  const Made made(
      "question-answering", answers_scheme(),
      {asked("hello world the cafe un", "hello", {"hello"}), asked("hello", "hello", {"hello"})},
      {.long_prompts = LongPrompts::leave_out});
  EXPECT_EQ(made.data.n_examples(), 1);
  EXPECT_EQ(made.data.store().facts().n_left_out, 1);
}

TEST(QuestionAnswering, TheBestAnswerOfAllWindowsCounts) {
  const Made made("question-answering", answers_scheme(),
                  {asked("the", "hello world the café un hello world", {"café un"})},
                  {.doc_stride = 2});
  // Windows begin at tokens 0, 8 and 16; the context's at 3, 11 and 19.
  const auto scorer = made.scorer();
  const auto answers = test::answers_to(
      *scorer, made,
      Outputs(made).start(4, 3).end(4, 3).start(12, 6).end(13, 6).start(0, 9).end(0, 9).logits);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(answers[0].words, HasSubstr("café un ("));
  EXPECT_EQ(answers[0].truth, "café un");
  EXPECT_EQ((*answers[0].predicted)["answer"], "café un");
  EXPECT_EQ((*answers[0].predicted)["start"], 16);
  EXPECT_EQ((*answers[0].predicted)["end"], 23);  // characters, not bytes
  EXPECT_EQ((*answers[0].compared)["label"], ordered_json({"café un"}));
  EXPECT_EQ(metric(scorer->metrics(0), "exact_match"), 100);
  EXPECT_EQ(metric(scorer->metrics(0), "f1"), 100);
}

TEST(QuestionAnswering, NoAnswerCountsWhereTheDataHasSuchQuestions) {
  const std::vector<Example> examples = {asked("the", "hello world", {"world"}),
                                         asked("the", "hello cafe", {})};
  const Made made("question-answering", answers_scheme(), examples);
  // [CLS] the [SEP] hello world [SEP], twice
  const Outputs outputs =
      Outputs(made).start(0, 3).end(0, 3).start(4, 4).end(4, 4).start(6, 5).end(6, 5).start(9, 2);
  const auto scorer = made.scorer();
  const auto answers = test::answers_to(*scorer, made, outputs.logits);
  EXPECT_EQ((*answers[0].predicted)["answer"], "world");
  EXPECT_EQ((*answers[1].predicted)["answer"], "");
  EXPECT_EQ((*answers[1].predicted)["start"], nullptr);
  EXPECT_THAT(answers[1].words, HasSubstr("no answer (1.00)"));
  EXPECT_EQ(answers[1].truth, "no answer");
  EXPECT_EQ(metric(scorer->metrics(0), "exact_match"), 100);
  // Without such questions there is always an answer.
  const Made all("question-answering", answers_scheme(), {examples[0], examples[0]});
  const auto forced = test::answers_to(*all.scorer(), all, outputs.logits);
  EXPECT_EQ((*forced[1].predicted)["answer"], "hello");
}

TEST(QuestionAnswering, LongAnswersAreLeftOut) {
  const Made made("question-answering", answers_scheme(),
                  {asked("the", "hello world the cafe", {"cafe"})}, {.max_answer_length = 2});
  const auto outputs = Outputs(made).start(3, 9).end(6, 9).end(4, 1).logits;
  EXPECT_EQ((*test::answers_to(*made.scorer(), made, outputs)[0].predicted)["answer"],
            "hello world");
}

TEST(QuestionAnswering, AModelKeepsWhetherQuestionsMayHaveNoAnswer) {
  LabelScheme scheme = answers_scheme();
  scheme.has_unanswered = true;
  auto config = HfConfig::parse(
      R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "problem_type": "regression"})",
      "config.json");
  EXPECT_FALSE(kind_of_model(config).of_model(config, {})->scheme().has_unanswered);
  task_kind("question-answering").make(scheme, {})->write(config);
  const auto written = HfConfig::parse(config.json().dump(), "config.json");
  EXPECT_TRUE(kind_of_model(written).of_model(written, {})->scheme().has_unanswered);
  EXPECT_EQ(written.id2label.size(), 2u);
  EXPECT_EQ(written.problem_type, "");
}

TEST(AnswerText, OnlySomeWordsCount) {
  EXPECT_THAT(words_that_count("The  U.S.A., an\tÉTAT"), ElementsAre("usa", "état"));
  EXPECT_THAT(words_that_count("a–b theatre"), ElementsAre("–b", "theatre"));
  EXPECT_THAT(words_that_count("a. the"), ElementsAre());
  EXPECT_TRUE(is_exact_match("the Denver Broncos", "denver broncos!"));
  EXPECT_NEAR(word_f1("Denver Broncos", "the broncos of Denver"), 0.8, 1e-12);
  EXPECT_EQ(word_f1("", ""), 1);
  EXPECT_EQ(word_f1("x", ""), 0);
  EXPECT_NEAR(word_f1("b b c", "b b b"), 2.0 / 3, 1e-12);
}

}  // namespace
}  // namespace ferry
