#include "src/base/utf8.h"

#include <gtest/gtest.h>

#include <utility>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(Utf8, FindsTheFirstBadByte) {
  const std::pair<std::string_view, size_t> cases[] = {
      {"", kNone},
      {"abc", kNone},
      {"plain ascii, longer than eight bytes", kNone},
      {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", kNone},
      {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", kNone},
      {"\xe0\xa0\x80", kNone},
      {"\xed\x9f\xbf", kNone},
      {"\xee\x80\x80", kNone},
      {"\xf0\x90\x80\x80", kNone},
      {"\xf4\x8f\xbf\xbf", kNone},
      {"a\x80", 1},         // a continuation byte alone
      {"ab\x80", 2},        // the same
      {"12345678\xc3", 8},  // cut
      {"ab\xc3", 2},
      {"\xe2\x82", 0},
      {"\xc3\xa9\xe2\x82", 2},
      {"\xe2\x82\xac\xe2\x82", 3},
      {"\xf0\x9f\x98", 0},
      {"\xc3(", 0},  // another character where a continuation byte is due
      {"\xe2\x82x", 0},
      {"\xc0\xaf", 0},  // overlong
      {"\xc1\xbf", 0},
      {"\xe0\x80\x80", 0},
      {"\xe0\x80\xaf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xf0\x80\x80\xaf", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xed\xa0\x80", 0},  // surrogate
      {"x\xed\xa0\x80", 1},
      {"\xf4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xf5\x80\x80\x80", 0},
      {"\xff", 0},
  };
  for (const auto& [text, place] : cases)
    EXPECT_EQ(first_invalid_utf8(text), place) << ::testing::PrintToString(text);
}

TEST(Utf8, FindsControlCharacters) {
  EXPECT_EQ(first_control_character("caf\xc3\xa9 ~"), kNone);
  EXPECT_EQ(first_control_character("a\x1b[2J"), 1u);
  EXPECT_EQ(first_control_character("ab\n"), 2u);
  EXPECT_EQ(first_control_character("\x7f"), 0u);
  EXPECT_EQ(first_control_character(std::string_view("a\0", 2)), 1u);
  EXPECT_EQ(first_control_character("x\xc2\x9b"), 1u);     // U+009B
  EXPECT_EQ(first_control_character("x\xc2\xa0"), kNone);  // U+00A0
}

TEST(Utf8, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(escaped("caf\xc3\xa9 \\ \xf0\x9f\x98\x80"), "caf\xc3\xa9 \\ \xf0\x9f\x98\x80");
  EXPECT_EQ(escaped("\x1b[2J\n\t\r\x7f"), "\\x1b[2J\\n\\t\\r\\x7f");
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("\xc2\x9b"
                    "1m"),
            "\\u009b1m");
  EXPECT_EQ(escaped("caf\xe9 \xe2\x82"), "caf\\xe9 \\xe2\\x82");
}

TEST(Utf8, EscapesWhatTurnsTheDirectionOfText) {
  EXPECT_EQ(escaped("a\xe2\x80\xaetxt.exe"), "a\\u202etxt.exe");
  EXPECT_EQ(escaped("\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9"), "\\u202a\\u2066\\u2069");
  // Neighbours of them, which turn nothing.
  EXPECT_EQ(escaped("\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x82\xaa"),
            "\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x82\xaa");
  EXPECT_EQ(escaped_lines("a\tb\n\x1b[31mc\r"), "a\tb\n\\x1b[31mc\\r");
}

TEST(Error, EscapesTheDataItQuotes) {
  const Error error(Fault::data, "data.read", "the label 'a\x1b]0;b\x07' of 'caf\xe9'",
                    "see 'c\n'");
  EXPECT_STREQ(error.what(), "[data.read] the label 'a\\x1b]0;b\\x07' of 'caf\\xe9' - see 'c\\n'");
}

}  // namespace
}  // namespace ferry
