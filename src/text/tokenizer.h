#pragma once
// Tokenizer turns text into the ids of a BERT WordPiece vocabulary, token for token as Hugging Face
// `tokenizers` does. Opened from a model directory by whoever reads text (training data, predict);
// text in, ids and type ids out.
//
//   const Tokenizer tokenizer = Tokenizer::open("models/bert");
//   Encoding e;                                    // reuse it: its memory is kept
//   tokenizer.encode("A sentence.", 128, e);       // e.ids: [CLS] a sentence . [SEP]
//   tokenizer.encode_pair("A", "B", 128, e);       // e.type_ids: 0 0 0 1 1
//
// Everything const may be called from any number of threads at once.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/added_tokens.h"
#include "src/text/bert_normalizer.h"
#include "src/text/tokenizer_spec.h"
#include "src/text/wordpiece.h"

namespace ferry {

/** One encoded text or pair. */
struct Encoding {
  std::vector<int32_t> ids;       // (tokens)
  std::vector<int32_t> type_ids;  // (tokens), 0 for the first text, 1 for the second
};

/** The ids of the special tokens; -1 where the vocabulary has none. Cls, sep and unk are always
 * there if read from vocab.txt; unk always. */
struct SpecialIds {
  int32_t cls = -1, sep = -1, pad = -1, unk = -1, mask = -1;
};

class Tokenizer {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  /** Reads `tokenizer.json`, or `vocab.txt` with `tokenizer_config.json`, of a Hugging Face model
   * directory. The truncation and padding that tokenizer.json may set are not applied: the caller's
   * max_length decides. Throws Error (data) that names the file and what is wrong with it. */
  static Tokenizer open(const std::filesystem::path& model_dir);

  /** Overwrites `out` with at most max_length ids, special tokens included; the text is cut at its
   * end. Throws Error: data if the text is not UTF-8 (with the offset; the caller adds file and
   * line), usage if max_length leaves no room for the special tokens. */
  void encode(std::string_view text, int64_t max_length, Encoding& out) const;

  /** The same for two texts; where both are too long the longer is cut first, as Hugging Face's
   * longest_first. */
  void encode_pair(std::string_view a, std::string_view b, int64_t max_length, Encoding& out) const;

  /** Appends the ids of the text alone, without special tokens and uncut. Throws as encode. */
  void append_ids(std::string_view text, std::vector<int32_t>& ids) const;

  /** How many ids there are, added tokens included. */
  int64_t vocab_size() const { return static_cast<int64_t>(tokens_.size()); }
  const SpecialIds& special_ids() const { return special_ids_; }

  /** Special tokens that encode (encode_pair) adds. */
  int64_t n_added_single() const { return single_.n_special(); }
  int64_t n_added_pair() const { return pair_.n_special(); }

  /** The token of an id in [0, vocab_size()). */
  const std::string& id_to_token(int32_t id) const;

  /** The id of a token, -1 if there is none. Takes time that grows with the vocabulary. */
  int32_t token_to_id(std::string_view token) const;

 private:
  Tokenizer(text::TokenizerSpec spec, std::shared_ptr<const text::CharTable> table);
  static text::AddedTokens make_added(const text::TokenizerSpec& spec,
                                      const text::BertNormalizer& normalizer,
                                      bool normalized);

  void append_ids(std::string_view text, size_t enough, std::vector<int32_t>& ids) const;

  std::shared_ptr<const text::CharTable> table_;
  text::BertNormalizer normalizer_;
  text::WordPiece word_piece_;
  text::AddedTokens added_;             // sought in the text as it comes
  text::AddedTokens added_normalized_;  // sought in the normalized text
  text::Template single_, pair_;
  std::vector<std::string> tokens_;  // by id
  SpecialIds special_ids_;
};

}  // namespace ferry
