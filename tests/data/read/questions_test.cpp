// Questions with their answers: rows of JSONL, SQuAD's own file, and what is wrong with such files.

#include <gmock/gmock.h>

#include "src/data/read/reader.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class QuestionsTest : public ::testing::Test {
 protected:
  Dataset read(std::string_view name, std::string_view text, DatasetOptions options = {}) {
    options.path = dir_.write(name, text);
    options.rows = RowForm::questions;
    return read_dataset(options);
  }
  std::string error(std::string_view name, std::string_view text) {
    return test::error_of([&] { read(name, text); });
  }

  test::TempDir dir_;
};

std::vector<std::string> answers(const Example& example) {
  std::vector<std::string> answers;
  for (const TextRange& range : example.label.answers)
    answers.emplace_back(part_of(*example.text_pair, range));
  return answers;
}

TEST_F(QuestionsTest, RowsCountCharacters) {
  const auto dataset = read(
      "x.jsonl",
      R"({"id": "a", "question": "Who?", "context": "Zoë Ngo sang.", )"
      R"("answers": {"text": ["Ngo", "Zoë Ngo"], "answer_start": [4, 0]}})"
      "\n"
      R"({"id": 7, "question": "Why?", "context": "No.", "answers": {"text": [], "answer_start": []}})");
  ASSERT_EQ(dataset.examples.size(), 2u);
  const Example& first = dataset.examples[0];
  EXPECT_EQ(first.id, "a");
  EXPECT_EQ(first.text, "Who?");
  EXPECT_EQ(*first.text_pair, "Zoë Ngo sang.");
  EXPECT_THAT(answers(first), ElementsAre("Ngo", "Zoë Ngo"));
  EXPECT_EQ(first.label.answers[0], (TextRange{5, 8}));
  EXPECT_EQ(dataset.examples[1].id, "7");
  EXPECT_THAT(answers(dataset.examples[1]), ElementsAre());
  EXPECT_EQ(dataset.scheme.problem, ProblemType::answers);
  EXPECT_TRUE(dataset.scheme.has_unanswered);
  EXPECT_THAT(dataset.notes, ElementsAre(HasSubstr("2 questions, 1 without an answer")));
}

TEST_F(QuestionsTest, SquadsOwnFile) {
  const auto dataset = read("x.json", R"({"version": "v2.0", "data": [
    {"title": "t", "paragraphs": [
      {"context": "A b c.", "qas": [
        {"id": "1", "question": "b?", "answers": [{"text": "b", "answer_start": 2}], "is_impossible": false},
        {"id": "2", "question": "d?", "answers": [], "is_impossible": true,
         "plausible_answers": [{"text": "c", "answer_start": 4}]}]}]}]})");
  ASSERT_EQ(dataset.examples.size(), 2u);
  EXPECT_THAT(answers(dataset.examples[0]), ElementsAre("b"));
  EXPECT_THAT(answers(dataset.examples[1]), ElementsAre());
  const auto flat = read("y.json", R"({"data": [{"id": "1", "question": "b?", "context": "A b",
    "answers": {"text": ["b"], "answer_start": [2]}}]})");
  EXPECT_THAT(answers(flat.examples[0]), ElementsAre("b"));
  EXPECT_FALSE(flat.scheme.has_unanswered);
}

TEST_F(QuestionsTest, WithoutAnswers) {
  const DatasetOptions bare = {.labels = LabelUse::ignored};
  const auto dataset = read("x.jsonl", R"({"question": "Who?", "context": "Zoë."})", bare);
  EXPECT_EQ(dataset.scheme.problem, ProblemType::unlabelled);
  EXPECT_EQ(*dataset.examples[0].text_pair, "Zoë.");
  EXPECT_EQ(*read("x.csv", "question,context\nWho?,Zoë.\n", bare).examples[0].text_pair, "Zoë.");
}

TEST_F(QuestionsTest, ColumnsAskedFor) {
  const auto dataset =
      read("x.jsonl", R"({"q": "b?", "c": "A b", "a": {"text": ["b"], "answer_start": [2]}})",
           {.text_column = "q", .text_pair_column = "c", .label_columns = {"a"}});
  EXPECT_THAT(answers(dataset.examples[0]), ElementsAre("b"));
}

TEST_F(QuestionsTest, FaultsNameThePlace) {
  const auto row = [](const std::string& answers) {
    return R"({"question": "q", "context": "Zoë Ngo sang.", "answers": )" + answers + "}\n";
  };
  const std::string good = row(R"({"text": ["Zoë"], "answer_start": [0]})");
  EXPECT_THAT(error("x.jsonl", good + row(R"({"text": ["Ann"], "answer_start": [0]})")),
              HasSubstr("x.jsonl:2: the answer 'Ann' does not stand at character 0 of the context "
                        "- the context does not hold it"));
  EXPECT_THAT(error("x.jsonl", good + row(R"({"text": ["Ngo"], "answer_start": [5]})")),
              HasSubstr("answer_start counts the characters before it, not bytes"));
  EXPECT_THAT(error("x.jsonl", row(R"({"text": ["Ngo"], "answer_start": [99]})")),
              HasSubstr("does not stand at character 99"));
  EXPECT_THAT(error("x.jsonl", row(R"({"text": ["Ngo"], "answer_start": [-1]})")),
              HasSubstr("an answer is no text with its place"));
  EXPECT_THAT(error("x.jsonl", row(R"({"text": ["Ngo"], "answer_start": []})")),
              HasSubstr("has no texts with as many places"));
  EXPECT_THAT(error("x.jsonl", R"({"question": "q", "context": "c"})"),
              HasSubstr("x.jsonl:1: the field 'answers' is missing"));
  EXPECT_THAT(error("x.jsonl", R"({"question": " ", "context": "c", "answers": []})"),
              HasSubstr("the field 'question' is empty"));
  EXPECT_THAT(error("x.json", R"({"data": [{"paragraphs": [{"context": "c", "qas": 3}]}]})"),
              HasSubstr("x.json: data[0].paragraphs[0]: has no list 'qas'"));
  EXPECT_THAT(error("x.tsv", "question\tcontext\n"), HasSubstr("no file of questions"));
}

}  // namespace
}  // namespace ferry
