#include "src/text/tokenizer_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "src/text/json_fields.h"

namespace ferry::text {
namespace {

constexpr std::string_view kSupported =
    "supported are BERT's tokenizers: model WordPiece, normalizer BertNormalizer, pre-tokenizer "
    "BertPreTokenizer, "
    "post-processor TemplateProcessing or BertProcessing";

using Ids = std::unordered_map<std::string, int32_t>;

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/** Fails unless the section's "type" is one of those. */
std::string type_of(const JsonField& section, std::initializer_list<std::string_view> supported) {
  std::string type = section.at("type").string();
  if (std::find(supported.begin(), supported.end(), type) == supported.end())
    section.fail(fmt::format("is of type {}", type), kSupported);
  return type;
}

Ids ids_of(const TokenizerSpec& spec) {
  Ids ids;
  ids.reserve(spec.vocabulary.size() + spec.added.size());
  for (size_t i = 0; i < spec.vocabulary.size(); ++i)
    ids.emplace(spec.vocabulary[i], static_cast<int32_t>(i));
  for (const AddedToken& token : spec.added)
    ids.emplace(token.content, token.id);
  return ids;
}

int32_t required_id(const TokenizerSpec& spec,
                    const Ids& ids,
                    const std::string& token,
                    std::string_view role) {
  const auto found = ids.find(token);
  if (found == ids.end())
    fail(spec.file, fmt::format("the vocabulary has no {} token '{}'", role, token),
         "add it, or name the right one in tokenizer_config.json");
  return found->second;
}

// --- tokenizer.json ---

void read_model(const JsonField& model, TokenizerSpec& spec) {
  // Files of the first versions carry no type; WordPiece is then known by its prefix.
  if (model.find("type") || !model.find("continuing_subword_prefix")) type_of(model, {"WordPiece"});
  spec.unk = model.at("unk_token").string();
  spec.word_piece.continuing_prefix = model.at("continuing_subword_prefix").string();
  spec.word_piece.max_word_chars = model.at("max_input_chars_per_word").id();

  const JsonField vocab = model.at("vocab");
  const nlohmann::json& entries = vocab.object();
  if (entries.empty()) vocab.fail("is empty", "fetch the model's files again");
  std::vector<const std::string*> by_id(entries.size());
  for (const auto& entry : entries.items()) {
    const int32_t id = vocab.at(entry.key()).id();
    if (static_cast<size_t>(id) >= by_id.size())
      vocab.fail(fmt::format("gives '{}' the id {}, but has only {} tokens", entry.key(), id,
                             by_id.size()),
                 "the ids have to be 0, 1, 2, ... without a gap");
    const std::string*& token = by_id[static_cast<size_t>(id)];
    if (token)
      vocab.fail(fmt::format("gives '{}' and '{}' the same id {}", *token, entry.key(), id),
                 "renumber one");
    if (entry.key().empty())
      vocab.fail(fmt::format("has an empty token, id {}", id), "name it, as in [unused0]");
    token = &entry.key();
  }
  for (const std::string* token : by_id)
    spec.vocabulary.push_back(*token);
}

void read_normalizer(const JsonField& root, BertNormalizerOptions& options) {
  const std::optional<JsonField> normalizer = root.find("normalizer");
  if (!normalizer) return;
  type_of(*normalizer, {"BertNormalizer"});
  options.clean_text = normalizer->at("clean_text").boolean();
  options.handle_chinese_chars = normalizer->at("handle_chinese_chars").boolean();
  options.lowercase = normalizer->at("lowercase").boolean();
  const std::optional<JsonField> strip = normalizer->find("strip_accents");
  options.strip_accents = strip ? strip->boolean() : options.lowercase;
}

/** Hugging Face numbers new tokens itself, from the vocabulary's size on, and only warns where the
 * file has other ids. */
void add_token(AddedToken token, Ids& ids, size_t& vocab_size, TokenizerSpec& spec) {
  if (token.content.empty())
    fail(spec.file, fmt::format("the added token {} is empty", token.id), "remove it");
  for (const AddedToken& other : spec.added)
    if (other.content == token.content)
      fail(spec.file, fmt::format("adds the token '{}' twice", token.content), "keep one of them");
  const auto [found, is_new] = ids.emplace(token.content, static_cast<int32_t>(vocab_size));
  if (found->second != token.id)
    fail(spec.file,
         fmt::format("gives the added token '{}' the id {}, expected {}{}", token.content, token.id,
                     found->second, is_new ? ", the next one" : " as in the vocabulary"),
         "save the tokenizer again with Hugging Face transformers");
  if (is_new) ++vocab_size;
  spec.added.push_back(std::move(token));
}

void read_added_tokens(const JsonField& list, TokenizerSpec& spec) {
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < list.array_size(); ++i) {
    const JsonField entry = list.at(i);
    entry.at("special").boolean();
    tokens.push_back({entry.at("id").id(), entry.at("content").string(),
                      entry.at("single_word").boolean(), entry.at("lstrip").boolean(),
                      entry.at("rstrip").boolean(), entry.at("normalized").boolean()});
  }
  Ids ids = ids_of(spec);
  size_t vocab_size = spec.vocabulary.size();
  for (AddedToken& token : tokens)
    add_token(std::move(token), ids, vocab_size, spec);
}

Template bert_template(bool pair, int32_t cls, int32_t sep) {
  Template t;
  t.pieces = {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}};
  if (pair) t.pieces.insert(t.pieces.end(), {{1, {}, 1}, {-1, {sep}, 1}});
  return t;
}

