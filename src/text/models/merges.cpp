#include "src/text/models/merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>

#include "src/text/token_map.h"

namespace ferry::text {
namespace {

/** Every two tokens that tokens can be cut into before a byte that will do. */
template <typename MayBegin>
Merges every_cut(const std::vector<std::string>& tokens, MayBegin may_begin) {
  const TokenMap ids(tokens);
  Merges merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if (!may_begin(token[cut])) continue;
      const int32_t left = ids.find(token.substr(0, cut));
      if (left < 0) continue;
      const int32_t right = ids.find(token.substr(cut));
      if (right >= 0) merges.push_back({left, right, static_cast<int32_t>(id)});
    }
  }
  return merges;
}

}  // namespace

Merges find_merges(const std::vector<std::string>& vocabulary,
                   const TokenPairs& pairs,
                   std::string_view prefix) {
  const TokenMap ids(vocabulary);
  Merges merges;
  merges.reserve(pairs.size());
  std::string merged;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [left, right] = pairs[i];
    merged = left;
    merged += right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    const std::array<std::string_view, 3> tokens = {left, right, merged};
    std::array<int32_t, 3> found{};
    for (size_t k = 0; k < 3; ++k)
      if ((found[k] = ids.find(tokens[k])) < 0)
        throw std::invalid_argument(
            fmt::format("merge {}, '{}' with '{}', needs the token '{}', "
                        "which is not in the vocabulary",
                        i, left, right, tokens[k]));
    merges.push_back({found[0], found[1], found[2]});
  }
  return merges;
}

Merges merges_of_ranks(const std::vector<std::string>& tokens) {
  Merges merges = every_cut(tokens, [](char) { return true; });
  std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return std::tie(a.merged, a.left, a.right) < std::tie(b.merged, b.left, b.right);
  });
  return merges;
}

Merges merges_of_scores(const std::vector<std::string>& tokens, const std::vector<double>& scores) {
  const auto begins_character = [](char c) { return (c & 0xC0) != 0x80; };
  Merges merges = every_cut(tokens, begins_character);
  const auto key = [&](const Merge& merge) {
    const auto length = [&](int32_t id) {
      const std::string& token = tokens[static_cast<size_t>(id)];
      return std::count_if(token.begin(), token.end(), begins_character);
    };
    return std::tuple(scores[static_cast<size_t>(merge.merged)], length(merge.left),
                      length(merge.right));
  };
  std::stable_sort(merges.begin(), merges.end(),
                   [&](const Merge& a, const Merge& b) { return key(a) > key(b); });
  return merges;
}

}  // namespace ferry::text
