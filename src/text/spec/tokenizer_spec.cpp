#include "src/text/spec/tokenizer_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "src/text/models/wordpiece.h"
#include "src/text/normalizers/bert_normalizer.h"
#include "src/text/post_processors/template_processing.h"
#include "src/text/pre_tokenizers/byte_level.h"

namespace ferry::text {
namespace {

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

constexpr const char* kSpecialTokensFile = "special_tokens_map.json";
constexpr std::string_view kDecoder = "added_tokens_decoder";

/** tokenizer_config.json, with what older files have beside it, if there is any of them. */
std::optional<JsonReader> read_configuration(const std::filesystem::path& model_dir) {
  const std::filesystem::path file = model_dir / "tokenizer_config.json";
  std::optional<JsonReader> config;
  if (is_file(file)) config = read_json_file(file);
  const bool has_special = is_file(model_dir / kSpecialTokensFile),
             has_added = is_file(model_dir / kAddedTokensFile);
  if ((config && config->find(kDecoder)) || !(has_special || has_added)) return config;
  auto merged = config ? config->value() : nlohmann::ordered_json::object();
  if (has_special) {
    const JsonReader special = read_json_file(model_dir / kSpecialTokensFile);
    // A file has about ten. Each is looked for among all others.
    constexpr size_t kTokens_max = 4096;
    if (const size_t n = special.value().size(); n > kTokens_max)
      special.fail(fmt::format("has {} tokens, expected at most {}", n, kTokens_max));
    for (const auto& [key, value] : special.fields())
      merged[key] = value.value();
  }
  if (has_added) {
    const JsonReader added = read_json_file(model_dir / kAddedTokensFile);
    added.fields();  // an object
    merged[kAddedTokensFile] = added.value();
  }
  return JsonReader::of(std::move(merged),
                        {file.string(), "tokenizer.open", std::string(kFetchAgain)});
}

/** A special token of a configuration: its name, or an object with its content. */
std::optional<std::string> special_token_in(const JsonReader& value) {
  if (value.is_text()) return value.text();
  if (value.is_object() && value.find("content")) return value.text("content");
  return std::nullopt;
}

AddedToken added_token(const JsonReader& token, int32_t id, bool special) {
  if (token.is_text()) return {id, token.text(), false, false, false, !special, special};
  special = token.flag("special", special);
  return {id,
          token.text("content"),
          token.flag("single_word", false),
          token.flag("lstrip", false),
          token.flag("rstrip", false),
          token.flag("normalized", !special),
          special};
}

constexpr std::array<std::string_view, 7> kSpecialNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

/** The special tokens that a configuration names, in the order in which transformers adds them. */
std::vector<JsonReader> special_tokens_in(const JsonReader& config) {
  std::vector<JsonReader> tokens;
  const auto add = [&](const JsonReader& token) {
    if (special_token_in(token)) tokens.push_back(token);
  };
  for (const std::string_view key : kSpecialNames)
    if (const auto token = config.find(key)) add(*token);
  for (const auto& [key, token] : config.fields())
    if (key.ends_with("_token") && std::ranges::find(kSpecialNames, key) == kSpecialNames.end())
      add(token);
  auto extra = config.find("extra_special_tokens");
  if (!extra || extra->value().empty()) extra = config.find("additional_special_tokens");
  if (extra && extra->is_object())
    for (const auto& [key, token] : extra->fields())
      add(token);
  if (extra && extra->is_list())
    for (size_t i = 0; i < extra->size(); ++i)
      add(extra->at(i));
  return tokens;
}

void read_side(const JsonReader& side, TokenizerSpec& spec) {
  const std::string name = side.text();
  if (name != "left" && name != "right") side.refuse("left or right");
  spec.truncates_left = name == "left";
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

/** As transformers builds the tokenizers of these classes. */
bool is_prefix_space_configured(const std::filesystem::path& model_dir, const JsonReader* config) {
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"GPT2Tokenizer", "gpt2"},
      {"GPT2Tokenizer", "opt"},
      {"RobertaTokenizer", "roberta"},
      {"GPTNeoXTokenizer", "gpt_neox"}};
  const TokenizerClass found = read_class(model_dir, config);
  return std::ranges::any_of(kClasses, [&](const auto& known) {
    return found.name.empty() ? known.second == found.model_type : known.first == found.name;
  });
}

void take_prefix_space(const std::filesystem::path& model_dir,
                       const JsonReader* config,
                       TokenizerSpec& spec) {
  const auto* bytes = dynamic_cast<const ByteLevel*>(spec.pre_tokenizer.get());
  if (bytes && is_prefix_space_configured(model_dir, config))
    spec.pre_tokenizer =
        bytes->with_prefix_space(config && config->flag("add_prefix_space", false));
}

/** The file of a directory whose name begins and ends so, of several the last one by name. */
std::optional<std::filesystem::path> find_last(const std::filesystem::path& directory,
                                               std::string_view begin,
                                               std::string_view end) {
  std::optional<std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end) && (!found || found->filename() < name))
      found = entry.path();
  }
  return found;
}

