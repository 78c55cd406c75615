#pragma once
// The words of labels, as people write them: JSON on the command line or in a file, or a file with
// the words of a label in each line, as OpenPrompt reads them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/core/prompt.h"
#include "src/data/example.h"
#include "src/text/tokenizer.h"

namespace ferry {

struct Verbalizer {
  using Words = std::vector<std::string>;
  std::vector<std::pair<std::string, Words>> by_name;  ///< or
  std::vector<Words> by_order;                         ///< of the labels

  bool is_empty() const { return by_name.empty() && by_order.empty(); }
};

/** The value of the option verbalizer: JSON, or a file's name, with ":N" behind it for the N-th
 * verbalizer of the file. Throws Error(usage) or Error(data). */
Verbalizer read_verbalizer(const std::string& option);

/** The words of each label. Without any the labels' own names are their words. Throws Error(usage)
 * for a label without words, words of a label that the data lack, and names that are numbers. */
std::vector<Verbalizer::Words> words_of_labels(const Verbalizer& verbalizer,
                                               const LabelMap& labels);

/** Their tokens, each word with a blank before it unless it begins with "<!>". Throws Error(usage)
 * for a word that the tokenizer cannot make. */
LabelWords tokens_of_words(const std::vector<Verbalizer::Words>& words,
                           WordTokens tokens,
                           const Tokenizer& tokenizer);

}  // namespace ferry
