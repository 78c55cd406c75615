// Rows of words with a tag each: lists in JSONL, CoNLL files, and what is wrong with such files.

#include <gmock/gmock.h>

#include "src/data/read/reader.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WordsTest : public ::testing::Test {
 protected:
  Dataset read(std::string_view name, std::string_view text, DatasetOptions options = {}) {
    options.path = dir_.write(name, text);
    options.rows = RowForm::words;
    return read_dataset(options);
  }
  Dataset read_known(std::string_view name, std::string_view text, std::vector<std::string> tags) {
    const DatasetOptions options = {.path = dir_.write(name, text), .rows = RowForm::words};
    return read_dataset(options,
                        {.problem = ProblemType::tags, .labels = LabelMap(std::move(tags))});
  }
  std::string error(std::string_view name, std::string_view text, DatasetOptions options = {}) {
    return test::error_of([&] { read(name, text, options); });
  }

  test::TempDir dir_;
};

std::vector<std::string> words(const Example& example) {
  std::vector<std::string> words;
  for (const TextRange& word : example.words)
    words.emplace_back(part_of(example.text, word));
  return words;
}

TEST_F(WordsTest, ListsOfJsonl) {
  const auto dataset =
      read("x.jsonl", R"({"id": 1, "tokens": ["EU", "rejects"], "ner_tags": ["B-ORG", "O"]})"
                      "\n"
                      R"({"id": 2, "tokens": ["Zoë Ngo"], "ner_tags": ["B-PER"]})"
                      "\n");
  ASSERT_EQ(dataset.examples.size(), 2u);
  EXPECT_EQ(dataset.examples[0].text, "EU rejects");
  EXPECT_THAT(words(dataset.examples[0]), ElementsAre("EU", "rejects"));
  EXPECT_THAT(words(dataset.examples[1]), ElementsAre("Zoë Ngo"));
  EXPECT_EQ(dataset.scheme.problem, ProblemType::tags);
  EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("B-ORG", "B-PER", "O"));
  EXPECT_THAT(dataset.examples[0].label.tags, ElementsAre(0, 2));
  EXPECT_THAT(dataset.notes,
              Contains(HasSubstr("words are column 'tokens', tags are column 'ner_tags'")));
  EXPECT_THAT(dataset.notes, Contains("3 tags: B-ORG, B-PER, O"));
}

TEST_F(WordsTest, ColumnsAskedForAndNumbersAsTags) {
  const std::string text = R"([{"w": ["a", "b"], "pos": [10, 2]}, {"w": ["c"], "pos": [2]}])";
  const auto dataset = read("x.json", text, {.text_column = "w", .label_columns = {"pos"}});
  EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("2", "10"));
  EXPECT_THAT(dataset.examples[0].label.tags, ElementsAre(1, 0));
  const auto by_number = read("x.json", text, {.text_column = "0", .label_columns = {"1"}});
  EXPECT_EQ(by_number.examples.size(), 2u);
  EXPECT_THAT(error("x.json", text), HasSubstr("none is plainly the list of words"));
  EXPECT_THAT(test::error_of(
                  [&] { read("x.json", text, {.text_column = "words", .label_columns = {"pos"}}); },
                  Fault::usage),
              HasSubstr("has the keys w, pos"));
}

TEST_F(WordsTest, NumbersStandForTheTagsOfAModel) {
  const auto dataset = read_known("x.jsonl", R"({"tokens": ["a", "b"], "ner_tags": [1, 0]})",
                                  {"O", "B-PER", "I-PER"});
  EXPECT_THAT(dataset.examples[0].label.tags, ElementsAre(1, 0));
  EXPECT_EQ(dataset.scheme.labels.size(), 3);
  EXPECT_THAT(test::error_of([&] {
                read_known("y.jsonl", R"({"tokens": ["a"], "ner_tags": ["B-LOC"]})", {"O", "B"});
              }),
              HasSubstr("y.jsonl:1: the tag 'B-LOC' is unknown, expected one of: O, B"));
}

