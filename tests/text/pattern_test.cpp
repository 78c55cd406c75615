// Patterns: what each construct matches, by hand, and what is refused. That the patterns of real
// models cut as `tokenizers` does is compare_real_tokenizers.py's to show.

#include "src/text/pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "src/base/error.h"

namespace ferry::text {
namespace {

/** The matches, each in brackets, and what is between them. */
std::string marked(const Pattern& pattern, std::string_view text) {
  std::string out;
  size_t done = 0;
  pattern.find_all(text, [&](size_t begin, size_t end) {
    out.append(text.substr(done, begin - done)).append("[");
    out.append(text.substr(begin, end - begin)).append("]");
    done = end;
    return true;
  });
  return out.append(text.substr(done));
}

std::string marked(std::string_view pattern, std::string_view text) {
  return marked(Pattern(pattern), text);
}

TEST(Pattern, Classes) {
  EXPECT_EQ(marked(R"(\p{L}+)", "ab1ñß 日本_x"), "[ab]1[ñß] [日本]_[x]");
  EXPECT_EQ(marked(R"(\p{Lu}\p{Ll})", "Ab AB aB Éa"), "[Ab] AB aB [Éa]");
  EXPECT_EQ(marked(R"(\P{L}+)", "ab1 c"), "ab[1 ]c");
  EXPECT_EQ(marked(R"([^\s\p{L}\p{N}]+)", "a!? b-1"), "a[!?] b[-]1");
  EXPECT_EQ(marked(R"([a-c\-x]+)", "abd-xe"), "[ab]d[-x]e");
  EXPECT_EQ(marked(R"([\]\\^]+)", "a]\\^b"), "a[]\\^]b");
  EXPECT_EQ(marked(R"([^\S\r\n]+)", "a \t\n b"), "a[ \t]\n[ ]b");
  EXPECT_EQ(marked(R"([一-龥]+)", "a一龥龦"), "a[一龥]龦");
  EXPECT_EQ(marked(R"(\s)", "a\u0085b\u00a0c\u200bd\u180ee"), "a[\u0085]b[\u00a0]c\u200bd\u180ee");
  EXPECT_EQ(marked(R"(\d+)", "1٣x²"), "[1٣]x²");
  EXPECT_EQ(marked(R"([\u00AD\x41]+)", "xA\u00ad"), "x[A\u00ad]");
  EXPECT_EQ(marked(".", "a\né"), "[a]\n[é]");
}

TEST(Pattern, Quantifiers) {
  EXPECT_EQ(marked(R"(\p{N}{1,3})", "12345"), "[123][45]");
  EXPECT_EQ(marked(R"( {2,})", "a b  c   d"), "a b[  ]c[   ]d");
  EXPECT_EQ(marked(R"(a{2}b)", "aab ab aaab"), "[aab] ab a[aab]");
  EXPECT_EQ(marked(R"( ?x*y)", " xxy y xz"), "[ xxy][ y] xz");
  EXPECT_EQ(marked(R"(a*ab)", "aaab"), "[aaab]");  // gives one back
  EXPECT_EQ(marked(R"(a*+ab)", "aaab"), "aaab");   // gives nothing back
  EXPECT_EQ(marked(R"(é+éx)", "éééx"), "[éééx]");
}

TEST(Pattern, TheFirstAlternativeThatMatches) {
  EXPECT_EQ(marked("a|ab", "ab"), "[a]b");
  EXPECT_EQ(marked("(?:a|ab)c", "abc ac"), "[abc] [ac]");
  EXPECT_EQ(marked("x(a|b)?c", "xc xac xbc xdc"), "[xc] [xac] [xbc] xdc");
  EXPECT_EQ(marked("(?i:'s|'ll)", "'s 'S 'ſ 'lL 'l"), "['s] ['S] ['ſ] ['lL] 'l");
  EXPECT_EQ(marked("(?i:k)", "kK\u212A"), "[k][K][\u212A]");
}

TEST(Pattern, LooksAhead) {
  EXPECT_EQ(marked(R"(\s+(?!\S)|\s+)", "a   b  "), "a[  ][ ]b[  ]");
  EXPECT_EQ(marked(R"(a(?=b))", "ab ac"), "[a]b ac");
}

TEST(Pattern, Literal) {
  EXPECT_EQ(marked(Pattern::literal(".+"), "a.+b.c"), "a[.+]b.c");
  EXPECT_EQ(marked(Pattern::literal("é日"), "é日é"), "[é日]é");
}

TEST(Pattern, RefusesWhatItDoesNotKnow) {
  for (const char* expression :
       {"^a",           "a$",          "(a",     "a)",         "[a",      "a**",      "a+?",
        "(ab)*",        R"(\bword)",   R"(\w+)", R"(\p{Han})", "(?<=a)b", "(?P<n>a)", R"(\1)",
        "[a&&b]",       "[[:alpha:]]", "a{",     "a{3,2}",     "a{0}",    "(?i:ß)",   "(?i:ss)",
        "(?i:\\p{Lu})", "[b-a]",       "\\",     "*a",         "(?=a)+",  R"(\p{L)",  "(?i)a"})
    EXPECT_THROW(Pattern{expression}, std::invalid_argument) << expression;
  for (const char* empty : {"", "a*", "a|", "(?=a)", "a?b*", "(a)?"})
    EXPECT_THROW(Pattern{empty}, std::invalid_argument) << empty;
}

/** A model of a stranger may have any pattern. */
TEST(Pattern, RefusesWhatIsTooDeepOrTooLong) {
  const auto nested = [](int n, const std::string& open) {
    std::string expression;
    for (int i = 0; i < n; ++i)
      expression += open;
    return expression + "a" + std::string(static_cast<size_t>(n), ')');
  };
  const auto fault_of = [](const std::string& expression) -> std::string {
    try {
      Pattern{expression};
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return {};
  };
  for (const char* open : {"(", "(?:", "(?=", "(?!"})
    EXPECT_NE(fault_of(nested(5'000, open)).find("so many groups in groups"), std::string::npos)
        << open;
  EXPECT_EQ(marked(nested(50, "(?:"), "ba"), "b[a]");
  EXPECT_NE(fault_of(std::string(120'000, 'a')).find("120000 bytes"), std::string::npos);
  std::string many;
  for (int i = 0; i < 2000; ++i)
    many += "a?";
  EXPECT_NE(fault_of(many + "b").find("2000 quantifiers and groups"), std::string::npos);
}

TEST(Pattern, LongOnesNeedNoDeepStack) {
  const std::string text(130'000, 'a');
  EXPECT_EQ(marked(Pattern::literal(text), "b" + text + "a"), "b[" + text + "]a");
  EXPECT_EQ(marked(std::string(60'000, 'a'), text.substr(0, 60'001)),
            "[" + text.substr(0, 60'000) + "]a");
}

/** Their number of ways doubles with each part. */
TEST(Pattern, OpensInTimeThatItsLengthBounds) {
  std::string expression;
  for (int i = 0; i < 200; ++i)
    expression += "(?:a?|b?)";
  EXPECT_EQ(marked(expression + "c", "abc d"), "[abc] d");
  EXPECT_THROW(Pattern{expression}, std::invalid_argument) << "it matches the empty text";
}

TEST(Pattern, ThatTriesTooManyWaysIsAnError) {
  const std::string letters(30, 'a');
  std::string either, stars;
  for (int i = 0; i < 30; ++i)
    either += "(?:a|a)";
  for (int i = 0; i < 8; ++i)
    stars += "a*";
  for (const std::string& expression : {either + "b", stars + "ab"})
    try {
      marked(expression, letters);
      ADD_FAILURE() << expression;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      EXPECT_NE(std::string_view(error.what()).find("too many ways"), std::string_view::npos)
          << error.what();
    }
  // Patterns of real models on texts that are hard for them.
  constexpr const char* kQwen =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  for (const char c : {' ', 'a', '\'', '1', '\n'})
    EXPECT_FALSE(marked(kQwen, std::string(100'000, c) + "x").empty()) << c;
}

}  // namespace
}  // namespace ferry::text
