#include "src/data/read/formats/delimited.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<std::string>>;

struct Parsed {
  Rows rows;
  std::vector<int64_t> lines;
};

Parsed parse(std::string_view text, char delimiter, Quoting quoting) {
  Parsed parsed;
  DelimitedReader reader(text, "f.csv", delimiter, quoting);
  for (DelimitedRow row; reader.next(row);) {
    parsed.rows.push_back(row.fields);
    parsed.lines.push_back(row.line);
  }
  return parsed;
}

TEST(Delimited, PlainRowsAndLineEnds) {
  for (const char* text :
       {"a,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\n1,2", "\n\na,b\n\r\n\n1,2\r\n\n", "a,b\n1,2\r"})
    EXPECT_EQ(parse(text, ',', Quoting::strict).rows, (Rows{{"a", "b"}, {"1", "2"}})) << text;
  EXPECT_EQ(parse("", ',', Quoting::strict).rows, Rows{});
  EXPECT_EQ(parse(",\n,,\n", ',', Quoting::strict).rows, (Rows{{"", ""}, {"", "", ""}}));
  EXPECT_EQ(parse("a\rb,c", ',', Quoting::strict).rows,
            (Rows{{"a\rb", "c"}}));  // a lone CR is text
}

TEST(Delimited, QuotedFields) {
  const Parsed parsed =
      parse("\"a,1\",\"say \"\"hi\"\"\"\n\"two\r\nlines\n\",x\n\"\",\"\"\"\"\nlast,b\"c\"\n", ',',
            Quoting::strict);
  EXPECT_EQ(parsed.rows,
            (Rows{{"a,1", "say \"hi\""}, {"two\r\nlines\n", "x"}, {"", "\""}, {"last", "b\"c\""}}));
  EXPECT_THAT(parsed.lines, ElementsAre(1, 2, 5, 6));
}

TEST(Delimited, StrictRefusesMalformedQuotes) {
  auto error = [](std::string_view text) {
    return error_of([&] { parse(text, ',', Quoting::strict); });
  };
  EXPECT_THAT(error("a,b\nx,\"never\nends\n"),
              HasSubstr("f.csv:2: a quoted field begins here and never ends"));
  EXPECT_THAT(error("a,b\n\"x\" y,z\n"), HasSubstr("f.csv:2: text follows the closing quote"));
  EXPECT_THAT(error("\"a\nb\",\"x\" y"), HasSubstr("f.csv:2: text follows"));
}

TEST(Delimited, LenientKeepsStrayQuotesAsText) {
  EXPECT_EQ(
      parse("\"ok\tfield\"\t1\n\"stray\t0\n\"x\" y\t1\n\"\"z\t0\n", '\t', Quoting::lenient).rows,
      (Rows{{"ok\tfield", "1"}, {"\"stray", "0"}, {"\"x\" y", "1"}, {"\"\"z", "0"}}));
  EXPECT_EQ(parse("\"a\nb\"\t1\n\"end", '\t', Quoting::lenient).rows,
            (Rows{{"a\nb", "1"}, {"\"end"}}));
}

TEST(Delimited, LenientRefusesAQuotedFieldThatMayBeSeveralRows) {
  auto error = [](std::string_view text) {
    return error_of([&] { parse(text, '\t', Quoting::lenient); });
  };
  // Texts with quotes of their own: the first opens, a later one closes.
  const std::string first = error("text\tlabel\n\"good film\t1\nbad\t0\nfine\"\t1\ndull\t0\n");
  EXPECT_THAT(first, HasSubstr("f.csv:2: a quote opens a field here that closes only in line 4"));
  EXPECT_THAT(first, HasSubstr("several rows: dataset_quoting = none"));
  EXPECT_THAT(error("1\tx\n0\t\"bad\n1\tfine\"\n"), HasSubstr("f.csv:2: a quote opens"));
  EXPECT_THAT(error("a\n\"good\nbad\nfine\"\nb\n"), HasSubstr("f.csv:2: a quote opens"));
  // A text of several lines in a file that quotes has no tab in it.
  EXPECT_EQ(parse("1\t\"a\nb\"\n0\t\"c\td\"\n", '\t', Quoting::lenient).rows,
            (Rows{{"1", "a\nb"}, {"0", "c\td"}}));
  EXPECT_EQ(parse("\"good\t1\nbad\"\t0\n", '\t', Quoting::none).rows,
            (Rows{{"\"good", "1"}, {"bad\"", "0"}}));
}

TEST(Delimited, WithoutQuotingAQuoteIsText) {
  EXPECT_EQ(parse("\"a\t\"b\"\n", '\t', Quoting::none).rows, (Rows{{"\"a", "\"b\""}}));
}

TEST(Delimited, AgreesWithPythonsCsv) {
  if (!std::filesystem::exists(test::venv_python())) GTEST_SKIP() << "no .venv with python";
  // Every text of five characters over an alphabet that holds all the special ones, where strict
  // takes it; Python is strict too. Blank rows and lone carriage returns are where the two differ
  // by design.
  test::TempDir dir;
  auto [ok, log] = test::run_python(dir, R"(
import csv, io, itertools, json
for letters in itertools.product('a,"\n', repeat=6):
    text = "".join(letters)
    try:
        rows = [r for r in csv.reader(io.StringIO(text, newline=""), strict=True) if r]
    except csv.Error:
        rows = None
    print(json.dumps([text, rows]))
)");
  ASSERT_TRUE(ok) << log;
  std::istringstream lines(log);
  size_t n_rows = 0, n_refused = 0;
  for (std::string line; std::getline(lines, line);) {
    auto pair = nlohmann::json::parse(line);
    const auto text = pair[0].get<std::string>();
    if (pair[1].is_null()) {
      EXPECT_THROW(parse(text, ',', Quoting::strict), Error) << line;
      ++n_refused;
    } else {
      EXPECT_EQ(parse(text, ',', Quoting::strict).rows, pair[1].get<Rows>()) << line;
      n_rows += pair[1].size();
    }
  }
  EXPECT_GT(n_rows, 1000u);
  EXPECT_GT(n_refused, 100u);
}

}  // namespace
}  // namespace ferry