/** A template of TemplateProcessing; each of its texts has to appear once. */
Template read_template(const JsonField& processor,
                       std::string_view key,
                       int n_texts,
                       size_t vocab_size) {
  const JsonField list = processor.at(key), special = processor.at("special_tokens");
  Template result;
  std::array<int, 2> seen{};
  for (size_t i = 0; i < list.array_size(); ++i) {
    const auto [kind, piece] = list.at(i).only();
    Template::Piece& added = result.pieces.emplace_back();
    added.type_id = piece.at("type_id").id();
    const std::string id = piece.at("id").string();
    if (kind == "Sequence") {
      if (id != "A" && id != "B")
        piece.fail(fmt::format("has the id '{}', expected A or B", id), kSupported);
      added.text = id == "A" ? 0 : 1;
      ++seen[static_cast<size_t>(added.text)];
    } else if (kind == "SpecialToken") {
      const JsonField ids = special.at(id).at("ids");
      for (size_t k = 0; k < ids.array_size(); ++k) {
        added.ids.push_back(ids.at(k).id());
        if (static_cast<size_t>(added.ids.back()) >= vocab_size)
          ids.fail(
              fmt::format("has the id {}, but there are {} tokens", added.ids.back(), vocab_size),
              "give the token's id in the vocabulary");
      }
    } else {
      piece.fail(fmt::format("is a {}, expected Sequence or SpecialToken", kind), kSupported);
    }
  }
  if (seen[0] != 1 || seen[1] != n_texts - 1)
    list.fail(fmt::format("has text A {} and text B {} times, expected 1 and {}", seen[0], seen[1],
                          n_texts - 1),
              kSupported);
  return result;
}

void read_post_processor(const JsonField& root, size_t vocab_size, TokenizerSpec& spec) {
  const std::optional<JsonField> processor = root.find("post_processor");
  if (!processor) {
    spec.single.pieces = {{0, {}, 0}};
    spec.pair.pieces = {{0, {}, 0}, {1, {}, 1}};
  } else if (type_of(*processor, {"TemplateProcessing", "BertProcessing"}) ==
             "TemplateProcessing") {
    spec.single = read_template(*processor, "single", 1, vocab_size);
    spec.pair = read_template(*processor, "pair", 2, vocab_size);
  } else {
    auto id = [&](std::string_view key) {  // ["[SEP]", 102]
      const JsonField token = processor->at(key);
      if (token.array_size() != 2) token.fail("has to be a token and its id", kSupported);
      const int32_t value = token.at(size_t{1}).id();
      if (static_cast<size_t>(value) >= vocab_size)
        token.fail(fmt::format("has the id {}, but there are {} tokens", value, vocab_size),
                   "give the token's id in the vocabulary");
      return value;
    };
    spec.single = bert_template(false, id("cls"), id("sep"));
    spec.pair = bert_template(true, id("cls"), id("sep"));
  }
}

