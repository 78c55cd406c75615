#pragma once
// The names of models' parts in Hugging Face's files and in llama.cpp's: of families, of tensors,
// of the patterns that split texts. The export and the reader of GGUF models stand on it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

/** The names of one family. */
struct GgufNames {
  std::string_view model_type, architecture, hf_class;
  std::string_view words, norm, head, layers;  ///< prefixes of Hugging Face's names
  /** Modules of a layer, Hugging Face's and llama.cpp's. */
  std::vector<std::pair<std::string_view, std::string_view>> modules;

  /** llama.cpp's name of a tensor; empty where it has none. */
  std::string gguf_name(std::string_view hf) const;
  /** Hugging Face's. */
  std::string hf_name(std::string_view gguf) const;
};

/** A file is read as the first family of its architecture. */
const std::vector<GgufNames>& gguf_names();

/** A step of splitting that is no pattern: a ByteLevel that splits, and digits one by one. */
inline constexpr std::string_view kSplitsByteWords = "words", kSplitsEachDigit = "digits";

/** A way to split texts, by llama.cpp's name. */
struct GgufSplit {
  std::string_view pre;
  std::vector<std::string_view> steps;
  bool ignores_merges = false;  ///< llama.cpp takes a piece that is a token as it is
  std::vector<std::string_view> other_names = {};
  bool composes = false;  ///< its families apply Unicode's NFC first, which files do not say
};
const std::vector<GgufSplit>& gguf_splits();

}  // namespace ferry
