#pragma once
// How near an answer is to a right one, as SQuAD's evaluation script has it: in lower case, without
// ASCII punctuation, articles (a, an, the) and repeated spaces.

#include <string>
#include <string_view>
#include <vector>

namespace ferry {

/** The words that count; none of an empty answer. `text` is valid UTF-8. */
std::vector<std::string> words_that_count(std::string_view text);

/** All words that count are the same, in the same order. */
bool is_exact_match(std::string_view right, std::string_view answer);

/** F1 of the words that count, each as often as it occurs, from 0 to 1. Where one text has none, it
 * is 1 if the other has none either. */
double word_f1(std::string_view right, std::string_view answer);

}  // namespace ferry