void read_tokenizer_json(TokenizerSpec& spec) {
  const nlohmann::json parsed = parse_json(spec.file);
  const JsonField root(spec.file, parsed);
  if (const auto version = root.find("version"); version && version->string() != "1.0")
    version->fail(fmt::format("is {}, expected 1.0", version->string()), kSupported);
  read_model(root.at("model"), spec);
  read_normalizer(root, spec.normalizer);
  type_of(root.at("pre_tokenizer"), {"BertPreTokenizer"});
  if (const auto list = root.find("added_tokens")) read_added_tokens(*list, spec);
  read_post_processor(root, ids_of(spec).size(), spec);
}

// --- vocab.txt ---

void read_vocab_txt(TokenizerSpec& spec) {
  const std::string bytes = read_file(spec.file);
  const CharTable table;
  std::set<std::string_view> seen;
  size_t n_line = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t newline = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view token = std::string_view(bytes).substr(begin, newline - begin);
    begin = newline + 1;
    ++n_line;
    if (find_invalid_utf8(token) != kValidUtf8)
      fail(spec.file, fmt::format("line {} is not UTF-8", n_line), "fetch the model's files again");
    while (!token.empty()) {  // white space at the end belongs to no token
      size_t before = token.size();
      if (!(table.flags(previous_code_point(token, before)) & CharTable::kSpace)) break;
      token.remove_suffix(token.size() - before);
    }
    if (token.empty())
      fail(spec.file, fmt::format("line {} is empty", n_line),
           "remove it, or name its token as in [unused0]");
    if (!seen.insert(token).second)
      fail(spec.file, fmt::format("line {}: the token '{}' is there twice", n_line, token),
           "rename one of them");
    spec.vocabulary.emplace_back(token);
  }
  if (spec.vocabulary.empty())
    fail(spec.file, "is empty, expected a token per line", "fetch the model's files again");
}

/** "[CLS]", or {"content": "[CLS]", ...}. */
std::string token_content(const JsonField& field, const nlohmann::json& value) {
  return value.is_object() ? field.at("content").string() : field.string();
}

void read_names(const JsonField& config, TokenizerSpec& spec) {
  const std::array<std::pair<std::string_view, std::string*>, 5> names = {
      {{"cls_token", &spec.cls},
       {"sep_token", &spec.sep},
       {"pad_token", &spec.pad},
       {"unk_token", &spec.unk},
       {"mask_token", &spec.mask}}};
  for (const auto& [key, name] : names)
    if (const auto field = config.find(key))
      *name = token_content(*field, config.object().at(std::string(key)));
}

/** The tokens that transformers adds on its own: those of the configuration, then the five special
 * ones. */
