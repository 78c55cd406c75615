// Columns, labels and rows that would change what is trained if they were left out or taken for
// something else: each is read, passed over and counted, or refused with the way out.

#include <gmock/gmock.h>

#include "src/data/read/reader.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class MeaningTest : public ::testing::Test {
 protected:
  Dataset read(std::string_view name, std::string_view text, DatasetOptions options = {}) {
    options.path = dir_.write(name, text);
    return read_dataset(options);
  }
  /** For a language model. */
  Dataset documents(std::string_view name, std::string_view text, DatasetOptions options = {}) {
    options.rows = RowForm::documents;
    options.labels = LabelUse::ignored;
    return read(name, text, options);
  }
  std::string error(std::string_view text, DatasetOptions options = {}) {
    return test::error_of([&] { documents("x.jsonl", text, options); });
  }

  test::TempDir dir_;
};

std::vector<std::string> texts_in(const Dataset& dataset) {
  std::vector<std::string> all;
  for (const Example& example : dataset.examples)
    all.push_back(example.text + (example.text_pair ? "|" + *example.text_pair : ""));
  return all;
}

std::vector<int32_t> classes_in(const Dataset& dataset) {
  std::vector<int32_t> all;
  for (const Example& example : dataset.examples)
    all.push_back(example.label.class_id);
  return all;
}

TEST_F(MeaningTest, AnInstructionsInputStandsBelowIt) {
  const auto alpaca = documents("x.jsonl", R"({"instruction": "Add.", "output": "5", "id": "7"}
{"instruction": "Add.", "input": "2 and 3", "output": "5", "system": "", "history": []}
{"instruction": "Name one.", "input": "", "output": "red"}
)");
  EXPECT_THAT(texts_in(alpaca), ElementsAre("Add.|5", "Add.\n2 and 3|5", "Name one.|red"));
  EXPECT_THAT(alpaca.notes, Contains(HasSubstr("1 of 3 rows have a text of input or context below "
                                               "that of 'instruction'")));
  EXPECT_THAT(alpaca.notes, Contains(HasSubstr("not read: 'id'")));
  const auto table = documents("x.csv", "output,Input,instruction\n5,2 and 3,Add.\nred,,Name.\n");
  EXPECT_THAT(texts_in(table), ElementsAre("Add.\n2 and 3|5", "Name.|red"));
  EXPECT_THAT(table.notes, Contains(HasSubstr("'instruction' and, a line below, column 'Input' "
                                              "with column 'output'")));
  const auto dolly =
      documents("x.jsonl", R"({"instruction": "Who?", "context": "Ann sat.", "response": "Ann"})");
  EXPECT_THAT(texts_in(dolly), ElementsAre("Who?\nAnn sat.|Ann"));
  const auto answers = documents(
      "x.jsonl", R"({"question": "Who?", "answer": "Ann", "context": "Ann sat.", "id": 1})");
  EXPECT_THAT(texts_in(answers), ElementsAre("Who?\nAnn sat.|Ann"));
}

TEST_F(MeaningTest, SeveralTextColumnsAreAskedFor) {
  const DatasetOptions options = {.text_column = "title,body", .label_columns = {"y"}};
  EXPECT_THAT(texts_in(read("x.csv", "y,title,body\n1,A,b\n0,C,\n", options)),
              ElementsAre("A\nb", "C"));
  EXPECT_THAT(texts_in(read("x.jsonl", R"({"y": 1, "title": "A", "body": "b"}
{"y": 0, "title": "C", "body": null})",
                            options)),
              ElementsAre("A\nb", "C"));
  // A column whose own name has a comma.
  EXPECT_THAT(texts_in(read("x.csv", "y,\"title,body\"\n1,A\n0,C\n", options)),
              ElementsAre("A", "C"));
}

