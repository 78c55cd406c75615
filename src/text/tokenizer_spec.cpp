#include "src/text/tokenizer_spec.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "src/base/error.h"
#include "src/files/plain_file.h"
#include "src/text/spec_parts.h"

namespace ferry::text {

void fail(const std::filesystem::path& file, std::string_view what, std::string_view hint) {
  throw Error(Fault::data, "tokenizer.open", fmt::format("'{}': {}", file.string(), what), hint);
}

JsonReader read_json_file(const std::filesystem::path& file) {
  return JsonReader::parse(read_text_file(file),
                           {file.string(), "tokenizer.open", std::string(kFetchAgain)});
}

KnownTokens::KnownTokens(TokenizerSpec& spec) : spec_(spec) {
  ids_.reserve(spec.vocabulary.size());
  for (size_t i = 0; i < spec.vocabulary.size(); ++i)
    ids_.emplace(spec.vocabulary[i], static_cast<int32_t>(i));
}

void KnownTokens::add(AddedToken token) {
  if (token.content.empty())
    fail(spec_.file, fmt::format("the added token {} is empty", token.id), "remove it");
  if (!added_.emplace(token.content, token.id).second)
    fail(spec_.file, fmt::format("adds the token '{}' twice", token.content), "keep one of them");
  const auto [found, is_new] = ids_.emplace(token.content, static_cast<int32_t>(ids_.size()));
  if (found->second != token.id)
    fail(spec_.file,
         fmt::format("gives the added token '{}' the id {}, expected {}{}", token.content, token.id,
                     found->second, is_new ? ", the next one" : " as in the vocabulary"),
         "save the tokenizer again with Hugging Face transformers");
  spec_.added.push_back(std::move(token));
}

int32_t KnownTokens::find(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

int32_t KnownTokens::require(const std::string& token, std::string_view role) const {
  const int32_t id = find(token);
  if (id < 0)
    fail(spec_.file, fmt::format("the vocabulary has no {} token '{}'", role, token),
         "add it, or name the right one in tokenizer_config.json");
  return id;
}

Template bert_template(bool pair, int32_t cls, int32_t sep) {
  Template t;
  t.pieces = {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}};
  if (pair) t.pieces.insert(t.pieces.end(), {{1, {}, 1}, {-1, {sep}, 1}});
  return t;
}

namespace {

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/** The names of the special tokens: "[CLS]", or {"content": "[CLS]", ...}. */
void read_names(const JsonReader& config, TokenizerSpec& spec) {
  const std::array<std::pair<std::string_view, std::string*>, 5> names = {
      {{"cls_token", &spec.cls},
       {"sep_token", &spec.sep},
       {"pad_token", &spec.pad},
       {"unk_token", &spec.unk},
       {"mask_token", &spec.mask}}};
  for (const auto& [key, name] : names)
    if (const auto field = config.find(key))
      *name = field->is_object() ? field->text("content") : field->text();
}

/** transformers follows tokenizer_config.json, tokenizers follows tokenizer.json: where they differ
 * nobody can say what the model was trained with. */
void check_agreement(const JsonReader& config, const TokenizerSpec& spec) {
  const std::array<std::pair<std::string_view, bool>, 3> flags = {
      {{"do_lower_case", spec.normalizer.lowercase},
       {"strip_accents", spec.normalizer.strip_accents},
       {"tokenize_chinese_chars", spec.normalizer.handle_chinese_chars}}};
  for (const auto& [key, value] : flags)
    if (const auto field = config.find(key); field && field->flag() != value)
      field->fail(fmt::format("is {}, but the normalizer of '{}' says {}", !value,
                              spec.file.filename().string(), value),
                  "make the two files agree on what the model was trained with");
}

}  // namespace

TokenizerSpec read_tokenizer_spec(const std::filesystem::path& model_dir) {
  TokenizerSpec spec;
  const std::filesystem::path config_file = model_dir / "tokenizer_config.json";
  std::optional<JsonReader> config;
  if (is_file(config_file)) {
    config = read_json_file(config_file);
    read_names(*config, spec);
  }
  if (is_file(model_dir / "tokenizer.json")) {
    spec.file = model_dir / "tokenizer.json";
    read_tokenizer_json(spec);
    if (config) check_agreement(*config, spec);
  } else if (is_file(model_dir / "vocab.txt")) {
    spec.file = model_dir / "vocab.txt";
    read_vocab_txt(config ? &*config : nullptr, spec);
  } else {
    fail(model_dir, "has neither tokenizer.json nor vocab.txt",
         "give a Hugging Face model directory of a BERT");
  }
  return spec;
}

}  // namespace ferry::text
