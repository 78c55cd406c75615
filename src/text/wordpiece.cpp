#include "src/text/wordpiece.h"

#include <algorithm>
#include <utility>

namespace ferry::text {
namespace {

Trie make_trie(const std::vector<std::string>& vocabulary, std::string_view prefix) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  keys.reserve(vocabulary.size());
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary[id];
    if (token.size() > prefix.size() && token.starts_with(prefix))
      keys.emplace_back(token.substr(prefix.size()), static_cast<int32_t>(id));
  }
  return Trie(std::move(keys));
}

}  // namespace

WordPiece::WordPiece(WordPieceOptions options,
                     const std::vector<std::string>& vocabulary,
                     std::shared_ptr<const CharTable> table)
    : options_(std::move(options)),
      table_(std::move(table)),
      beginnings_(make_trie(vocabulary, "")),
      continuations_(make_trie(vocabulary, options_.continuing_prefix)) {}

void WordPiece::encode(std::string_view text, size_t enough, std::vector<int32_t>& ids) const {
  size_t word = 0;  // where the word begins that is being read
  auto end_word = [&](size_t end) {
    if (end > word) encode_word(text.substr(word, end - word), ids);
  };
  for (size_t i = 0; i < text.size() && ids.size() < enough;) {
    const size_t at = i;
    const uint8_t flags = table_->flags(next_code_point(text, i));
    if (!(flags & (CharTable::kSpace | CharTable::kPunctuation))) continue;
    end_word(at);
    if (!(flags & CharTable::kSpace)) encode_word(text.substr(at, i - at), ids);
    word = i;
  }
  if (ids.size() < enough) end_word(text.size());
}

void WordPiece::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  const auto max_chars = static_cast<size_t>(options_.max_word_chars);
  if (word.size() > max_chars) {
    const auto n_chars =
        std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; });
    if (static_cast<size_t>(n_chars) > max_chars) {
      ids.push_back(options_.unknown_id);
      return;
    }
  }
  const size_t n_before = ids.size();
  const Trie* trie = &beginnings_;
  while (!word.empty()) {
    const Trie::Match match = trie->longest_prefix(word);
    if (match.value < 0) {  // one unknown piece makes the whole word unknown
      ids.resize(n_before);
      ids.push_back(options_.unknown_id);
      return;
    }
    ids.push_back(match.value);
    word.remove_prefix(match.size);
    trie = &continuations_;
  }
}

}  // namespace ferry::text
