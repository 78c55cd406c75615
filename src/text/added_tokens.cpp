#include "src/text/added_tokens.h"

#include <utility>

namespace ferry::text {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    keys.emplace_back(tokens_[i].content, static_cast<int32_t>(i));
    begins_[static_cast<unsigned char>(tokens_[i].content.front())] = true;
  }
  trie_ = Trie(std::move(keys));
}

bool AddedTokens::within_word(std::string_view text, size_t first, size_t last) {
  if (first > 0 && is_word_character(previous_code_point(text, first))) return true;
  return last < text.size() && is_word_character(next_code_point(text, last));
}

size_t AddedTokens::skip_space(std::string_view text, size_t position, const CharTable& table) {
  while (position < text.size()) {
    size_t next = position;
    if (!(table.flags(next_code_point(text, next)) & CharTable::kSpace)) break;
    position = next;
  }
  return position;
}

size_t AddedTokens::skip_space_back(std::string_view text,
                                    size_t position,
                                    const CharTable& table) {
  while (position > 0) {
    size_t before = position;
    if (!(table.flags(previous_code_point(text, before)) & CharTable::kSpace)) break;
    position = before;
  }
  return position;
}

}  // namespace ferry::text
