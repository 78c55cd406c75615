#pragma once
// A confusion matrix as text.

#include <cstdint>
#include <span>
#include <string>

#include "src/term/terminal.h"

namespace ferry::term {

/** counts: (n_labels, n_labels), row = true label, column = predicted. Rows end with the share that
 * was right. Where the matrix is wider than the terminal, the most frequent confusions are listed
 * instead. */
std::string draw_confusion_matrix(std::span<const std::string> labels,
                                  std::span<const int64_t> counts,
                                  const Terminal& terminal);

}  // namespace ferry::term