/** The SentencePiece model of a directory; Mistral puts a version behind its name. */
std::optional<std::filesystem::path> find_sentence_piece(const std::filesystem::path& model_dir) {
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"})
    if (is_file(model_dir / name)) return model_dir / name;
  return find_last(model_dir, "tokenizer.model.v", "");
}

/** A file of ranks: Mistral's, tiktoken's, or one in the place of a SentencePiece model. */
std::optional<std::filesystem::path> find_ranks(const std::filesystem::path& model_dir) {
  if (is_file(model_dir / "tekken.json")) return model_dir / "tekken.json";
  for (const char* name : {"tokenizer.model", "tiktoken.model"})
    if (is_file(model_dir / name) && holds_ranks(model_dir / name)) return model_dir / name;
  return find_last(model_dir, "", ".tiktoken");
}

bool has_vocab_merges(const std::filesystem::path& model_dir) {
  return is_file(model_dir / "vocab.json") && is_file(model_dir / "merges.txt");
}

}  // namespace

bool has_tokenizer(const std::filesystem::path& model_dir) {
  return is_file(model_dir / "tokenizer.json") || is_file(model_dir / "vocab.txt") ||
         has_vocab_merges(model_dir) || find_ranks(model_dir) || find_sentence_piece(model_dir);
}

std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& model_dir) {
  constexpr std::array<std::string_view, 12> kNames = {
      "tokenizer.json",  "tokenizer_config.json",
      kAddedTokensFile,  kSpecialTokensFile,
      "vocab.txt",       "vocab.json",
      "merges.txt",      "tekken.json",
      "tokenizer.model", "tiktoken.model",
      "spiece.model",    "sentencepiece.bpe.model"};
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(model_dir, error)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::find(kNames, name) != kNames.end() || name.starts_with("tokenizer.model.v") ||
        name.ends_with(".tiktoken"))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

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

TokenizerClass read_class(const std::filesystem::path& model_dir, const JsonReader* config) {
  TokenizerClass found;
  found.name = config ? config->text("tokenizer_class", "") : "";
  if (found.name.ends_with("Fast")) found.name.resize(found.name.size() - 4);
  const std::filesystem::path model_config = model_dir / "config.json";
  if (found.name.empty() && is_file(model_config))
    found.model_type = read_json_file(model_config).text("model_type", "");
  return found;
}

void fail_unknown_class(const std::filesystem::path& file, const TokenizerClass& found) {
  fail(file,
       found.name.empty()
           ? fmt::format("goes with a model of type '{}', which is not known", found.model_type)
           : fmt::format("goes with a {}, which is not known", found.name),
       "save the tokenizer with Hugging Face transformers, which writes a tokenizer.json");
}

std::unique_ptr<PostProcessor> bos_and_eos(const JsonReader* config,
                                           bool adds_bos,
                                           const KnownTokens& known,
                                           const TokenizerSpec& spec) {
  Template single, pair;
  for (int text = 0; text < 2; ++text) {
    std::vector<Template::Piece> pieces;
    if (config ? config->flag("add_bos_token", adds_bos) : adds_bos)
      pieces.push_back({-1, {known.require(spec.bos, "bos")}, text});
    pieces.push_back({text, {}, text});
    if (config && config->flag("add_eos_token", false))
      pieces.push_back({-1, {known.require(spec.eos, "eos")}, text});
    if (text == 0) single.pieces = pieces;
    pair.pieces.insert(pair.pieces.end(), pieces.begin(), pieces.end());
  }
  return std::make_unique<TemplateProcessing>(std::move(single), std::move(pair));
}

void add_token(AddedToken token, KnownTokens& known, TokenizerSpec& spec) {
  known.add(token);
  spec.added.push_back(std::move(token));
}

