#pragma once
// Files that the tests of the tokenizer share: a small model written to a directory of its own.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/text/tokenizer.h"

namespace ferry::test {

/** A directory that is there while the object lives. */
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ferry-text-XXXXXX").string();
    if (!mkdtemp(pattern.data())) ADD_FAILURE() << "mkdtemp failed for " << pattern;
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

inline const std::vector<std::string> kSmallVocabulary = {
    "[PAD]", "[UNK]",  "[CLS]", "[SEP]",    "[MASK]", "hello",    "world", "un",
    "##aff", "##able", "##s",   ",",        "!",      "the",      "cafe",  "日",
    "##本",  "[",      "]",     "sep",      "i",      "##\u0307", "é",     "a",
    "##a",   "\u0301", "Hello", "##\u0301", "café",   "istanbul"};

/** tokenizer.json of an uncased BERT with the small vocabulary. */
inline nlohmann::json small_model() {
  nlohmann::json vocab = nlohmann::json::object();
  for (size_t id = 0; id < kSmallVocabulary.size(); ++id)
    vocab[kSmallVocabulary[id]] = id;
  nlohmann::json model = nlohmann::json::parse(R"({
    "version": "1.0",
    "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0},
    "padding": {"strategy": {"Fixed": 128}, "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
    "added_tokens": [
      {"id": 0, "special": true, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 3, "special": true, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 4, "special": true, "content": "[MASK]", "single_word": false, "lstrip": true, "rstrip": false, "normalized": false}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
      "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                         "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 10}})");
  model["model"]["vocab"] = vocab;
  return model;
}

inline Tokenizer open_model(const nlohmann::json& model) {
  TemporaryDirectory directory;
  directory.write("tokenizer.json", model.dump());
  return Tokenizer::open(directory.path());
}

/** The tokens of a text, without the special ones that are put around it, joined by blanks. */
inline std::string tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.append_ids(text, ids);
  std::string joined;
  for (int32_t id : ids)
    joined += (joined.empty() ? "" : " ") + tokenizer.id_to_token(id);
  return joined;
}

/** Expects an Error of the kind, whose message has all of `parts`. */
template <typename Action>
void expect_error(Fault fault, const std::vector<std::string>& parts, Action action) {
  try {
    action();
    ADD_FAILURE() << "no Error, expected one with '" << parts.front() << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "'" << part << "' is not in: " << error.what();
  }
}

}  // namespace ferry::test