void add_configured_tokens(const JsonField* config, TokenizerSpec& spec) {
  Ids ids = ids_of(spec);
  size_t vocab_size = spec.vocabulary.size();
  if (const auto decoder = config ? config->find("added_tokens_decoder") : std::nullopt) {
    std::vector<AddedToken> tokens;
    for (const auto& entry : decoder->object().items()) {
      const JsonField token = decoder->at(entry.key());
      auto flag = [&](std::string_view key) {
        const auto field = token.find(key);
        return field && field->boolean();
      };
      const bool is_id = entry.key().size() <= 9 &&
                         entry.key().find_first_not_of("0123456789") == std::string::npos;
      if (!is_id || entry.key().empty())
        decoder->fail(fmt::format("has the key '{}', expected an id", entry.key()),
                      "fetch the model's files again");
      const auto normalized = token.find("normalized");
      tokens.push_back({std::stoi(entry.key()), token.at("content").string(), flag("single_word"),
                        flag("lstrip"), flag("rstrip"),
                        normalized ? normalized->boolean() : !flag("special")});
    }
    std::sort(tokens.begin(), tokens.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    for (AddedToken& token : tokens)
      add_token(std::move(token), ids, vocab_size, spec);
  }
  for (const std::string* name : {&spec.cls, &spec.sep, &spec.pad, &spec.unk, &spec.mask}) {
    const bool there = std::any_of(spec.added.begin(), spec.added.end(),
                                   [&](const AddedToken& token) { return token.content == *name; });
    if (!there && ids.contains(*name))
      spec.added.push_back({ids.at(*name), *name, false, false, false, false});
  }
}

void read_vocab_with_config(const JsonField* config, TokenizerSpec& spec) {
  read_vocab_txt(spec);
  spec.normalizer = {true, true, true, true};
  if (config) {
    auto flag = [&](std::string_view key, bool otherwise) {
      const auto field = config->find(key);
      return field ? field->boolean() : otherwise;
    };
    spec.normalizer.lowercase = flag("do_lower_case", true);
    spec.normalizer.strip_accents = flag("strip_accents", spec.normalizer.lowercase);
    spec.normalizer.handle_chinese_chars = flag("tokenize_chinese_chars", true);
  }
  add_configured_tokens(config, spec);
  const Ids ids = ids_of(spec);
  const int32_t cls = required_id(spec, ids, spec.cls, "cls"),
                sep = required_id(spec, ids, spec.sep, "sep");
  spec.single = bert_template(false, cls, sep);
  spec.pair = bert_template(true, cls, sep);
}

/** transformers follows tokenizer_config.json, tokenizers follows tokenizer.json: where they differ
 * nobody can say what the model was trained with. */
void check_agreement(const JsonField& config, const TokenizerSpec& spec) {
  const std::array<std::pair<std::string_view, bool>, 3> flags = {
      {{"do_lower_case", spec.normalizer.lowercase},
       {"strip_accents", spec.normalizer.strip_accents},
       {"tokenize_chinese_chars", spec.normalizer.handle_chinese_chars}}};
  for (const auto& [key, value] : flags)
    if (const auto field = config.find(key); field && field->boolean() != value)
      field->fail(fmt::format("is {}, but the normalizer of '{}' says {}", !value,
                              spec.file.filename().string(), value),
                  "make the two files agree on what the model was trained with");
}

}  // namespace

TokenizerSpec read_tokenizer_spec(const std::filesystem::path& model_dir) {
  TokenizerSpec spec;
  const std::filesystem::path config_file = model_dir / "tokenizer_config.json";
  nlohmann::json parsed_config;
  std::optional<JsonField> config;
  if (is_file(config_file)) {
    parsed_config = parse_json(config_file);
    config.emplace(config_file, parsed_config);
    read_names(*config, spec);
  }
  if (is_file(model_dir / "tokenizer.json")) {
    spec.file = model_dir / "tokenizer.json";
    read_tokenizer_json(spec);
    if (config) check_agreement(*config, spec);
  } else if (is_file(model_dir / "vocab.txt")) {
    spec.file = model_dir / "vocab.txt";
    read_vocab_with_config(config ? &*config : nullptr, spec);
  } else {
    fail(model_dir, "has neither tokenizer.json nor vocab.txt",
         "give a Hugging Face model directory of a BERT");
  }
  const Ids ids = ids_of(spec);
  spec.word_piece.unknown_id = required_id(spec, ids, spec.unk, "unknown");
  if (static_cast<size_t>(spec.word_piece.unknown_id) >= spec.vocabulary.size())
    fail(spec.file,
         fmt::format("the unknown token '{}' is no token of the model's vocabulary", spec.unk),
         "add it to the vocabulary");
  return spec;
}

}  // namespace ferry::text
