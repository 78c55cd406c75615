// Reads tokenizer.json: the model and its vocabulary, the normalizer, the added tokens, the
// post-processor. Its truncation and padding are left alone.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/text/spec_parts.h"

namespace ferry::text {
namespace {

/** Fails unless the section's "type" is one of those. */
std::string type_of(const JsonReader& section, std::initializer_list<std::string_view> supported) {
  std::string type = section.text("type");
  if (std::find(supported.begin(), supported.end(), type) == supported.end())
    section.fail(fmt::format("is of type {}", type), kSupported);
  return type;
}

void read_model(const JsonReader& model, TokenizerSpec& spec) {
  // Files of the first versions carry no type; WordPiece is then known by its prefix.
  if (model.find("type") || !model.find("continuing_subword_prefix")) type_of(model, {"WordPiece"});
  spec.unk = model.text("unk_token");
  spec.word_piece.continuing_prefix = model.text("continuing_subword_prefix");
  spec.word_piece.max_word_chars = id_of(model.at("max_input_chars_per_word"));

  const JsonReader vocab = model.at("vocab");
  if (!vocab.is_object()) vocab.refuse("an object");
  const nlohmann::ordered_json& entries = vocab.value();
  if (entries.empty()) vocab.fail("is empty", "fetch the model's files again");
  std::vector<const std::string*> by_id(entries.size());
  for (const auto& entry : entries.items()) {
    const nlohmann::ordered_json& value = entry.value();
    const bool is_id = value.is_number_unsigned() && value.get<uint64_t>() < by_id.size();
    const int32_t id = is_id ? value.get<int32_t>() : id_of(vocab.at(entry.key()));
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

void read_normalizer(const JsonReader& root, BertNormalizerOptions& options) {
  const std::optional<JsonReader> normalizer = root.find("normalizer");
  if (!normalizer) return;
  type_of(*normalizer, {"BertNormalizer"});
  options.clean_text = normalizer->flag("clean_text");
  options.handle_chinese_chars = normalizer->flag("handle_chinese_chars");
  options.lowercase = normalizer->flag("lowercase");
  const std::optional<JsonReader> strip = normalizer->find("strip_accents");
  options.strip_accents = strip ? strip->flag() : options.lowercase;
}

void read_added_tokens(const JsonReader& list, KnownTokens& known) {
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader entry = list.at(i);
    entry.flag("special");
    known.add({id_of(entry.at("id")), entry.text("content"), entry.flag("single_word"),
               entry.flag("lstrip"), entry.flag("rstrip"), entry.flag("normalized")});
  }
}

/** A template of TemplateProcessing; each of its texts has to appear once. */
Template read_template(const JsonReader& processor,
                       std::string_view key,
                       int n_texts,
                       size_t vocab_size) {
  const JsonReader list = processor.at(key), special = processor.at("special_tokens");
  Template result;
  std::array<int, 2> seen{};
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [kind, piece] = list.at(i).only();
    Template::Piece& added = result.pieces.emplace_back();
    added.type_id = id_of(piece.at("type_id"));
    if (added.type_id > 255) piece.fail("has a type_id above 255", kSupported);
    const std::string id = piece.text("id");
    if (kind == "Sequence") {
      if (id != "A" && id != "B")
        piece.fail(fmt::format("has the id '{}', expected A or B", id), kSupported);
      added.text = id == "A" ? 0 : 1;
      ++seen[static_cast<size_t>(added.text)];
    } else if (kind == "SpecialToken") {
      const JsonReader ids = special.at(id).at("ids");
      for (size_t k = 0; k < ids.size(); ++k) {
        added.ids.push_back(id_of(ids.at(k)));
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

void read_post_processor(const JsonReader& root, size_t vocab_size, TokenizerSpec& spec) {
  const std::optional<JsonReader> processor = root.find("post_processor");
  if (!processor) {
    spec.single.pieces = {{0, {}, 0}};
    spec.pair.pieces = {{0, {}, 0}, {1, {}, 1}};
  } else if (type_of(*processor, {"TemplateProcessing", "BertProcessing"}) ==
             "TemplateProcessing") {
    spec.single = read_template(*processor, "single", 1, vocab_size);
    spec.pair = read_template(*processor, "pair", 2, vocab_size);
  } else {
    auto id = [&](std::string_view key) {  // ["[SEP]", 102]
      const JsonReader token = processor->at(key);
      if (token.size() != 2) token.fail("has to be a token and its id", kSupported);
      const int32_t value = id_of(token.at(size_t{1}));
      if (static_cast<size_t>(value) >= vocab_size)
        token.fail(fmt::format("has the id {}, but there are {} tokens", value, vocab_size),
                   "give the token's id in the vocabulary");
      return value;
    };
    spec.single = bert_template(false, id("cls"), id("sep"));
    spec.pair = bert_template(true, id("cls"), id("sep"));
  }
}

}  // namespace

void read_tokenizer_json(TokenizerSpec& spec) {
  const JsonReader root = read_json_file(spec.file);
  if (const auto version = root.find("version"); version && version->text() != "1.0")
    version->fail(fmt::format("is {}, expected 1.0", version->text()), kSupported);
  read_model(root.at("model"), spec);
  read_normalizer(root, spec.normalizer);
  type_of(root.at("pre_tokenizer"), {"BertPreTokenizer"});
  KnownTokens known(spec);
  spec.word_piece.unknown_id = known.require(spec.unk, "unknown");
  if (const auto list = root.find("added_tokens")) read_added_tokens(*list, known);
  read_post_processor(root, known.size(), spec);
}

}  // namespace ferry::text
