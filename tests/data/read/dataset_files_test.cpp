#include "src/data/read/dataset_files.h"

#include <gmock/gmock.h>

#include "src/data/read/reader.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::TempDir;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class DatasetFilesTest : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return dir_.path() / name; }
  Dataset read(const std::string& name, DatasetOptions options = {}) {
    options.path = name;
    return read_dataset(options);
  }
  std::string error(const std::string& name, DatasetOptions options = {}) {
    return error_of([&] { read(name, options); }, Fault::data);
  }

  static std::vector<std::string> texts(const Dataset& dataset) {
    std::vector<std::string> result;
    for (const Example& example : dataset.examples)
      result.push_back(example.text);
    return result;
  }

  TempDir dir_;
};

constexpr const char* kOne = "{\"text\": \"one\", \"label\": \"a\"}\n";
constexpr const char* kTwo = "{\"text\": \"two\", \"label\": \"b\"}\n";

TEST_F(DatasetFilesTest, PatternsAreSortedByBytes) {
  for (const char* name : {"b.jsonl", "a.jsonl", "B.jsonl", ".hidden.jsonl", "a.txt"})
    dir_.write(name, kOne);
  EXPECT_THAT(dataset_files(at("*.jsonl")),
              ElementsAre(at("B.jsonl"), at("a.jsonl"), at("b.jsonl")));
  EXPECT_THAT(dataset_files(at("[ab].jsonl")), ElementsAre(at("a.jsonl"), at("b.jsonl")));
  EXPECT_THAT(dataset_files(at("b.jsonl") + ", " + at("a.*")),
              ElementsAre(at("b.jsonl"), at("a.jsonl"), at("a.txt")));
}

TEST_F(DatasetFilesTest, NamesThatExistAreThemselves) {
  dir_.write("a,b*.jsonl", kOne);
  EXPECT_THAT(dataset_files(at("a,b*.jsonl")), ElementsAre(at("a,b*.jsonl")));
  EXPECT_THAT(dataset_files(at("none.jsonl")), ElementsAre(at("none.jsonl")));
}

TEST_F(DatasetFilesTest, NothingMatches) {
  EXPECT_THAT(error(at("*.jsonl")), AllOf(HasSubstr("no file matches"), HasSubstr("*.jsonl")));
  dir_.write("a.jsonl", kOne);
  EXPECT_THAT(error(at("a.jsonl") + "," + at("b*.jsonl")), HasSubstr("no file matches"));
  EXPECT_THAT(error(at("a.jsonl") + "," + at("b.jsonl")),
              AllOf(HasSubstr("b.jsonl' does not exist")));
  EXPECT_THAT(error(at("a.jsonl") + "," + at("*.jsonl")), HasSubstr("twice"));
}

TEST_F(DatasetFilesTest, AbsoluteNames) {
  EXPECT_THAT(absolute_dataset("x/../*.jsonl,b.jsonl"),
              AllOf(HasSubstr("/*.jsonl,/"), EndsWith("/b.jsonl")));
  EXPECT_EQ(absolute_dataset("/x/*.jsonl"), "/x/*.jsonl");
}

TEST_F(DatasetFilesTest, RowsOfAllFiles) {
  dir_.write("2.jsonl", kTwo);
  dir_.write("1.jsonl", kOne);
  const Dataset dataset = read(at("*.jsonl"));
  EXPECT_THAT(texts(dataset), ElementsAre("one", "two"));
  EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("a", "b"));
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("2 files")));
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("1.jsonl: text is column 'text'")));
}

TEST_F(DatasetFilesTest, FaultsNameTheFile) {
  dir_.write("1.jsonl", kOne);
  dir_.write("2.jsonl", std::string(kTwo) + "{\"text\": 1, \"label\": \"a\"}\n");
  EXPECT_THAT(error(at("*.jsonl")), HasSubstr("2.jsonl:2: the field 'text' is not a text"));
  dir_.write("2.jsonl", std::string(kTwo) + "{\"text\": \"x\"}\n");
  EXPECT_THAT(error(at("*.jsonl")), HasSubstr("2.jsonl:2: the field 'label' is missing"));
  dir_.write("2.jsonl", "");
  EXPECT_THAT(error(at("*.jsonl")), HasSubstr("2.jsonl' has no examples"));
}

TEST_F(DatasetFilesTest, FilesOfOneForm) {
  dir_.write("1.jsonl", kOne);
  dir_.write("2.csv", "text,label\ntwo,b\n");
  EXPECT_THAT(error(at("*")), HasSubstr("are of two formats"));
  dir_.write("3.csv", "label,body\nb,two\n");
  EXPECT_THAT(error(at("*.csv")), AllOf(HasSubstr("different columns"), HasSubstr("3.csv")));
  dir_.write("folder/x.txt", "one");
  EXPECT_THAT(error(at("1.jsonl") + "," + at("folder")), HasSubstr("is a directory among"));
}

TEST_F(DatasetFilesTest, HeadersOfLaterFiles) {
  std::string rows;
  for (int i = 0; i < 10; ++i)
    rows += i % 2 ? "good film\tpos\n" : "bad film\tneg\n";
  dir_.write("1.tsv", rows);
  dir_.write("2.tsv", "Was\tArt\n" + rows);
  EXPECT_THAT(error(at("*.tsv")), HasSubstr("2.tsv:1: is 'Was, Art' a header or an example?"));
}

TEST_F(DatasetFilesTest, WordsAndQuestions) {
  DatasetOptions words{.rows = RowForm::words};
  dir_.write("1.conll", "EU B-ORG\nsays O\n");
  dir_.write("2.conll", "Ann B-PER\n\nBob\n");
  EXPECT_THAT(error(at("*.conll"), words), HasSubstr("2.conll:3: the word 'Bob' has no tag"));
  dir_.write("2.conll", "Ann B-PER\n");
  EXPECT_THAT(texts(read(at("*.conll"), words)), ElementsAre("EU says", "Ann"));

  const std::string question =
      R"({"question": "Who?", "context": "Ann.", "answers": {"text": ["Ann"], "answer_start": [0]}})";
  dir_.write("1.jsonl", question);
  dir_.write("2.jsonl", question + "\n{}\n");
  DatasetOptions questions{.rows = RowForm::questions};
  EXPECT_THAT(error(at("*.jsonl"), questions), HasSubstr("2.jsonl:2: "));
  dir_.write("2.jsonl", question);
  EXPECT_EQ(read(at("*.jsonl"), questions).examples.size(), 2u);
}

TEST_F(DatasetFilesTest, DocumentsOfSeveralFiles) {
  dir_.write("1.txt", "first\nline");
  dir_.write("2.txt", "second");
  DatasetOptions options{.rows = RowForm::documents, .labels = LabelUse::ignored};
  EXPECT_THAT(texts(read(at("*.txt"), options)), ElementsAre("first\nline", "second"));
}

}  // namespace
}  // namespace ferry
