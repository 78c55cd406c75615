#pragma once
// Bpe, byte-pair encoding: begins with a piece's characters (or bytes) and joins, again and again,
// the pair of neighbours that was merged first in training, the leftmost of equals. A piece that is
// a token is looked up whole: each token learns at its first use whether merging makes it of its
// characters. No other state changes.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/models/merge_table.h"
#include "src/text/models/merges.h"
#include "src/text/registry.h"
#include "src/text/token_map.h"

namespace ferry::text {

struct BpeOptions {
  std::string unknown;                         // empty: what is not in the vocabulary is dropped
  std::string continuing_prefix, word_suffix;  // of a piece's later symbols, of its last
  bool fuse_unknown = false;                   // unknown symbols side by side are one
  bool byte_fallback = false;                  // unknown characters become <0x..> tokens
  bool ignore_merges = false;                  // a piece that is a token stays one
  bool leftmost_first = false;  // whichever two it is of, where a token can be made twice
  bool bytes = false;           // pieces are bytes, that the vocabulary writes as GPT-2's letters
};

class Bpe final : public Model {
 public:
  /** vocabulary: the token of each id. Throws std::invalid_argument if the unknown token is
   * not in it. */
  Bpe(BpeOptions options, const std::vector<std::string>& vocabulary, const Merges& merges);

  static ReadModel read(const JsonReader& section, const StageContext& context, bool gives_bytes);

  void encode(const Pieces& pieces, size_t enough, TokenSink out) const override;
  bool fills_every_piece() const override { return fills_every_piece_; }

 private:
  struct Symbol {
    int32_t id;
    uint32_t size;  // bytes
  };
  class Work;

  void find_byte_ids(const TokenMap& ids);
  void encode_piece(std::string_view text, Span piece, Work& work, TokenSink out) const;

  static size_t n_bytes_of(const Work& work);
  void push_after_gaps(std::string_view piece, size_t begin, const Work& work, TokenSink out) const;
  void set_symbols(std::string_view piece, Work& work) const;
  int32_t symbol_id(std::string_view unit, bool first, bool last) const;
  bool fall_back(std::string_view unit, Work& work) const;
  void merge(Work& work) const;
  void merge_short(std::vector<Symbol>& symbols, std::vector<uint32_t>& ranks) const;
  void merge_long(std::vector<Symbol>& symbols) const;
  bool is_whole(int32_t id, std::string_view piece, Work& work) const;

  BpeOptions options_;
  bool plain_;       // no prefix and suffix
  TokenMap tokens_;  // in the pieces' bytes
  MergeTable merges_;
  int32_t unknown_id_ = -1;
  std::array<int32_t, 256> byte_ids_;  // of <0x00> to <0xFF>, -1 where there is none
  std::array<int32_t, 256> unit_ids_;  // of one byte by itself, if plain
  bool fills_every_piece_;
  std::vector<std::string> joined_;  // characters that tokens hold before a blank's letter
  bool cuts_at_blanks_;              // where none of these is before it

  enum Whole : uint8_t { not_asked, yes, no };
  std::unique_ptr<std::atomic<uint8_t>[]> whole_;  // by id: does merging make it of its text?
};

}  // namespace ferry::text
