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
  EXPECT_THAT(of_second(R"({"tokens": ["a", " "], "tags": ["O", "O"]})"),
              HasSubstr("x.jsonl:2: word 2 of the row is empty"));
  EXPECT_THAT(of_second(R"({"tokens": "a b", "tags": ["O", "O"]})"),
              HasSubstr("x.jsonl:2: the field 'tokens' is not a list"));
  EXPECT_THAT(of_second(R"({"tokens": ["a"], "tags": [0.5]})"),
              HasSubstr("x.jsonl:2: 'tags' has 0.5, which is not a tag"));
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

TEST_F(WordsTest, WordsWithoutATag) {
  // As torch, the hub and JSON say that there is none.
  for (const std::string none : {"-100", "-1", "null", "\"\""}) {
    const auto dataset =
        read("x.jsonl", R"({"tokens": ["a", "b", "c"], "ner_tags": [0, )" + none + R"(, 1]})");
    EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("0", "1")) << none;
    EXPECT_THAT(dataset.examples[0].label.tags, ElementsAre(0, -1, 1)) << none;
  }
  // Beside other numbers below 0 it is one of them.
  EXPECT_THAT(read("x.jsonl", R"({"tokens": ["a", "b", "c"], "ner_tags": [-2, -1, 1]})")
                  .scheme.labels.names(),
              ElementsAre("-2", "-1", "1"));
  EXPECT_THAT(error("x.jsonl", R"({"tokens": ["a"], "ner_tags": [-100]})"),
              HasSubstr("no word of '"));
  const auto empty = read("x.jsonl",
                          "{\"tokens\": [], \"tags\": []}\n"
                          "{\"tokens\": [\"a\", \"b\"], \"tags\": [\"O\", \"B-X\"]}\n");
  EXPECT_EQ(empty.examples.size(), 1u);
  EXPECT_THAT(empty.notes, Contains("1 row without words is passed over"));
}

TEST_F(WordsTest, NamesOfTagsThatAreNumbers) {
  const std::string rows = R"({"tokens": ["a", "b"], "ner_tags": [1, 0]})";
  const auto bare = read("x.jsonl", rows);
  EXPECT_THAT(bare.notes, Contains(HasSubstr("no tag begins with B- or I-")));
  const DatasetOptions asked = {.label_names = {"O", "B-PER", "I-PER"}};
  const auto named = read("x.jsonl", rows, asked);
  EXPECT_THAT(named.scheme.labels.names(), ElementsAre("O", "B-PER", "I-PER"));
  EXPECT_THAT(named.examples[0].label.tags, ElementsAre(1, 0));
  EXPECT_THAT(error("y.jsonl", R"({"tokens": ["a"], "ner_tags": [3]})", asked),
              HasSubstr("y.jsonl:1: the tag 3 has no name, there are 3"));
  // As save_to_disk of the datasets library writes them beside the data.
  dir_.write("d/dataset_info.json",
             R"({"features": {"ner_tags": {"feature": {"names": ["O", "B-LOC"], "_type":
             "ClassLabel"}, "_type": "List"}}})");
  const auto beside = read("d/x.jsonl", rows);
  EXPECT_THAT(beside.scheme.labels.names(), ElementsAre("O", "B-LOC"));
  EXPECT_THAT(beside.examples[0].label.tags, ElementsAre(1, 0));
}

TEST_F(WordsTest, CommentsOfConllFiles) {
  const auto multi = read("x.conll",
                          "# id 5239\tdomain=en\nAnn _ _ B-PER\nlives _ _ O\n\n"
                          "# id 77f0\tdomain=en\nBob _ _ B-PER\n#sat _ _ O\n");
  EXPECT_THAT(words(multi.examples[0]), ElementsAre("Ann", "lives"));
  EXPECT_THAT(words(multi.examples[1]), ElementsAre("Bob", "#sat"));
  EXPECT_THAT(multi.scheme.labels.names(), ElementsAre("B-PER", "O"));
  EXPECT_THAT(multi.notes, Contains(HasSubstr("2 comments before sentences are passed over")));
  // A hashtag is a word, also where a sentence begins with it.
  const auto tweets = read("x.conll", "a O\n# O\nb B-X\n\n# O\nc O\n");
  EXPECT_THAT(words(tweets.examples[0]), ElementsAre("a", "#", "b"));
  EXPECT_THAT(words(tweets.examples[1]), ElementsAre("#", "c"));
}

TEST_F(WordsTest, FurtherColumnsOfConllFiles) {
  const std::string rest = "\t_\t_\t0\t_\t_\tSpaceAfter=No\n";
  const auto ud = read("x.conllu", "# sent_id = 1\n# text = Du chat a b c d e f\n1-2\tDu\t_\t_" +
                                       rest + "1\tDe\tde\tADP" + rest + "2\tle\tle\tDET" + rest +
                                       "2.1\tx\tx\tVERB" + rest + "3\tchat\tchat\t_" + rest);
  EXPECT_THAT(words(ud.examples[0]), ElementsAre("De", "le", "chat"));
  EXPECT_THAT(ud.scheme.labels.names(), ElementsAre("ADP", "DET"));
  EXPECT_THAT(ud.examples[0].label.tags, ElementsAre(0, 1, -1));
  EXPECT_THAT(ud.notes, Contains(HasSubstr("words are column 1, tags are column 3 of CoNLL-U")));
  const auto usage_error = [&](std::string_view text) {
    return test::error_of([&] { read("x.conll", text); }, Fault::data);
  };
  EXPECT_THAT(usage_error("1\tAnn\tB-PER\tO\n2\tsat\tO\tO\n"), HasSubstr("column 0 of"));
  EXPECT_THAT(usage_error("d/1 0 Ann B\nd/1 1 sat O\nd/1 2 up O\n"),
              HasSubstr("is the same in each line of a sentence"));
}

TEST_F(WordsTest, OtherTasksSayWhatReadsConll) {
  EXPECT_THAT(test::error_of([&] { read_dataset({.path = dir_.write("x.conll", "EU B-ORG\n")}); },
                             Fault::usage),
              HasSubstr("task = token-classification"));
}

}  // namespace
}  // namespace ferry
