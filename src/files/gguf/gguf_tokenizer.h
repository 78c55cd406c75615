#pragma once
// The tokenizer of a GGUF file as Hugging Face's files have it: byte-level BPE whose pattern
// llama.cpp has a name for, or SentencePiece's BPE. `ferry export` writes the other way
// (src/text/spec/gguf_tokens.h).

#include <string>
#include <utility>
#include <vector>

#include "src/files/gguf/gguf.h"

namespace ferry {

/** Names of files and their texts: tokenizer.json, tokenizer_config.json, generation_config.json,
 * chat templates. Throws Error(data) where the file's tokenizer is of another kind. */
std::vector<std::pair<std::string, std::string>> gguf_tokenizer_files(const GgufFile& file);

}  // namespace ferry
