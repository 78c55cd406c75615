#include "src/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/text/pre_tokenizers/byte_level.h"

namespace ferry {
namespace {

void check_text(std::string_view text) {
  if (text.size() >= std::numeric_limits<uint32_t>::max())
    throw Error(Fault::data, "tokenizer.encode",
                fmt::format("the text has {} bytes, at most 4 GiB are read as one", text.size()),
                "cut it into lines");
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

/** Leaves `n` of the items from `first` on: the first ones, or from the left the last ones. */
template <typename Items>
void cut_to(Items& items, size_t first, size_t n, bool from_left) {
  if (items.size() <= first + n) return;
  if (from_left)
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(first),
                items.end() - static_cast<std::ptrdiff_t>(n));
  else
    items.resize(first + n);
}

void clear(Encoding& out) {
  out.ids.clear();
  out.type_ids.clear();
  out.offsets.clear();
  out.texts.clear();
}

/** A template's texts with nothing around them. */
text::Template bare(bool pair) {
  text::Template t;
  t.pieces.push_back({0, {}, 0});
  if (pair) t.pieces.push_back({1, {}, 1});
  return t;
}

}  // namespace

Tokenizer Tokenizer::open(const std::filesystem::path& model_dir) {
  return Tokenizer(text::read_tokenizer_spec(model_dir));
}

Tokenizer::Tokenizer(text::TokenizerSpec spec)
    : spec_(std::move(spec)),
      added_(make_added(false)),
      added_normalized_(make_added(true)),
      single_(bare(false)),
      pair_(bare(true)),
      tokens_(std::move(spec_.vocabulary)) {
  if (const text::PostProcessor* post = spec_.post_processor.get()) {
    if (post->single()) single_ = *post->single();
    if (post->pair()) pair_ = *post->pair();
  }
  for (const text::AddedToken& token : spec_.added) {
    const auto id = static_cast<size_t>(token.id);
    if (id >= tokens_.size()) tokens_.resize(id + 1);
    tokens_[id] = token.content;
  }
  written_ = tokens_;
  sought_.resize(tokens_.size());
  std::set<std::string_view> specials;
  for (const text::AddedToken& token : spec_.added) {
    sought_[static_cast<size_t>(token.id)] = true;
    if (token.special) specials.insert(token.content);
    if (token.normalized) written_[static_cast<size_t>(token.id)] = normalized(token);
  }
  // Hugging Face goes by the text: a special token that its own normalizer changes is none.
  for (const std::string& token : written_)
    special_.push_back(specials.contains(token));
  special_ids_ = {token_to_id(spec_.cls), token_to_id(spec_.sep),  token_to_id(spec_.pad),
                  token_to_id(spec_.unk), token_to_id(spec_.mask), token_to_id(spec_.bos),
                  token_to_id(spec_.eos)};
}

text::AddedTokens Tokenizer::make_added(bool normalized) const {
  std::vector<text::AddedToken> chosen;
  std::set<std::string> seen;
  for (text::AddedToken token : spec_.added) {
    if (token.normalized != normalized) continue;
    const std::string content = token.content;
    if (normalized) token.content = this->normalized(token);
    if (token.content.empty() || !seen.insert(token.content).second)
      throw Error(Fault::data, "tokenizer.open",
                  fmt::format("'{}': added token '{}' is '{}' when normalized, {}",
                              spec_.file.string(), content, token.content,
                              token.content.empty() ? "which is nothing" : "as another one is"),
                  "remove it, or set its \"normalized\" to false");
    chosen.push_back(std::move(token));
  }
  return text::AddedTokens(std::move(chosen));
}

std::string Tokenizer::normalized(const text::AddedToken& token) const {
  if (!spec_.normalizer || token.is_normal) return token.content;
  text::NormalizedText text;
  text.assign(token.content, 0, false);
  spec_.normalizer->normalize(text);
  return std::string(text.text());
}

/** Normalizes what lies between added tokens, and encodes what lies between those of the normalized
 * text. */
void Tokenizer::append(std::string_view text,
                       size_t enough,
                       Encoding::Work& work,
                       text::TokenSink out,
                       Unit unit) const {
  check_text(text);
  const bool aligned = out.spans || (spec_.pre_tokenizer && spec_.pre_tokenizer->needs_origins());
  auto encode_normalized = [&](size_t begin, size_t end) {
    if (out.ids.size() >= enough) return;
    text::NormalizedText& part = work.text;
    part.assign(text.substr(begin, end - begin), begin, aligned, unit == Unit::rest && begin == 0);
    if (spec_.normalizer) spec_.normalizer->normalize(part);
    added_normalized_.split(
        part.text(), *spec_.table,
        [&](size_t from, size_t to) { encode_part(work, from, to, enough, out, unit); },
        [&](int32_t id, size_t from, size_t to) {
          out.ids.push_back(id);
          if (out.spans) out.spans->push_back(part.origin(from, to));
        });
  };
  added_.split(text, *spec_.table, encode_normalized,
               [&](int32_t id, size_t begin, size_t end) { out.push(id, begin, end); });
}

/** Bytes [begin, end) of the normalized text, through pre-tokenizer and model. */
void Tokenizer::encode_part(Encoding::Work& work,
                            size_t begin,
                            size_t end,
                            size_t enough,
                            text::TokenSink out,
                            Unit unit) const {
  if (out.ids.size() >= enough) return;
  text::Pieces& pieces = work.pieces;
  pieces.text.assign(work.text, begin, end);
  pieces.start();
  if (unit == Unit::word && spec_.pre_tokenizer && spec_.pre_tokenizer->gives_bytes())
    text::put_blank_before(pieces);
  if (spec_.pre_tokenizer)
    spec_.pre_tokenizer->split(pieces, spec_.model->fills_every_piece()
                                           ? enough - out.ids.size()
                                           : std::numeric_limits<size_t>::max());
  const size_t n_before = out.spans ? out.spans->size() : 0;
  spec_.model->encode(pieces, enough, out);
  if (!out.spans) return;
  for (size_t i = n_before; i < out.spans->size(); ++i) {
    text::Span& span = (*out.spans)[i];
    span = pieces.text.origin(span.begin, span.end);
  }
}

size_t Tokenizer::enough_for(size_t room, size_t first) const {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  return spec_.truncates_left || room > kAll - first ? kAll : first + room;
}

void Tokenizer::trim(std::string_view text,
                     std::span<const int32_t> ids,
                     std::span<text::Span> offsets) const {
  if (spec_.post_processor) spec_.post_processor->trim({text, ids, offsets, tokens_, sought_});
}

void Tokenizer::append_ids(std::string_view text, std::vector<int32_t>& ids, bool continues) const {
  Encoding::Work work;
  append(text, std::numeric_limits<size_t>::max(), work, {ids, nullptr},
         continues ? Unit::rest : Unit::text);
}

void Tokenizer::append_spans(std::string_view text,
                             std::vector<int32_t>& ids,
                             std::vector<text::Span>& spans,
                             bool continues) const {
  Encoding::Work work;
  const size_t first = ids.size();
  append(text, std::numeric_limits<size_t>::max(), work, {ids, &spans},
         continues ? Unit::rest : Unit::text);
  trim(text, std::span(ids).subspan(first), std::span(spans).subspan(first));
}

std::vector<std::string> Tokenizer::control_texts() const {
  std::vector<std::string> texts;
  for (const text::AddedToken& token : spec_.added)
    if (token.special) texts.push_back(token.content);
  return texts;
}

void Tokenizer::append_part(std::string_view part,
                            bool begins,
                            bool ends,
                            bool continues,
                            std::vector<int32_t>& ids) const {
  bool is_behind = false;
  for (const text::Template::Piece& piece : single_.pieces) {
    if (piece.text >= 0) {
      append_ids(part, ids, continues);
      is_behind = true;
    } else if (is_behind ? ends : begins) {
      ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
    }
  }
}

void Tokenizer::encode(std::string_view text,
                       int64_t max_length,
                       Encoding& out,
                       Offsets offsets) const {
  const size_t room = room_for_text(max_length, single_);
  const bool aligned = offsets == Offsets::keep;
  clear(out);
  for (const text::Template::Piece& piece : single_.pieces) {
    if (piece.text < 0) {
      out.ids.insert(out.ids.end(), piece.ids.begin(), piece.ids.end());
    } else {
      const size_t first = out.ids.size();
      append(text, enough_for(room, first), out.work, {out.ids, aligned ? &out.offsets : nullptr});
      cut_to(out.ids, first, room, spec_.truncates_left);
      if (aligned) {
        cut_to(out.offsets, first, room, spec_.truncates_left);
        trim(text, std::span(out.ids).subspan(first), std::span(out.offsets).subspan(first));
      }
    }
    out.type_ids.resize(out.ids.size(), piece.type_id);
    if (!aligned) continue;
    out.offsets.resize(out.ids.size());
    out.texts.resize(out.ids.size(), static_cast<int8_t>(piece.text));
  }
}

void Tokenizer::encode_pair(std::string_view a,
                            std::string_view b,
                            int64_t max_length,
                            Encoding& out,
                            Offsets offsets) const {
  const size_t room = room_for_text(max_length, pair_);
  const bool aligned = offsets == Offsets::keep;
  clear(out);
  std::vector<int32_t>& ids = out.work.ids;
  std::vector<text::Span>& spans = out.work.offsets;
  ids.clear();
  spans.clear();
  const text::TokenSink sink{ids, aligned ? &spans : nullptr};
  append(a, std::numeric_limits<size_t>::max(), out.work, sink);
  const size_t n_a = ids.size();
  append(b, std::numeric_limits<size_t>::max(), out.work, sink);
  const size_t n_b = ids.size() - n_a;
  const auto [keep_a, keep_b] = cut_longest_first(n_a, n_b, room);
  const size_t first_a = spec_.truncates_left ? n_a - keep_a : 0,
               first_b = n_a + (spec_.truncates_left ? n_b - keep_b : 0);
  if (aligned) {
    trim(a, std::span(ids).subspan(first_a, keep_a), std::span(spans).subspan(first_a, keep_a));
    trim(b, std::span(ids).subspan(first_b, keep_b), std::span(spans).subspan(first_b, keep_b));
  }

  for (const text::Template::Piece& piece : pair_.pieces) {
    if (piece.text < 0) {
      out.ids.insert(out.ids.end(), piece.ids.begin(), piece.ids.end());
    } else {
      const auto first = static_cast<std::ptrdiff_t>(piece.text == 0 ? first_a : first_b);
      const auto last = first + static_cast<std::ptrdiff_t>(piece.text == 0 ? keep_a : keep_b);
      out.ids.insert(out.ids.end(), ids.begin() + first, ids.begin() + last);
      if (aligned)
        out.offsets.insert(out.offsets.end(), spans.begin() + first, spans.begin() + last);
    }
    out.type_ids.resize(out.ids.size(), piece.type_id);
    if (!aligned) continue;
    out.offsets.resize(out.ids.size());
    out.texts.resize(out.ids.size(), static_cast<int8_t>(piece.text));
  }
}

void Tokenizer::encode_words(std::span<const std::string_view> words,
                             int64_t max_length,
                             Encoding& out,
                             std::vector<int32_t>& first_tokens) const {
  const size_t room = room_for_text(max_length, single_);
  clear(out);
  first_tokens.assign(words.size(), -1);
  for (const text::Template::Piece& piece : single_.pieces) {
    if (piece.text < 0) {
      out.ids.insert(out.ids.end(), piece.ids.begin(), piece.ids.end());
    } else {
      const size_t first = out.ids.size();
      const size_t enough = enough_for(room, first);
      for (size_t w = 0; w < words.size() && out.ids.size() < enough; ++w) {
        const size_t before = out.ids.size();
        append(words[w], enough, out.work, {out.ids, nullptr}, Unit::word);
        if (out.ids.size() > before) first_tokens[w] = static_cast<int32_t>(before);
      }
      const auto n_all = out.ids.size() - first;
      cut_to(out.ids, first, room, spec_.truncates_left);
      if (const auto n_cut = static_cast<int32_t>(n_all - (out.ids.size() - first));
          spec_.truncates_left && n_cut > 0)
        for (int32_t& token : first_tokens)
          if (token >= 0) token = token - n_cut < static_cast<int32_t>(first) ? -1 : token - n_cut;
    }
    out.type_ids.resize(out.ids.size(), piece.type_id);
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids)
    if (id >= 0 && id < vocab_size() && !(skip_special && special_[static_cast<size_t>(id)]) &&
        !tokens_[static_cast<size_t>(id)].empty())
      tokens.push_back(written_[static_cast<size_t>(id)]);
  if (spec_.decoder)
    spec_.decoder->decode(tokens);
  else
    for (size_t i = 1; i < tokens.size(); ++i)
      tokens[i].insert(0, 1, ' ');
  std::string text;
  for (const std::string& token : tokens)
    text += token;
  return text;
}

const std::string& Tokenizer::id_to_token(int32_t id) const {
  FERRY_CHECK(id >= 0 && id < vocab_size(), "id {} of a vocabulary of {}", id, vocab_size());
  return tokens_[static_cast<size_t>(id)];
}

int32_t Tokenizer::token_to_id(std::string_view token) const {
  if (token.empty()) return -1;  // the name of no token, though one of Whisper's has no bytes
  const auto found = std::find(tokens_.begin(), tokens_.end(), token);
  return found == tokens_.end() ? -1 : static_cast<int32_t>(found - tokens_.begin());
}

}  // namespace ferry
