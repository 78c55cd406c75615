// Texts that are mapped are those that are held in memory, and faults show where they stand.

#include "src/data/read/formats/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/data/read/lines.h"
#include "src/data/read/reader.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(TextFile file) {
  std::vector<std::string> all;
  std::string buffer;
  Lines lines(file.text());
  for (std::string_view line; lines.next(line);)
    all.emplace_back(file.take(line, buffer));
  return all;
}

class TextFileTest : public ::testing::Test {
 protected:
  std::vector<std::string> mapped(const std::string& text,
                                  TextEncoding encoding = TextEncoding::utf8) {
    return lines_of(load_text_file(dir_.write("x.txt", text), encoding, /*held_bytes=*/0));
  }
  TempDir dir_;
};

TEST_F(TextFileTest, MappedTextIsThatInMemory) {
  for (const TextEncoding encoding :
       {TextEncoding::utf8, TextEncoding::latin1, TextEncoding::utf8_or_latin1})
    for (const char* text :
         {"", "one", "one\ntwo\n", "\xef\xbb\xbfmark\nZoë\n", "a\rb\rc", "a\r\nb\n"})
      EXPECT_EQ(mapped(text, encoding),
                lines_of(load_text_file(dir_.write("y.txt", text), encoding)))
          << text << static_cast<int>(encoding);
  EXPECT_THAT(mapped("Zo\xeb\nb\n", TextEncoding::utf8_or_latin1), ElementsAre("Zoë", "b"));
  EXPECT_THAT(mapped("a\rb\rc"), ElementsAre("a", "b", "c"));
}

TEST_F(TextFileTest, AFaultShowsWhenItIsReached) {
  const std::string good(3 << 20, 'x');
  TextFile file = load_text_file(dir_.write("x.txt", "first\n" + good + "\n" + good + "\n\xff\n"),
                                 TextEncoding::utf8, /*held_bytes=*/0);
  std::string buffer;
  Lines lines(file.text());
  std::string_view line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(file.take(line, buffer), "first");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(file.take(line, buffer), good);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(lines.next(line));
  EXPECT_THAT(error_of([&] { file.take(line, buffer); }),
              AllOf(HasSubstr("x.txt:4: byte 6291464 of the file (0xff) is not valid UTF-8"),
                    HasSubstr("utf8_or_latin1")));
  EXPECT_THAT(error_of([&] { mapped(good + "\n\nb" + std::string(1, '\0')); }),
              HasSubstr("x.txt:3: byte 3145731 of the file is 0 (NUL)"));
}

/** Characters of several bytes lie across the ends of the pieces that are checked. */
TEST_F(TextFileTest, PiecesEndBetweenCharacters) {
  std::string text = "x\n";
  while (text.size() < (5 << 20))
    text += "日本語";
  EXPECT_THAT(mapped(text), ElementsAre("x", text.substr(2)));
  EXPECT_EQ(whole_characters("日本", 4), "日");
  EXPECT_EQ(whole_characters("日本", 2), "日");
  EXPECT_EQ(whole_characters("ab", 1), "a");
}

TEST_F(TextFileTest, AFileThatShrinksEndsTheProgramByName) {
  const auto shrink = [&] {
    end_on_lost_pages();
    const auto path = dir_.write("x.txt", std::string(8 << 20, 'x'));
    TextFile file = load_text_file(path, TextEncoding::latin1, /*held_bytes=*/0);
    std::filesystem::resize_file(path, 10);
    std::string buffer;
    file.take(file.text(), buffer);
  };
  EXPECT_EXIT(shrink(), ::testing::ExitedWithCode(4), "x.txt' became shorter while it was used");
}

/** A text of several MiB in each form: the file is mapped, and its rows are all there. */
TEST_F(TextFileTest, LargeFilesOfEachForm) {
  constexpr int kRows = 60'000;
  std::string csv = "text,label\n", jsonl, list = "[", lines;
  std::vector<std::string> texts;
  for (int i = 0; i < kRows; ++i) {
    texts.push_back("row " + std::to_string(i) + " " + std::string(80, 'a' + i % 26) + " Zoë");
    csv += "\"" + texts.back() + "\"," + std::to_string(i % 2) + "\n";
    const std::string object = "{\"text\": \"" + texts.back() + "\", \"label\": 1}";
    jsonl += object + "\n";
    list += (i > 0 ? ",\n" : "") + object;
    lines += texts.back() + "\n";
  }
  const std::pair<const char*, std::string> files[] = {
      {"x.csv", csv}, {"x.jsonl", jsonl}, {"x.json", list + "]"}, {"x.txt", lines}};
  for (const auto& [name, text] : files) {
    ASSERT_GT(text.size(), kHeldText_bytes);
    const Dataset dataset =
        read_dataset({.path = dir_.write(name, text), .labels = LabelUse::ignored});
    ASSERT_EQ(dataset.examples.size(), texts.size()) << name;
    for (size_t i = 0; i < texts.size(); ++i)
      ASSERT_EQ(dataset.examples[i].text, texts[i]) << name;
  }
  const Dataset labelled = read_dataset({.path = dir_ / "x.csv"});
  EXPECT_THAT(labelled.scheme.labels.names(), ElementsAre("0", "1"));
  // A document comes in parts, which are whole again where it is read at once.
  const auto reader = open_dataset(
      {.path = dir_ / "x.txt", .rows = RowForm::documents, .labels = LabelUse::ignored});
  const auto examples = reader->examples();
  std::string all;
  int64_t n_parts = 0, n_bytes = 0;
  for (Example part; examples->next(part); all += part.text) {
    EXPECT_EQ(begins_text(part.part), n_parts++ == 0);
    EXPECT_GE(examples->n_bytes_read(), n_bytes);
    n_bytes = examples->n_bytes_read();
  }
  EXPECT_GT(n_parts, 4);
  EXPECT_EQ(all, lines);
  EXPECT_EQ(n_bytes, std::ssize(lines));
  EXPECT_EQ(read_all(*reader).examples.at(0).text, lines);
}

}  // namespace
}  // namespace ferry
