#pragma once
// TokenizerSpec is what a model directory's files say about its tokenizer, checked:
// read_tokenizer_spec reads them, the Tokenizer is built from it. No other code knows the files'
// formats.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/text/added_tokens.h"
#include "src/text/bert_normalizer.h"
#include "src/text/wordpiece.h"

namespace ferry::text {

/** The tokens of one text or pair in order: runs of special tokens, and the places of the texts. */
struct Template {
  struct Piece {
    int text = -1;             // 0: the first text, 1: the second, -1: special tokens
    std::vector<int32_t> ids;  // of the special tokens
    int32_t type_id = 0;
  };
  std::vector<Piece> pieces;

  int64_t n_special() const {
    int64_t n = 0;
    for (const Piece& piece : pieces)
      n += static_cast<int64_t>(piece.ids.size());
    return n;
  }
};

struct TokenizerSpec {
  std::filesystem::path file;           // the one that it was read from, for messages
  std::vector<std::string> vocabulary;  // WordPiece's token of each id; no two equal, none empty
  std::vector<AddedToken>
      added;  // an id is the vocabulary's of the same content, or the next after it
  WordPieceOptions word_piece;
  BertNormalizerOptions normalizer;
  Template single, pair;
  std::string cls = "[CLS]", sep = "[SEP]", pad = "[PAD]", unk = "[UNK]", mask = "[MASK]";
};

/** Reads `tokenizer.json`, or else `vocab.txt` with `tokenizer_config.json` if it is there. Throws
 * Error (data). */
TokenizerSpec read_tokenizer_spec(const std::filesystem::path& model_dir);

}  // namespace ferry::text