TEST_F(MeaningTest, WhatChangesAPromptIsRefused) {
  const std::string first = "{\"instruction\": \"a\", \"output\": \"b\"}\n";
  EXPECT_THAT(error(first + R"({"instruction": "a", "output": "b", "system": "Be brief."})"),
              AllOf(HasSubstr("x.jsonl:2: column 'system' holds a system prompt"),
                    HasSubstr("--chat-template model")));
  EXPECT_THAT(error(first + R"({"instruction": "a", "output": "b", "history": [["q", "r"]]})"),
              HasSubstr("x.jsonl:2: column 'history' holds earlier turns"));
  EXPECT_THAT(error(R"({"prompt": "a", "completion": "b", "label": true})"),
              HasSubstr("says which completions are good (KTO)"));
  const std::string preference = R"({"prompt": "a", "chosen": "b", "rejected": "c"})";
  EXPECT_THAT(error(preference),
              AllOf(HasSubstr("'chosen' has answers that are compared (DPO, reward models)"),
                    HasSubstr("--text-column prompt --text-pair-column chosen")));
  const auto asked =
      documents("x.jsonl", preference, {.text_column = "prompt", .text_pair_column = "chosen"});
  EXPECT_THAT(texts_in(asked), ElementsAre("a|b"));
  EXPECT_THAT(asked.notes, Contains(HasSubstr("not read: 'rejected'")));
  EXPECT_THAT(test::error_of([&] { documents("x.csv", "prompt,chosen,rejected\na,b,c\n"); }),
              HasSubstr("x.csv:2: column 'chosen' has answers that are compared"));
}

TEST_F(MeaningTest, RowsOfTurnsAreChats) {
  const std::string turns =
      R"([{"from": "human", "value": "a"}, {"role": "assistant", "content": "b"}])";
  const std::string packed =
      R"({"turns":[{"role":"user","text":"a"},{"role":"assistant","text":"b"}]})";
  for (const std::string& row :
       {"{\"messages\": " + turns + "}", "{\"id\": 1, \"conversations\": " + turns + "}",
        "{\"prompt\": \"a\", \"messages\": " + turns + "}"}) {
    const auto chats = documents("x.jsonl", row);
    EXPECT_THAT(texts_in(chats), ElementsAre(packed)) << row;
    EXPECT_TRUE(chats.examples.front().is_chat) << row;
  }
  const auto named =
      documents("x.jsonl", "{\"a\": " + turns + ", \"b\": " + turns + "}", {.text_column = "b"});
  EXPECT_THAT(named.notes, Contains(HasSubstr("chats of 'b'")));
  EXPECT_THAT(named.notes, Contains(HasSubstr("not read: 'a'")));
  // A list in a .json file has the same.
  EXPECT_THAT(texts_in(documents("x.json", "[{\"messages\": " + turns + "}]")),
              ElementsAre(packed));
}

TEST_F(MeaningTest, FaultsOfChatsNameTheirRow) {
  const std::string good =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
      "\n";
  EXPECT_THAT(error(good + R"({"messages": [{"role": "user", "content": "a"}]})"),
              HasSubstr("x.jsonl:2: there is no answer to learn"));
  EXPECT_THAT(error(good + R"({"text": "a"})"), HasSubstr("x.jsonl:2: the field 'messages'"));
  EXPECT_THAT(error(R"({"chosen": [{"role": "user", "content": "a"}], "rejected": []})"),
              HasSubstr("'chosen' has answers that are compared"));
  const std::string two = R"([{"role": "user", "content": "a"}])";
  EXPECT_THAT(error("{\"a\": " + two + ", \"b\": " + two + "}"),
              AllOf(HasSubstr("'a' holds a chat, which is not read as a text"),
                    HasSubstr("--text-column a")));
}

TEST_F(MeaningTest, PromptsAreChatsWhereATemplateIsNamed) {
  const std::string row =
      R"({"instruction": "a", "output": "b", "system": "S", "history": [["q", "r"]]})";
  const auto chats = documents("x.jsonl", row, {.prompts_are_chats = true});
  EXPECT_THAT(texts_in(chats),
              ElementsAre(R"({"turns":[{"role":"system","text":"S"},{"role":"user","text":"q"},)"
                          R"({"role":"assistant","text":"r"},{"role":"user","text":"a"},)"
                          R"({"role":"assistant","text":"b"}]})"));
}

