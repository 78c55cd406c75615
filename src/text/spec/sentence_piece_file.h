#pragma once
// What a SentencePiece .model file says: pieces with their scores, how it was trained, how it
// normalizes. The file is a message of protocol buffers, read field by field with every length
// checked; fields that say nothing about encoding are passed over. Called by the reader of
// tokenizers that come with such a file.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::text {

struct SentencePieceFile {
  enum class Algorithm { unigram = 1, bpe = 2 };
  enum class Kind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::normal;
  };

  std::vector<Piece> pieces;  // by id; no two equal, none empty
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false;
  int32_t unknown_id = 0, bos_id = 1, eos_id = 2, pad_id = -1;  // -1 and beyond: there is none
  std::string charsmap;                                         // empty: there is none
  bool add_dummy_prefix = true, remove_extra_whitespaces = true;

  /** The text of a piece, empty if there is none of that id. */
  std::string_view text_of(int32_t id) const {
    const bool is_there = id >= 0 && static_cast<size_t>(id) < pieces.size();
    return is_there ? std::string_view(pieces[static_cast<size_t>(id)].text) : std::string_view();
  }
};

/** Throws Error (data) that names the file and what is wrong with it. */
SentencePieceFile read_sentence_piece_file(const std::filesystem::path& file);

}  // namespace ferry::text
