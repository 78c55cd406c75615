#include "src/tasks/answer_text.h"

#include <map>

#include "src/text/unicode/unicode.h"

namespace ferry {
namespace {

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

/** Ends a word, as Python's str.split(). */
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

/** A letter or number: articles end at any other character. */
bool is_letter_or_number(char32_t c) {
  using text::Category;
  switch (text::CategoryTable::get().of(c)) {
    case Category::Lu:
    case Category::Ll:
    case Category::Lt:
    case Category::Lm:
    case Category::Lo:
    case Category::Nd:
    case Category::Nl:
    case Category::No:
      return true;
    default:
      return false;
  }
}

/** Collects words, leaving out articles. A word is made of runs of letters and numbers, and of what
 * stands between them. */
class Words {
 public:
  void add(char32_t c) {
    if (is_space(c)) return end_word();
    if (!is_letter_or_number(c)) {
      end_run();
      text::append_utf8(word_, c);
      run_begin_ = word_.size();
      return;
    }
    text::append_utf8(word_, c);
  }
  std::vector<std::string> take() {
    end_word();
    return std::move(words_);
  }

 private:
  /** An article becomes a space, so that it ends the word before it. */
  void end_run() {
    const std::string_view run = std::string_view(word_).substr(run_begin_);
    if (run != "a" && run != "an" && run != "the") return;
    word_.resize(run_begin_);
    push();
  }
  void end_word() {
    end_run();
    push();
  }
  void push() {
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
    run_begin_ = 0;
  }

  std::vector<std::string> words_;
  std::string word_;
  size_t run_begin_ = 0;  // of the last run in word_
};

}  // namespace

std::vector<std::string> words_that_count(std::string_view text) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = text::next_code_point(text, at);
    if (is_ascii_punctuation(c)) continue;
    const text::Mapping lower = text::lower_case(c);
    if (lower.size == 0) words.add(c);
    for (char32_t part : lower)
      words.add(part);
  }
  return words.take();
}

bool is_exact_match(std::string_view right, std::string_view answer) {
  return words_that_count(right) == words_that_count(answer);
}

double word_f1(std::string_view right, std::string_view answer) {
  const auto of_right = words_that_count(right), of_answer = words_that_count(answer);
  if (of_right.empty() || of_answer.empty()) return of_right.empty() && of_answer.empty() ? 1 : 0;
  std::map<std::string_view, int64_t> left;
  for (const std::string& word : of_right)
    ++left[word];
  int64_t n_same = 0;
  for (const std::string& word : of_answer)
    n_same += left[word]-- > 0;
  return 2 * static_cast<double>(n_same) / static_cast<double>(of_right.size() + of_answer.size());
}

}  // namespace ferry
