#pragma once
// Tokenizer turns text into the ids of a model's vocabulary and back, token for token as Hugging
// Face `tokenizers` does. It calls the stages (stages.h) that the model directory's files name.
// Opened by whoever reads text (training data, predict); text in, ids, type ids and offsets out.
//
//   const Tokenizer tokenizer = Tokenizer::open("models/bert");
//   Encoding e;                                    // reuse it: its memory is kept
//   tokenizer.encode("A sentence.", 128, e);       // e.ids: [CLS] a sentence . [SEP]
//   tokenizer.encode_pair("A", "B", 128, e);       // e.type_ids: 0 0 0 1 1
//   tokenizer.decode(e.ids);                       // "a b"
//
// Everything const may be called from any number of threads at once.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/added_tokens.h"
#include "src/text/pieces.h"
#include "src/text/spec/tokenizer_spec.h"

namespace ferry {

/** One encoded text or pair. */
struct Encoding {
  std::vector<int32_t> ids;       // (tokens)
  std::vector<int32_t> type_ids;  // (tokens), 0 for the first text, 1 for the second

  /** If asked for: each token's bytes in its text, and which text that is, 0 or 1. A special token
   * has the empty span and -1. */
  std::vector<text::Span> offsets;  // (tokens)
  std::vector<int8_t> texts;        // (tokens)

  /** Memory of encode, of no meaning to others. */
  struct Work {
    text::NormalizedText text;
    text::Pieces pieces;
    std::vector<int32_t> ids;         // of both texts of a pair
    std::vector<text::Span> offsets;  // of both
  } work;
};

enum class Offsets { skip, keep };

/** The ids of the special tokens; -1 where the vocabulary has none. Cls, sep and unk are always
 * there if read from vocab.txt; unk always for WordPiece. */
struct SpecialIds {
  int32_t cls = -1, sep = -1, pad = -1, unk = -1, mask = -1, bos = -1, eos = -1;
};

class Tokenizer {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  /** Reads the tokenizer of a Hugging Face model directory: `tokenizer.json`, or else `vocab.txt`,
   * `vocab.json` with `merges.txt`, `tekken.json`, a `.tiktoken` file or a SentencePiece `.model`,
   * with `tokenizer_config.json`, and where that has no added_tokens_decoder
   * `special_tokens_map.json` and `added_tokens.json`. The length of truncation and the padding
   * that tokenizer.json may set are not applied: the caller's max_length decides. Throws Error
   * (data) that names the file and what is wrong with it. */
  static Tokenizer open(const std::filesystem::path& model_dir);

  /** Has the directory a file that open() reads? */
  static bool is_in(const std::filesystem::path& model_dir) {
    return text::has_tokenizer(model_dir);
  }

  /** Overwrites `out` with at most max_length ids, special tokens included; the text is cut at its
   * end, or where truncation_side says left at its beginning. Throws Error: data if the text is not
   * UTF-8 (with the offset; the caller adds file and line) or has 4 GiB, usage if max_length leaves
   * no room for the special tokens. */
  void encode(std::string_view text,
              int64_t max_length,
              Encoding& out,
              Offsets offsets = Offsets::skip) const;

  /** The same for two texts; where both are too long the longer is cut first, as Hugging Face's
   * longest_first. */
  void encode_pair(std::string_view a,
                   std::string_view b,
                   int64_t max_length,
                   Encoding& out,
                   Offsets offsets = Offsets::skip) const;

  /** The same for a text that comes in words, each of which is encoded by itself, as transformers
   * does with is_split_into_words. A byte-level model sees a blank before each word, the first too
   * (add_prefix_space). `first_tokens` gets the place of each word's first token, or -1 where it
   * was cut off or is nothing to the tokenizer. */
  void encode_words(std::span<const std::string_view> words,
                    int64_t max_length,
                    Encoding& out,
                    std::vector<int32_t>& first_tokens) const;

  /** Appends the ids of the text alone, without special tokens and uncut. `continues`: it is the
   * second part of a longer text, so that what the stages put in front of a text is left out.
   * Throws as encode. */
  void append_ids(std::string_view text, std::vector<int32_t>& ids, bool continues = false) const;
  /** The same with the bytes of each token in the text, as encode() tells them. */
  void append_spans(std::string_view text,
                    std::vector<int32_t>& ids,
                    std::vector<text::Span>& spans,
                    bool continues = false) const;
  /** The same of a part of a text (src/text/text_cut.h): with the special tokens in front of the
   * text where it begins with the part, and those behind it where it ends with it. */
  void append_part(std::string_view part,
                   bool begins,
                   bool ends,
                   bool continues,
                   std::vector<int32_t>& ids) const;

  /** The text of ids; of those that the vocabulary has not, nothing. Special tokens are left out,
   * or written as they are. */
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  /** How many ids there are, added tokens included. */
  int64_t vocab_size() const { return static_cast<int64_t>(tokens_.size()); }
  const SpecialIds& special_ids() const { return special_ids_; }

  /** Special tokens that encode (encode_pair) adds. */
  int64_t n_added_single() const { return single_.n_special(); }
  int64_t n_added_pair() const { return pair_.n_special(); }

  /** The token of an id in [0, vocab_size()). */
  const std::string& id_to_token(int32_t id) const;

  /** The texts of the tokens that control a model: those that decode leaves out. */
  std::vector<std::string> control_texts() const;
  bool is_control(int32_t id) const { return special_[static_cast<size_t>(id)]; }

  /** The id of a token, -1 if there is none. Takes time that grows with the vocabulary. */
  int32_t token_to_id(std::string_view token) const;

 private:
  explicit Tokenizer(text::TokenizerSpec spec);
  text::AddedTokens make_added(bool normalized) const;
  std::string normalized(const text::AddedToken& token) const;

  /** A whole text, one of its words, or the rest of a text that was cut. */
  enum class Unit { text, word, rest };
  void append(std::string_view text,
              size_t enough,
              Encoding::Work& work,
              text::TokenSink out,
              Unit unit = Unit::text) const;
  /** The ids after which encoding may stop, where `first` were there before the text. */
  size_t enough_for(size_t room, size_t first) const;
  void encode_part(Encoding::Work& work,
                   size_t begin,
                   size_t end,
                   size_t enough,
                   text::TokenSink out,
                   Unit unit) const;
  void trim(std::string_view text,
            std::span<const int32_t> ids,
            std::span<text::Span> offsets) const;

  text::TokenizerSpec spec_;
  text::AddedTokens added_;             // sought in the text as it comes
  text::AddedTokens added_normalized_;  // sought in the normalized text
  text::Template single_, pair_;
  std::vector<std::string> tokens_;   // by id
  std::vector<std::string> written_;  // by id: what decode takes for the token
  std::vector<bool> special_;         // by id: may decode leave it out?
  std::vector<bool> sought_;          // by id: is it an added token?
  SpecialIds special_ids_;
};

}  // namespace ferry