void add_configured_tokens(const JsonReader* config,
                           KnownTokens& known,
                           TokenizerSpec& spec,
                           bool fills_gaps) {
  const std::vector<JsonReader> specials =
      config ? special_tokens_in(*config) : std::vector<JsonReader>();
  std::vector<AddedToken> tokens;
  if (const auto decoder = config ? config->find(kDecoder) : std::nullopt) {
    for (const auto& [key, token] : decoder->fields()) {
      const bool is_id = !key.empty() && key.size() <= 9 &&
                         key.find_first_not_of("0123456789") == std::string::npos;
      if (!is_id)
        decoder->fail(fmt::format("has the key '{}', expected an id", key),
                      "fetch the model's files again");
      tokens.push_back(added_token(token, std::stoi(key), false));
    }
  } else if (const auto added = config ? config->find(kAddedTokensFile) : std::nullopt) {
    const auto is_special = [&](const std::string& content) {
      return std::ranges::any_of(
          specials, [&](const JsonReader& token) { return special_token_in(token) == content; });
    };
    for (const auto& [content, id] : added->fields())
      if (!known.is_added(content))
        tokens.push_back(
            {id_of(id), content, false, false, false, !is_special(content), is_special(content)});
  }
  std::ranges::sort(tokens, {}, &AddedToken::id);
  for (AddedToken& token : tokens) {
    if (known.is_added(
            token.content)) {  // the file has it: the configuration says how it is sought
      const auto there = std::ranges::find(spec.added, token.content, &AddedToken::content);
      token.id = there->id;
      *there = std::move(token);
      continue;
    }
    while (fills_gaps && known.find(token.content) < 0 && known.next_id() < token.id)
      add_token({known.next_id(), fmt::format("<|reserved_token_{}|>", known.next_id()), false,
                 false, false, false, true},
                known, spec);
    add_token(std::move(token), known, spec);
  }
  for (const JsonReader& token : specials) {
    const std::string content = *special_token_in(token);
    if (content.empty() || known.is_added(content)) continue;
    const int32_t id = known.find(content);
    add_token(added_token(token, id >= 0 ? id : known.next_id(), true), known, spec);
  }
}

void add_usual_tokens(KnownTokens& known, TokenizerSpec& spec) {
  for (const std::string* name :
       {&spec.cls, &spec.sep, &spec.pad, &spec.unk, &spec.mask, &spec.bos, &spec.eos}) {
    const int32_t id = known.find(*name);
    if (id >= 0 && !known.is_added(*name))
      add_token({id, *name, false, false, false, false, true}, known, spec);
  }
}

bool has_configured_prefix_space(const std::filesystem::path& model_dir) {
  const auto config = read_configuration(model_dir);
  return is_prefix_space_configured(model_dir, config ? &*config : nullptr);
}

TokenizerSpec read_tokenizer_spec(const std::filesystem::path& model_dir) {
  TokenizerSpec spec;
  const auto config = read_configuration(model_dir);
  const JsonReader* settings = config ? &*config : nullptr;
  const bool has_json = is_file(model_dir / "tokenizer.json");
  const bool has_merges = has_vocab_merges(model_dir);
  if (!has_json && has_merges) set_byte_level_names(model_dir, settings, spec);
  if (config) read_names(*config, spec);
  if (has_json) {
    spec.file = model_dir / "tokenizer.json";
    read_tokenizer_json(settings, spec);
    if (config) check_agreement(*config, spec);
    take_prefix_space(model_dir, settings, spec);
  } else if (is_file(model_dir / "vocab.txt")) {
    spec.file = model_dir / "vocab.txt";
    read_vocab_txt(settings, spec);
  } else if (has_merges) {
    spec.file = model_dir / "vocab.json";
    read_vocab_merges(model_dir, settings, spec);
  } else if (const auto ranks = find_ranks(model_dir)) {
    spec.file = *ranks;
    read_rank_file(model_dir, settings, spec);
  } else if (const auto sentence_piece = find_sentence_piece(model_dir)) {
    spec.file = *sentence_piece;
    read_sentence_piece(model_dir, settings, spec);
  } else {
    fail(model_dir,
         "has neither tokenizer.json nor vocab.txt, vocab.json with merges.txt, tokenizer.model, "
         "spiece.model, tekken.json or a .tiktoken file",
         "give a Hugging Face model directory");
  }
  if (const auto side = config ? config->find("truncation_side") : std::nullopt)
    read_side(*side, spec);
  return spec;
}

}  // namespace ferry::text