TEST_F(WordsTest, Conll) {
  const auto dataset = read("x.conll",
                            "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\r\nrejects VBZ B-VP O\n \n"
                            "\nPeter NNP B-NP B-PER\n");
  ASSERT_EQ(dataset.examples.size(), 2u);
  EXPECT_THAT(words(dataset.examples[0]), ElementsAre("EU", "rejects"));
  EXPECT_THAT(words(dataset.examples[1]), ElementsAre("Peter"));
  EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("B-ORG", "B-PER", "O"));
  const auto pos = read("y.iob2", "0\tNew York\tPROPN\t_\n1\tsleeps\tVERB\t_\n",
                        {.text_column = "1", .label_columns = {"2"}});
  EXPECT_THAT(words(pos.examples[0]), ElementsAre("New York", "sleeps"));
  EXPECT_THAT(pos.scheme.labels.names(), ElementsAre("PROPN", "VERB"));
}

TEST_F(WordsTest, WithoutTags) {
  const DatasetOptions bare = {.labels = LabelUse::ignored};
  EXPECT_THAT(words(read("x.conll", "Peter\nsleeps O\n", bare).examples[0]),
              ElementsAre("Peter", "sleeps"));
  const auto dataset =
      read("x.jsonl", "{\"tokens\": [\"a\", \"b\"]}\n{\"tokens\": \"whole text\"}\n", bare);
  EXPECT_THAT(words(dataset.examples[0]), ElementsAre("a", "b"));
  EXPECT_EQ(dataset.examples[1].text, "whole text");
  EXPECT_EQ(dataset.scheme.problem, ProblemType::unlabelled);
  EXPECT_EQ(read("x.txt", "one line\nanother\n", bare).examples.size(), 2u);
}

TEST_F(WordsTest, FaultsNameTheLine) {
  const std::string good = R"({"tokens": ["a", "b"], "tags": ["O", "B-X"]})"
                           "\n";
  const auto of_second = [&](const std::string& row) { return error("x.jsonl", good + row); };
  EXPECT_THAT(of_second(R"({"tokens": ["a", "b"], "tags": ["O"]})"),
              HasSubstr("x.jsonl:2: 'tokens' has 2 words, and 'tags' 1 tags"));
  EXPECT_THAT(of_second(R"({"tokens": [], "tags": []})"),
              HasSubstr("x.jsonl:2: the row has no words"));
  EXPECT_THAT(of_second(R"({"tokens": ["a", " "], "tags": ["O", "O"]})"),
              HasSubstr("x.jsonl:2: word 2 of the row is empty"));
  EXPECT_THAT(of_second(R"({"tokens": "a b", "tags": ["O", "O"]})"),
              HasSubstr("x.jsonl:2: the field 'tokens' is not a list"));
  EXPECT_THAT(of_second(R"({"tokens": ["a"], "tags": [null]})"),
              HasSubstr("x.jsonl:2: 'tags' has null, which is not a tag"));
  EXPECT_THAT(of_second(R"({"tokens": ["a"]})"),
              HasSubstr("x.jsonl:2: the field 'tags' is missing"));
  EXPECT_THAT(of_second(R"({"tokens": ["a"], "tags": ["\u0007"]})"),
              HasSubstr("has control characters in it"));
  EXPECT_THAT(error("x.conll", "EU B-ORG\nrejects\n"),
              HasSubstr("x.conll:2: the word 'rejects' has no tag"));
  EXPECT_THAT(error("x.conll", "EU O\nrejects O\n"), HasSubstr("has the one tag 'O'"));
  EXPECT_THAT(error("x.conll", "\n\n"), HasSubstr("has no examples"));
  EXPECT_THAT(error("x.tsv", "a\tb\n"), HasSubstr("no file of words with a tag each"));
}

TEST_F(WordsTest, OtherTasksSayWhatReadsConll) {
  EXPECT_THAT(test::error_of([&] { read_dataset({.path = dir_.write("x.conll", "EU B-ORG\n")}); },
                             Fault::usage),
              HasSubstr("task = token-classification"));
}

}  // namespace
}  // namespace ferry
