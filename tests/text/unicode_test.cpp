// UTF-8 and character properties; the trie against a plain search.

#include "src/text/unicode/unicode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "src/base/utf8.h"
#include "src/text/normalizers/bert_normalizer.h"
#include "src/text/trie.h"

namespace ferry::text {
namespace {

TEST(Utf8, EveryScalarValueRoundTrips) {
  size_t n_wrong = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "a";
    append_utf8(text, c);
    size_t position = 1, end = text.size();
    const bool same = next_code_point(text, position) == c && position == text.size() &&
                      previous_code_point(text, end) == c && end == 1 &&
                      first_invalid_utf8(text) == text.npos;
    n_wrong += !same;
  }
  EXPECT_EQ(n_wrong, 0u);
}

TEST(CharTable, KnowsWhatHuggingFaceKnows) {
  const CharTable table;
  const std::map<char32_t, int> cases = {
      {'a', 0},
      {'A', CharTable::kHasLower},
      {'!', CharTable::kPunctuation},
      {'$', CharTable::kPunctuation},
      {' ', CharTable::kSpace},
      {'\t', CharTable::kSpace},
      {0x0B, CharTable::kSpace | CharTable::kRemoved},
      {0x85, CharTable::kSpace | CharTable::kRemoved},
      {0x301, CharTable::kAccent | CharTable::kCombines},
      {0xE9, CharTable::kDecomposes},
      {0x4E00, CharTable::kCjk},
      {0x2B820, 0},
      {0xF900, CharTable::kCjk | CharTable::kDecomposes},
      {0xAC00, CharTable::kDecomposes},
      {0x378, 0},                     // unassigned: stays
      {0x8D4, CharTable::kCombines},  // a mark that is younger than the categories
      {0x1E9E, CharTable::kHasLower},
      {0x10FFFD, CharTable::kRemoved},  // private use
  };
  for (const auto& [c, flags] : cases)
    EXPECT_EQ(table.flags(c), flags) << std::hex << static_cast<uint32_t>(c);
}

// The patterns of `tokenizers` go by an older Unicode, in which the first of them is no number.
TEST(Digits, AreThoseOfTheYoungestUnicode) {
  for (const char32_t c : {U'\U00011DE0', U'\U00011DE9', U'7', U'\u00BD', U'\u2167'})
    EXPECT_TRUE(is_digit(c)) << static_cast<uint32_t>(c);
  for (const char32_t c : {U'\U00011DDF', U'\U00011DEA', U'a', U'/', U':', U'\u00BF'})
    EXPECT_FALSE(is_digit(c)) << static_cast<uint32_t>(c);
  EXPECT_EQ(CategoryTable::get().of(U'\U00011DE0'), Category::Cn);
}

TEST(Decomposition, OfHangulIsArithmetic) {
  const auto points = [](char32_t c) {
    const Mapping mapping = decomposition(c);
    return std::u32string(mapping.begin(), mapping.end());
  };
  EXPECT_EQ(points(0xAC00), U"\u1100\u1161");
  EXPECT_EQ(points(0xAC01), U"\u1100\u1161\u11A8");
  EXPECT_EQ(points(0xD7A3), U"\u1112\u1175\u11C2");
  EXPECT_EQ(points(0x1FA7), U"\u03C9\u0314\u0342\u0345");
  EXPECT_EQ(points('a'), U"");
}

TEST(BertNormalizer, SortsTheMarksThatStay) {
  const auto table = std::make_shared<const CharTable>();
  const BertNormalizer normalizer({false, false, true, false}, table);
  NormalizedText text;
  // U+08D4 (class 230), U+302E (224), U+1B44 (9) and U+1D16E (216) are no accents to Hugging Face;
  // U+0301 and U+034F are, and the latter has class 0: what follows it is a new run.
  text.assign("a\u08D4\u0301\u302E\u1B44\u034F\U0001D16E\u0301b", 0, false);
  normalizer.normalize(text);
  EXPECT_EQ(text.text(), "a\u1B44\u302E\u08D4\U0001D16Eb");
}

TEST(Trie, FindsTheLongestKey) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const int n_letters = round % 2 ? 3 : 256, n_keys = round * 20;
    const auto word = [&](int longest) {
      std::string text;
      const int size = 1 + static_cast<int>(random() % static_cast<unsigned>(longest));
      for (int i = 0; i < size; ++i)
        text.push_back(static_cast<char>(random() % static_cast<unsigned>(n_letters)));
      return text;
    };
    std::map<std::string, int32_t> keys;
    for (int i = 0; i < n_keys; ++i)
      keys.emplace(word(6), i);
    std::vector<std::pair<std::string_view, int32_t>> views(keys.begin(), keys.end());
    std::shuffle(views.begin(), views.end(), random);
    const Trie trie(views);
    for (int i = 0; i < 500; ++i) {
      const std::string text = i % 2 && !keys.empty()
                                   ? std::string(views[random() % views.size()].first) + word(3)
                                   : word(9);
      Trie::Match expected;
      for (size_t size = 1; size <= text.size(); ++size)
        if (const auto found = keys.find(text.substr(0, size)); found != keys.end())
          expected = {found->second, size};
      const Trie::Match match = trie.longest_prefix(text);
      ASSERT_EQ(match.value, expected.value);
      ASSERT_EQ(match.size, expected.size);
    }
  }
}

}  // namespace
}  // namespace ferry::text
