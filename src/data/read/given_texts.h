#pragma once
// Texts that come without a file: words of a command line and lines of standard input, as `ferry
// predict` takes them.

#include <string>
#include <vector>

#include "src/data/example.h"

namespace ferry {

/** One example a word; of pairs, one of two words each. Throws Error(usage) when a word is left
 * over, Error(data) on one that is not UTF-8. */
std::vector<Example> examples_of_words(const std::vector<std::string>& words, bool are_pairs);

/** One example a line, blank ones too, so that each line has its answer; of pairs, both texts with
 * a tab between them. Throws Error(data) where there is no line, or one that is not UTF-8, is no
 * pair or holds a byte that is 0. */
std::vector<Example> read_standard_input(bool are_pairs);

}  // namespace ferry
