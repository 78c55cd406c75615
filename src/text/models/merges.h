#pragma once
// The merges of a byte-pair encoding: read as pairs of tokens, or made of a vocabulary whose order
// says which was merged first. Called by the readers of files; Bpe takes what they give.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::text {

/** Two tokens, and the one that they become. */
struct Merge {
  int32_t left, right, merged;
};

/** The first ones come first. */
using Merges = std::vector<Merge>;

/** The two tokens of each merge. */
using TokenPairs = std::vector<std::pair<std::string_view, std::string_view>>;

/** `prefix`: what the second of two tokens loses. Throws std::invalid_argument that says which
 * merge needs a token that is not in the vocabulary. */
Merges find_merges(const std::vector<std::string>& vocabulary,
                   const TokenPairs& pairs,
                   std::string_view prefix);

/** What tokens are cut into, where merges are made of a vocabulary. */
enum class Units { bytes, characters };

/** The merges of tokens that each are better than those after them: each is made of every two that
 * it can be cut into, as Hugging Face's converters have it. Of one token's, those of characters go
 * by the length of the first, those of bytes by the places of both. */
Merges make_merges(const std::vector<std::string>& tokens, Units units);

}  // namespace ferry::text
