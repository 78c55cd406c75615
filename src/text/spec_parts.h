#pragma once
// The parts that the readers of tokenizer.json and of vocab.txt share, and their entries. Included
// by them and by tokenizer_spec.cpp, which chooses between them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/base/json_reader.h"
#include "src/text/tokenizer_spec.h"

namespace ferry::text {

constexpr std::string_view kSupported =
    "supported are BERT's tokenizers: model WordPiece, normalizer BertNormalizer, pre-tokenizer "
    "BertPreTokenizer, "
    "post-processor TemplateProcessing or BertProcessing";

constexpr std::string_view kFetchAgain = "is the download complete? fetch the model's files again";

/** The most that an id may be, and a size that is kept as one. */
constexpr int64_t kId_max = INT32_MAX - 1;

/** An Error (data, "tokenizer.open") about a file. */
[[noreturn]] void fail(const std::filesystem::path& file,
                       std::string_view what,
                       std::string_view hint);

/** A JSON file; an error in it is one of "tokenizer.open". */
JsonReader read_json_file(const std::filesystem::path& file);

inline int32_t id_of(const JsonReader& value) {
  return static_cast<int32_t>(value.integer(0, kId_max));
}

/** The ids of a spec's tokens, and its added tokens' door. */
class KnownTokens {
 public:
  /** spec.vocabulary is complete. */
  explicit KnownTokens(TokenizerSpec& spec);

  /** Appends to spec.added. Fails if it is empty, there already, or has not the id that Hugging
   * Face gives it: the vocabulary's, or else the next one (Hugging Face would only warn, and use
   * another id than the file says). */
  void add(AddedToken token);

  /** -1 if there is none. */
  int32_t find(const std::string& token) const;
  bool is_added(const std::string& token) const { return added_.contains(token); }

  /** The id of a token that has to be there; role says what for, in the message. */
  int32_t require(const std::string& token, std::string_view role) const;

  size_t size() const { return ids_.size(); }

 private:
  TokenizerSpec& spec_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<std::string, int32_t> added_;
};

/** [CLS] text [SEP], and for pairs text [SEP] of type 1. */
Template bert_template(bool pair, int32_t cls, int32_t sep);

/** Reads spec.file; the names of the special tokens are there already. */
void read_tokenizer_json(TokenizerSpec& spec);

/** Reads spec.file; config is tokenizer_config.json's, or null. */
void read_vocab_txt(const JsonReader* config, TokenizerSpec& spec);

}  // namespace ferry::text
