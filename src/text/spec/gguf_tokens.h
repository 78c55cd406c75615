#pragma once
// A model directory's tokenizer as a GGUF file writes it down, for llama.cpp: byte-level BPE with
// the name of its split pattern, or SentencePiece's BPE with scores. A tokenizer that llama.cpp
// would run in another way is refused. `ferry export --format gguf` calls it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ferry::text {

/** The kinds of tokens, with the format's numbers. */
enum class GgufTokenKind : int64_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct GgufTokens {
  std::string model;  ///< "gpt2": byte-level BPE; "llama": SentencePiece's BPE
  std::string pre;    ///< llama.cpp's name of the pattern that splits texts; "llama": "default"
  std::vector<std::string> tokens;   ///< by id, none of them empty
  std::vector<GgufTokenKind> kinds;  ///< by id
  std::vector<double> scores;        ///< by id, of "llama": the greater is merged first
  std::vector<std::string> merges;   ///< "a b", of "gpt2", the first comes first
  int32_t bos = -1, eos = -1, unk = -1, pad = -1;  ///< -1: there is none
  int32_t first = -1, last = -1;    ///< what encoding puts before and behind a text; -1: nothing
  bool adds_blank = false;          ///< of "llama": before a text
  bool takes_blanks_after = false;  ///< control tokens take the white space behind them

  /** The id of a token, -1 where there is none. Takes time that grows with the vocabulary. */
  int32_t find(const std::string& token) const;
};

/** Throws Error(data) that names what a GGUF file cannot say. */
GgufTokens read_gguf_tokens(const std::filesystem::path& model_dir);

}  // namespace ferry::text