TEST_F(MeaningTest, RowsWithoutATextArePassedOver) {
  const auto wiki = documents("x.jsonl", R"({"text": ""}
{"text": " = Title = "}
{"text": null}
{"text": "a cat"}
)");
  EXPECT_THAT(texts_in(wiki), ElementsAre(" = Title = ", "a cat"));
  EXPECT_THAT(wiki.notes,
              Contains(AllOf(HasSubstr("2 rows without a text are passed over, the first is"),
                             HasSubstr("x.jsonl:1"))));
  EXPECT_THAT(error("{\"text\": \"\"}\n"), HasSubstr("has no examples: 1 rows have no text"));
  const auto pairs = read("x.csv", "sentence1,sentence2,label\na,b,1\nc,,0\nd,e,0\n");
  EXPECT_THAT(texts_in(pairs), ElementsAre("a|b", "d|e"));
  // Each row of data that is to be answered has its answer.
  const DatasetOptions predicting = {.labels = LabelUse::ignored, .keeps_empty = true};
  EXPECT_THAT(texts_in(read("x.csv", "text\na\n\"\"\nb\n", predicting)), ElementsAre("a", "", "b"));
}

TEST_F(MeaningTest, LabelsThatSayThatThereIsNone) {
  const auto csv = read("x.csv", "text,label\na,0\nb,-1\nc,1\nd,2\ne,-100\nf,\n");
  EXPECT_THAT(csv.scheme.labels.names(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(classes_in(csv), ElementsAre(0, 1, 2));
  EXPECT_THAT(csv.notes, Contains(HasSubstr("1 row labelled -1 has no label")));
  EXPECT_THAT(csv.notes, Contains(HasSubstr("1 row labelled -100 has no label")));
  EXPECT_THAT(csv.notes, Contains(HasSubstr("1 row without a label is passed over")));
  // Three classes from -1, or two and rows without a label: only the user knows.
  const std::string sides = "text,label\na,0\nb,-1\nc,1\n";
  EXPECT_THAT(test::error_of([&] { read("x.csv", sides); }),
              AllOf(HasSubstr("x.csv:3: the label is -1, others are 0 and 1"),
                    HasSubstr("label_names = -1,0,1")));
  EXPECT_THAT(classes_in(read("x.csv", sides, {.label_names = {"-1", "0", "1"}})),
              ElementsAre(1, 0, 2));
  EXPECT_THAT(classes_in(read("x.csv", sides, {.label_names = {"no", "yes"}})), ElementsAre(0, 1));
  EXPECT_THAT(read("x.csv", "text,label\na,-1\nb,1\n").scheme.labels.names(),
              ElementsAre("-1", "1"));
  EXPECT_THAT(test::error_of([&] { read("x.csv", "text,label\na,-100\nb,-100\n"); }),
              HasSubstr("has no labels: all 2 rows are labelled -100"));
  EXPECT_EQ(read("x.csv", "text,label\na,-1\nb,0.5\n").examples.size(), 2u);  // a regression
}

TEST_F(MeaningTest, ListsWithA0Or1ForEveryLabel) {
  const std::string rows = R"({"text": "a", "labels": [1.0, 0.0, 0.0]}
{"text": "b", "labels": [0.0, 0.0, 0.0]}
{"text": "c", "labels": [0.0, 1.0, 1.0]}
)";
  const auto hot = read("x.jsonl", rows);
  EXPECT_EQ(hot.scheme.problem, ProblemType::multi_label);
  EXPECT_THAT(hot.scheme.labels.names(), ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(hot.examples[0].label.classes, ElementsAre(0));
  EXPECT_THAT(hot.examples[1].label.classes, ElementsAre());
  EXPECT_THAT(hot.examples[2].label.classes, ElementsAre(1, 2));
  const auto named = read("x.jsonl", rows, {.label_names = {"x", "y", "z"}});
  EXPECT_THAT(named.scheme.labels.names(), ElementsAre("x", "y", "z"));
  const auto eval = read_dataset(
      {.path = dir_.write("e.jsonl", "{\"text\": \"a\", \"labels\": [0, 1, 1]}\n")}, named.scheme);
  EXPECT_THAT(eval.examples[0].label.classes, ElementsAre(1, 2));
  EXPECT_THAT(test::error_of([&] {
                read("x.jsonl", rows, {.label_names = {"x", "y"}});
              }),
              HasSubstr("have a 0 or 1 for 3 labels, expected 2: x, y"));
  EXPECT_THAT(
      test::error_of([&] { read("x.jsonl", rows + "{\"text\": \"d\", \"labels\": [0, 0]}\n"); }),
      HasSubstr("x.jsonl:1: the list has the label 0 or 1 twice"));
  // Names that are numbers stay names.
  EXPECT_THAT(read("x.jsonl",
                   "{\"text\": \"a\", \"labels\": [0, 3]}\n"
                   "{\"text\": \"b\", \"labels\": [1]}\n")
                  .scheme.labels.names(),
              ElementsAre("0", "1", "3"));
}

TEST_F(MeaningTest, NamesOfLabelsThatAreNumbers) {
  const std::string rows = "text,label\na,0\nb,1\nc,1\n";
  EXPECT_THAT(read("x.csv", rows, {.label_names = {"neg", "pos", "mixed"}}).scheme.labels.names(),
              ElementsAre("neg", "pos", "mixed"));
  EXPECT_THAT(test::error_of([&] { read("x.csv", rows, {.label_names = {"neg"}}); }),
              HasSubstr("x.csv:3: the label '1' has no name"));
  const std::string info =
      R"({"features": {"label": {"names": ["1 star", "2"], "_type": "ClassLabel"}}})";
  dir_.write("d/dataset_info.json", info);
  const auto beside = read("d/x.csv", rows);
  EXPECT_THAT(beside.scheme.labels.names(), ElementsAre("1 star", "2"));
  EXPECT_THAT(classes_in(beside), ElementsAre(0, 1, 1));
  // The only configuration's, above a folder data.
  dir_.write("h/dataset_infos.json", "{\"default\": " + info + "}");
  EXPECT_THAT(read("h/data/x.jsonl",
                   "{\"text\": \"a\", \"label\": 1}\n"
                   "{\"text\": \"b\", \"label\": 0}\n"
                   "{\"text\": \"c\", \"label\": -1}\n")
                  .scheme.labels.names(),
              ElementsAre("1 star", "2"));
  // The page of a data set, at the top of what a hub's client has fetched; any other page is text.
  const std::string page =
      "---\ndataset_info:\n  features:\n  - name: label\n    dtype:\n      class_label:\n"
      "        names:\n          '0': bad\n          '1': good\n---\n# A page\n";
  dir_.write("hub/snapshots/abc/README.md", page);
  EXPECT_THAT(read("hub/snapshots/abc/en/rows/x.csv", rows).scheme.labels.names(),
              ElementsAre("bad", "good"));
  dir_.write("p/README.md", page);
  EXPECT_THAT(read("p/data/x.csv", rows).scheme.labels.names(), ElementsAre("bad", "good"));
  EXPECT_THAT(read("p/far/off/x.csv", rows).scheme.labels.names(), ElementsAre("0", "1"));
  for (const char* other : {"# My data\n", "---\n: [\n---\n", "---\ndataset_info: 5\n---\n"}) {
    dir_.write("q/README.md", other);
    EXPECT_THAT(read("q/x.csv", rows).scheme.labels.names(), ElementsAre("0", "1")) << other;
  }
  // Another program's file of that name says nothing of labels.
  dir_.write("l/dataset_info.json", R"({"mine": {"file_name": "x.csv"}})");
  EXPECT_THAT(read("l/x.csv", rows).scheme.labels.names(), ElementsAre("0", "1"));
}

TEST_F(MeaningTest, UnbalancedLabelsAreSaid) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 60; ++i)
    rows += "a text,ham\n";
  const auto uneven = read("x.csv", rows + "buy,spam\n");
  EXPECT_THAT(uneven.notes, Contains("rows by label: ham 60, spam 1"));
  EXPECT_THAT(uneven.notes, Contains(HasSubstr("'spam' has 1 of 61 rows: go by f1_macro")));
  EXPECT_TRUE(uneven.scheme.is_unbalanced);
  const auto even = read("x.csv", "text,label\na,ham\nb,ham\nc,spam\n");
  EXPECT_FALSE(even.scheme.is_unbalanced);
  EXPECT_THAT(even.notes, Not(Contains(HasSubstr("unbalanced"))));
}

}  // namespace
}  // namespace ferry
