#include "src/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"

namespace ferry {
namespace {

void check_utf8(std::string_view text) {
  const size_t at = first_invalid_utf8(text);
  if (at == std::string_view::npos) return;
  throw Error(Fault::data, "tokenizer.encode",
              fmt::format("byte {} of the text (0x{:02x}) is not valid UTF-8", at,
                          static_cast<unsigned char>(text[at])),
              "convert the file to UTF-8, for example with iconv");
}

/** How many ids are left for the texts. */
size_t room_for_text(int64_t max_length, const text::Template& pieces) {
  const int64_t n_special = pieces.n_special();
  if (max_length < n_special || max_length < 1)
    throw Error(Fault::usage, "tokenizer.encode",
                fmt::format("max_length {} leaves no room for the {} special tokens", max_length,
                            n_special),
                "choose a larger max_length");
  return static_cast<size_t>(max_length - n_special);
}

/** Cuts the lengths of two texts to `room` in all: the longer is shortened to the other, then both
 * to half. */
std::pair<size_t, size_t> cut_longest_first(size_t n_a, size_t n_b, size_t room) {
  if (n_a <= room && n_b <= room - n_a) return {n_a, n_b};
  const size_t shorter = std::min(n_a, n_b);
  size_t keep_shorter = shorter, keep_longer = 0;
  if (shorter <= room && room - shorter >= shorter) {
    keep_longer = room - shorter;
  } else {
    keep_shorter = room / 2;
    keep_longer = room - keep_shorter;
  }
  return n_a <= n_b ? std::pair{keep_shorter, keep_longer} : std::pair{keep_longer, keep_shorter};
}

}  // namespace

Tokenizer Tokenizer::open(const std::filesystem::path& model_dir) {
  return Tokenizer(text::read_tokenizer_spec(model_dir), std::make_shared<const text::CharTable>());
}

Tokenizer::Tokenizer(text::TokenizerSpec spec, std::shared_ptr<const text::CharTable> table)
    : table_(std::move(table)),
      normalizer_(spec.normalizer, table_),
      word_piece_(spec.word_piece, spec.vocabulary, table_),
      added_(make_added(spec, normalizer_, false)),
      added_normalized_(make_added(spec, normalizer_, true)),
      single_(std::move(spec.single)),
      pair_(std::move(spec.pair)),
      tokens_(std::move(spec.vocabulary)) {
  for (const text::AddedToken& token : spec.added)
    if (static_cast<size_t>(token.id) == tokens_.size()) tokens_.push_back(token.content);
  special_ids_ = {token_to_id(spec.cls), token_to_id(spec.sep), token_to_id(spec.pad),
                  token_to_id(spec.unk), token_to_id(spec.mask)};
}

text::AddedTokens Tokenizer::make_added(const text::TokenizerSpec& spec,
                                        const text::BertNormalizer& normalizer,
                                        bool normalized) {
  std::vector<text::AddedToken> chosen;
  std::set<std::string> seen;
  for (text::AddedToken token : spec.added) {
    if (token.normalized != normalized) continue;
    const std::string content = token.content;
    if (normalized) {
      token.content.clear();
      normalizer.normalize(content, token.content);
    }
    if (token.content.empty() || !seen.insert(token.content).second)
      throw Error(Fault::data, "tokenizer.open",
                  fmt::format("'{}': added token '{}' is '{}' when normalized, {}",
                              spec.file.string(), content, token.content,
                              token.content.empty() ? "which is nothing" : "as another one is"),
                  "remove it, or set its \"normalized\" to false");
    chosen.push_back(std::move(token));
  }
  return text::AddedTokens(std::move(chosen));
}

void Tokenizer::append_ids(std::string_view text, size_t enough, std::vector<int32_t>& ids) const {
  check_utf8(text);
  std::string normalized;
  auto encode_piece = [&](std::string_view piece) {
    if (ids.size() >= enough) return;
    normalized.clear();
    normalizer_.normalize(piece, normalized);
    added_normalized_.split(
        normalized, *table_,
        [&](std::string_view words) { word_piece_.encode(words, enough, ids); },
        [&](int32_t id) { ids.push_back(id); });
  };
  added_.split(text, *table_, encode_piece, [&](int32_t id) { ids.push_back(id); });
}

void Tokenizer::append_ids(std::string_view text, std::vector<int32_t>& ids) const {
  append_ids(text, std::numeric_limits<size_t>::max(), ids);
}

void Tokenizer::encode(std::string_view text, int64_t max_length, Encoding& out) const {
  const size_t room = room_for_text(max_length, single_);
  out.ids.clear();
  out.type_ids.clear();
  for (const text::Template::Piece& piece : single_.pieces) {
    if (piece.text < 0) {
      out.ids.insert(out.ids.end(), piece.ids.begin(), piece.ids.end());
    } else {
      const size_t first = out.ids.size();
      const size_t enough = room > std::numeric_limits<size_t>::max() - first ? room : first + room;
      append_ids(text, enough, out.ids);
      if (out.ids.size() > enough) out.ids.resize(enough);
    }
    out.type_ids.resize(out.ids.size(), piece.type_id);
  }
}

void Tokenizer::encode_pair(std::string_view a,
                            std::string_view b,
                            int64_t max_length,
                            Encoding& out) const {
  const size_t room = room_for_text(max_length, pair_);
  std::vector<int32_t> ids;  // of both texts
  append_ids(a, ids);
  const size_t n_a = ids.size();
  append_ids(b, ids);
  const auto [keep_a, keep_b] = cut_longest_first(n_a, ids.size() - n_a, room);

  out.ids.clear();
  out.type_ids.clear();
  for (const text::Template::Piece& piece : pair_.pieces) {
    if (piece.text < 0) {
      out.ids.insert(out.ids.end(), piece.ids.begin(), piece.ids.end());
    } else {
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(piece.text == 0 ? 0 : n_a);
      const size_t keep = piece.text == 0 ? keep_a : keep_b;
      out.ids.insert(out.ids.end(), first, first + static_cast<std::ptrdiff_t>(keep));
    }
    out.type_ids.resize(out.ids.size(), piece.type_id);
  }
}

const std::string& Tokenizer::id_to_token(int32_t id) const {
  FERRY_CHECK(id >= 0 && id < vocab_size(), "id {} of a vocabulary of {}", id, vocab_size());
  return tokens_[static_cast<size_t>(id)];
}

int32_t Tokenizer::token_to_id(std::string_view token) const {
  const auto found = std::find(tokens_.begin(), tokens_.end(), token);
  return found == tokens_.end() ? -1 : static_cast<int32_t>(found - tokens_.begin());
}

}  // namespace ferry
