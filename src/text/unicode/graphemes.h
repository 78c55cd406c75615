#pragma once
// Grapheme clusters: what a reader takes for one character, such as a letter with its marks, as
// `tokenizers` cuts them (the extended clusters of Unicode 16). Called by the normalizer
// Precompiled.

#include <cstddef>
#include <string_view>

#include "src/text/unicode/unicode.h"

namespace ferry::text {

/** The end of the cluster that begins at byte `begin` of valid UTF-8: a boundary, and not the
 * text's end. */
size_t cluster_end(std::string_view text, size_t begin, const GraphemeTable& table);

}  // namespace ferry::text
