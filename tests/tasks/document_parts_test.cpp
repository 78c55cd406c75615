// Documents in parts: their tokens are those of whole ones, and their sides those of the text.

#include "src/tasks/document_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "src/data/tokens/token_writer.h"
#include "src/data/tokens/tokenize.h"
#include "tests/files/test_files.h"
#include "tests/tasks/made.h"

namespace ferry {
namespace {

using ::testing::ElementsAre;

/** The examples in the parts that they come in. */
class GivenStream : public ExampleStream {
 public:
  explicit GivenStream(std::vector<Example> examples) : examples_(std::move(examples)) {}
  bool next(Example& example) override {
    if (next_ == examples_.size()) return false;
    example = examples_[next_++];
    return true;
  }

 private:
  std::vector<Example> examples_;
  size_t next_ = 0;
};

std::unique_ptr<ExampleStream> given(std::vector<Example> examples) {
  return std::make_unique<GivenStream>(std::move(examples));
}

/** The pieces of a document, as its reader gives them. */
std::vector<Example> in_pieces(const std::string& text, size_t n_bytes) {
  std::vector<Example> pieces;
  for (size_t at = 0; at < text.size(); at += n_bytes) {
    Example& piece = pieces.emplace_back();
    piece.text = text.substr(at, n_bytes);
    piece.part = part_that(at == 0, at + n_bytes >= text.size());
  }
  return pieces;
}

std::string random_document(unsigned seed, size_t n_bytes) {
  const char* words[] = {"hello", " world", " the", "\n", " cafe", "able", ",", "  ", " un"};
  std::mt19937 random(seed);
  std::string text = "hello";
  while (text.size() < n_bytes)
    text += words[random() % std::size(words)];
  return text;
}

TokenizedDataset tokens_of(std::unique_ptr<ExampleStream> examples, int n_threads) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const auto task = task_kind("causal-lm").make({}, {});
  MemoryWriter writer({});
  tokenize_examples(
      *examples,
      [&](const Example& example, std::vector<TokenizedExample>& out) {
        task->encode(example, tokenizer, 64, out);
      },
      {.n_threads = n_threads, .window = 64}, writer);
  return TokenizedDataset(writer.finish());
}

TEST(DocumentParts, HaveTheTokensOfTheWhole) {
  const Tokenizer tokenizer = test::small_tokenizer();
  for (unsigned seed = 0; seed < 4; ++seed) {
    const std::string one = random_document(seed, 20'000), two = random_document(seed + 9, 700);
    const TokenizedDataset whole = tokens_of(given({{.text = one}, {.text = two}}), 1);
    for (const size_t piece : {size_t{300}, size_t{5000}, size_t{30'000}})
      for (const int n_threads : {1, 3}) {
        std::vector<Example> pieces = in_pieces(one, piece);
        for (Example& example : in_pieces(two, piece))
          pieces.push_back(example);
        const TokenizedDataset parts =
            tokens_of(std::make_unique<DocumentParts>(given(pieces), tokenizer, 1000), n_threads);
        EXPECT_EQ(parts.fingerprint(), whole.fingerprint()) << seed << " " << piece;
        EXPECT_EQ(parts.n_examples(), 2);
      }
  }
}

TEST(DocumentParts, AreAboutAsLongAsAskedFor) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const std::string text = random_document(1, 50'000);
  DocumentParts parts(given({{.text = text}, {.text = "short"}}), tokenizer, 1000);
  std::string all;
  int n = 0;
  for (Example part; parts.next(part) && !(part.part == TextPart::whole); all += part.text, ++n)
    EXPECT_LE(part.text.size(), 2000u);
  EXPECT_EQ(all, text);
  EXPECT_GT(n, 25);
}

TEST(DocumentParts, ShortAndDoubleTextsStayWhole) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const std::string long_text = random_document(1, 5000);
  DocumentParts parts(given({{.text = "short"}, {.text = long_text, .text_pair = "b"}}), tokenizer,
                      1000);
  Example example;
  ASSERT_TRUE(parts.next(example));
  EXPECT_EQ(example.text, "short");
  ASSERT_TRUE(parts.next(example));
  EXPECT_EQ(example.text, long_text);
  EXPECT_EQ(example.part, TextPart::whole);
  EXPECT_FALSE(parts.next(example));
}

TEST(DocumentParts, SidesAreCutAtAByte) {
  const std::string text = "one\ntwo\nthree\n";
  for (size_t piece = 1; piece <= text.size(); ++piece)
    for (size_t cut = 1; cut < text.size(); ++cut)
      for (const bool is_behind : {false, true}) {
        DocumentSide side(given(in_pieces(text, piece)), cut, is_behind);
        std::string all;
        std::vector<TextPart> parts;
        for (Example part; side.next(part); all += part.text)
          parts.push_back(part.part);
        ASSERT_EQ(all, is_behind ? text.substr(cut) : text.substr(0, cut));
        for (size_t i = 0; i < parts.size(); ++i)
          ASSERT_EQ(parts[i], part_that(i == 0, i + 1 == parts.size())) << piece << " " << cut;
      }
}

TEST(DocumentParts, TheCutIsAtTheNearestLineEnd) {
  const test::TempDir dir;
  const auto cut_of = [&](const std::string& text, double fraction) {
    const auto reader = open_dataset({.path = dir.write("x.txt", text),
                                      .rows = RowForm::documents,
                                      .labels = LabelUse::ignored});
    return find_document_cut(*reader, fraction).value_or(0);
  };
  EXPECT_EQ(cut_of("one\ntwo\nthree\nfour\nfive\n", 0.3), 14u);
  EXPECT_EQ(cut_of("one\ntwo\nthree\nfour\nfive\n", 0.01), 19u);
  EXPECT_EQ(cut_of("one\ntwo\nthree\nfour\nfive\n", 0.99), 4u);
  EXPECT_EQ(cut_of("\none line\n\n", 0.5), 0u);
  // Across the pieces of a large file.
  std::string large;
  for (int i = 0; i < 500'000; ++i)
    large += "a line " + std::to_string(i) + "\n";
  ASSERT_GT(large.size(), size_t{5} << 20);
  const size_t cut = cut_of(large, 0.25);
  EXPECT_EQ(large[cut - 1], '\n');
  EXPECT_NEAR(static_cast<double>(cut), 0.75 * static_cast<double>(large.size()), 8);
}

}  // namespace
}  // namespace ferry
