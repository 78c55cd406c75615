#include "src/text/models/wordpiece.h"

#include <fmt/format.h>

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

WordPiece::WordPiece(WordPieceOptions options, const std::vector<std::string>& vocabulary)
    : options_(std::move(options)),
      beginnings_(make_trie(vocabulary, "")),
      continuations_(make_trie(vocabulary, options_.continuing_prefix)) {}

ReadModel WordPiece::read(const JsonReader& section, const StageContext&, bool gives_bytes) {
  if (gives_bytes) section.fail("is of type WordPiece, which has no letters for bytes", kSaveAgain);
  ReadModel read;
  WordPieceOptions options;
  read.unknown = section.text("unk_token");
  options.continuing_prefix = section.text("continuing_subword_prefix");
  options.max_word_chars = id_of(section.at("max_input_chars_per_word"));
  read.vocabulary = read_vocabulary(section.at("vocab"));
  const auto found = std::find(read.vocabulary.begin(), read.vocabulary.end(), read.unknown);
  if (found == read.vocabulary.end() || read.unknown.empty())
    section.fail(fmt::format("has no unknown token '{}' in its vocabulary", read.unknown),
                 "add it, or name the right one as unk_token");
  options.unknown_id = static_cast<int32_t>(found - read.vocabulary.begin());
  read.model = std::make_unique<WordPiece>(std::move(options), read.vocabulary);
  return read;
}

void WordPiece::encode(const Pieces& pieces, size_t enough, TokenSink out) const {
  const std::string_view text = pieces.text.text();
  for (const Span piece : pieces.spans) {
    if (out.ids.size() >= enough) return;
    if (out.spans)
      encode_word<true>(text, piece, out);
    else
      encode_word<false>(text, piece, out);
  }
}

bool WordPiece::too_long(std::string_view word) const {
  const auto max_chars = static_cast<size_t>(options_.max_word_chars);
  if (word.size() <= max_chars) return false;
  const auto n_chars =
      std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return static_cast<size_t>(n_chars) > max_chars;
}

template <bool kSpans>
void WordPiece::encode_word(std::string_view text, Span piece, TokenSink out) const {
  std::string_view word = text.substr(piece.begin, piece.size());
  const size_t n_before = out.ids.size();
  const Trie* trie = &beginnings_;
  bool unknown = too_long(word);
  while (!word.empty() && !unknown) {
    const Trie::Match match = trie->longest_prefix(word);
    unknown = match.value < 0;  // one unknown piece makes the whole word unknown
    if (unknown) break;
    out.ids.push_back(match.value);
    if constexpr (kSpans) {
      const size_t at = piece.end - word.size();
      out.spans->push_back(span_of(at, at + match.size));
    }
    word.remove_prefix(match.size);
    trie = &continuations_;
  }
  if (!unknown) return;
  if constexpr (kSpans) out.spans->resize(out.spans->size() - (out.ids.size() - n_before));
  out.ids.resize(n_before);
  out.ids.push_back(options_.unknown_id);
  if constexpr (kSpans) out.spans->push_back(piece);
}

}  // namespace ferry::text
