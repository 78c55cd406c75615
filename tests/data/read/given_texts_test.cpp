#include "src/data/read/given_texts.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> texts(const std::vector<Example>& examples) {
  std::vector<std::string> result;
  for (const Example& example : examples)
    result.push_back(example.text_pair ? example.text + "|" + *example.text_pair : example.text);
  return result;
}

/** Standard input of this process is these bytes while it lives. */
class StandardInput {
 public:
  explicit StandardInput(std::string_view bytes) : before_(::dup(STDIN_FILENO)) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], bytes.data(), bytes.size()), std::ssize(bytes));
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }
  ~StandardInput() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

std::vector<std::string> read(std::string_view bytes, bool are_pairs = false) {
  const StandardInput input(bytes);
  return texts(read_standard_input(are_pairs));
}
std::string error(std::string_view bytes, bool are_pairs = false) {
  return error_of([&] { read(bytes, are_pairs); });
}

TEST(GivenTexts, WordsAreTextsOrPairs) {
  EXPECT_THAT(texts(examples_of_words({"a", "b c"}, false)), ElementsAre("a", "b c"));
  EXPECT_THAT(texts(examples_of_words({"a", "b", "c", "d"}, true)), ElementsAre("a|b", "c|d"));
  EXPECT_THAT(error_of(
                  [] {
                    examples_of_words({"a", "b", "c"}, true);
                  },
                  Fault::usage),
              HasSubstr("3 texts are given, and pairs take two each"));
  EXPECT_THAT(error_of([] { examples_of_words({"a\xff"}, false); }),
              HasSubstr("the text 'a\\xff' is not UTF-8"));
}

TEST(GivenTexts, LinesOfStandardInput) {
  EXPECT_THAT(read("\xef\xbb\xbfone\r\n\ntwo \nthree"), ElementsAre("one", "", "two ", "three"));
  EXPECT_THAT(read("a\tb\nc\td\n", true), ElementsAre("a|b", "c|d"));
  EXPECT_THAT(error(""), HasSubstr("no texts on standard input"));
  EXPECT_THAT(error("a\nb\xff\n"), HasSubstr("line 2 of standard input is not UTF-8"));
  EXPECT_THAT(error(std::string_view("a\nb\0c\n", 6)),
              HasSubstr("byte 3 of standard input (line 2) is 0 (NUL), which no text has"));
  EXPECT_THAT(error("a\tb\nc\n", true), HasSubstr("line 2 of standard input is no pair"));
  EXPECT_THAT(error("a\tb\tc\n", true), HasSubstr("line 1 of standard input is no pair"));
}

}  // namespace
}  // namespace ferry
