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

/** The merges of tokens that are bytes, each of which was made before those after it: every two
 * that a token can be cut into, in the order of their places. */
Merges merges_of_ranks(const std::vector<std::string>& tokens);

/** The merges of SentencePiece's tokens, each of every two that it can be cut into: the token with
 * the higher score first, then the one with the longer first part, as Hugging Face has them. */
Merges merges_of_scores(const std::vector<std::string>& tokens, const std::vector<double>& scores);

}  // namespace ferry::text
