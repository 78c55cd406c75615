#include "src/text/spec/tokenizer_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "src/text/models/wordpiece.h"
#include "src/text/normalizers/bert_normalizer.h"

namespace ferry::text {
namespace {

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/** The names of the special tokens: "[CLS]", or {"content": "[CLS]", ...}. */
void read_names(const JsonReader& config, TokenizerSpec& spec) {
  const std::array<std::pair<std::string_view, std::string*>, 7> names = {
      {{"cls_token", &spec.cls},
       {"sep_token", &spec.sep},
       {"pad_token", &spec.pad},
       {"unk_token", &spec.unk},
       {"mask_token", &spec.mask},
       {"bos_token", &spec.bos},
       {"eos_token", &spec.eos}}};
  for (const auto& [key, name] : names)
    if (const auto field = config.find(key))
      *name = field->is_object() ? field->text("content") : field->text();
}

/** For BERT: transformers follows tokenizer_config.json, tokenizers follows tokenizer.json: where
 * they differ nobody can say what the model was trained with. */
void check_agreement(const JsonReader& config, const TokenizerSpec& spec) {
  if (!dynamic_cast<const WordPiece*>(spec.model.get())) return;
  BertNormalizerOptions options;
  if (const auto* bert = dynamic_cast<const BertNormalizer*>(spec.normalizer.get()))
    options = bert->options();
  else if (spec.normalizer)
    return;
  const std::array<std::pair<std::string_view, bool>, 3> flags = {
      {{"do_lower_case", options.lowercase},
       {"strip_accents", options.strip_accents},
       {"tokenize_chinese_chars", options.handle_chinese_chars}}};
  for (const auto& [key, value] : flags)
    if (const auto field = config.find(key); field && field->flag() != value)
      field->fail(fmt::format("is {}, but the normalizer of '{}' says {}", !value,
                              spec.file.filename().string(), value),
                  "make the two files agree on what the model was trained with");
}

}  // namespace

void add_token(AddedToken token, KnownTokens& known, TokenizerSpec& spec) {
  known.add(token);
  spec.added.push_back(std::move(token));
}

void add_configured_tokens(const JsonReader* config, KnownTokens& known, TokenizerSpec& spec) {
  if (const auto decoder = config ? config->find("added_tokens_decoder") : std::nullopt) {
    std::vector<AddedToken> tokens;
    for (const auto& [key, token] : decoder->fields()) {
      const bool is_id = !key.empty() && key.size() <= 9 &&
                         key.find_first_not_of("0123456789") == std::string::npos;
      if (!is_id)
        decoder->fail(fmt::format("has the key '{}', expected an id", key),
                      "fetch the model's files again");
      tokens.push_back({std::stoi(key), token.text("content"), token.flag("single_word", false),
                        token.flag("lstrip", false), token.flag("rstrip", false),
                        token.flag("normalized", !token.flag("special", false)),
                        token.flag("special", false)});
    }
    std::sort(tokens.begin(), tokens.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    for (AddedToken& token : tokens)
      add_token(std::move(token), known, spec);
  }
  for (const std::string* name :
       {&spec.cls, &spec.sep, &spec.pad, &spec.unk, &spec.mask, &spec.bos, &spec.eos}) {
    const int32_t id = known.find(*name);
    if (id >= 0 && !known.is_added(*name))
      add_token({id, *name, false, false, false, false, true}, known, spec);
  }
}

TokenizerSpec read_tokenizer_spec(const std::filesystem::path& model_dir) {
  TokenizerSpec spec;
  const std::filesystem::path config_file = model_dir / "tokenizer_config.json";
  std::optional<JsonReader> config;
  if (is_file(config_file)) {
    config = read_json_file(config_file);
  }
  const JsonReader* settings = config ? &*config : nullptr;
  const bool has_json = is_file(model_dir / "tokenizer.json");
  const bool has_merges = is_file(model_dir / "vocab.json") && is_file(model_dir / "merges.txt");
  if (!has_json && has_merges) set_byte_level_names(model_dir, settings, spec);
  if (config) read_names(*config, spec);
  if (has_json) {
    spec.file = model_dir / "tokenizer.json";
    read_tokenizer_json(spec);
    if (config) check_agreement(*config, spec);
  } else if (is_file(model_dir / "vocab.txt")) {
    spec.file = model_dir / "vocab.txt";
    read_vocab_txt(settings, spec);
  } else if (has_merges) {
    spec.file = model_dir / "vocab.json";
    read_vocab_merges(model_dir, settings, spec);
  } else {
    fail(model_dir, "has neither tokenizer.json nor vocab.txt, nor vocab.json with merges.txt",
         "give a Hugging Face model directory");
  }
  return spec;
}

}  // namespace ferry::text
