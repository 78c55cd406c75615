// Reads tokenizer.json: the stages by their types, the vocabulary, the added tokens. Of its
// truncation the side alone is taken, and padding is left alone.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/text/registry.h"
#include "src/text/spec/tokenizer_spec.h"

namespace ferry::text {
namespace {

void read_added_tokens(const JsonReader& list, KnownTokens& known, TokenizerSpec& spec) {
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader entry = list.at(i);
    add_token({id_of(entry.at("id")), entry.text("content"), entry.flag("single_word"),
               entry.flag("lstrip"), entry.flag("rstrip"), entry.flag("normalized"),
               entry.flag("special")},
              known, spec);
  }
}

}  // namespace

std::vector<std::string> read_vocabulary(const JsonReader& vocab) {
  if (!vocab.is_object()) vocab.refuse("an object");
  const nlohmann::ordered_json& entries = vocab.value();
  if (entries.empty()) vocab.fail("is empty", "fetch the model's files again");
  // Ids may have holes. The bound is of memory: no file that is meant so has as many.
  constexpr size_t kHoles_max = size_t{1} << 20;
  std::vector<const std::string*> by_id(entries.size());
  for (const auto& entry : entries.items()) {
    const nlohmann::ordered_json& value = entry.value();
    // A look-up by key passes all earlier tokens: only an error needs one.
    const bool is_id =
        value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(kId_max);
    const int32_t id = is_id ? value.get<int32_t>() : id_of(vocab.at(entry.key()));
    if (static_cast<size_t>(id) >= entries.size() + kHoles_max)
      vocab.fail(fmt::format("gives '{}' the id {}, but has only {} tokens", entry.key(), id,
                             entries.size()),
                 kFetchAgain);
    if (static_cast<size_t>(id) >= by_id.size()) by_id.resize(static_cast<size_t>(id) + 1);
    const std::string*& token = by_id[static_cast<size_t>(id)];
    if (token)
      vocab.fail(fmt::format("gives '{}' and '{}' the same id {}", *token, entry.key(), id),
                 "renumber one");
    if (entry.key().empty())
      vocab.fail(fmt::format("has an empty token, id {}", id), "name it, as in [unused0]");
    token = &entry.key();
  }
  std::vector<std::string> vocabulary;
  vocabulary.reserve(by_id.size());
  for (const std::string* token : by_id)
    vocabulary.push_back(token ? *token : std::string());
  return vocabulary;
}

void read_tokenizer_json(const JsonReader* config, TokenizerSpec& spec) {
  const JsonReader root = read_json_file(spec.file);
  if (const auto version = root.find("version"); version && version->text() != "1.0")
    version->fail(fmt::format("is {}, expected 1.0", version->text()), kSaveAgain);
  StageContext context{.table = spec.table};
  if (const auto section = root.find("normalizer"))
    spec.normalizer = read_normalizer(*section, context);
  if (const auto section = root.find("pre_tokenizer"))
    spec.pre_tokenizer = read_pre_tokenizer(*section, context);

  ReadModel read = read_model(root.at("model"), context,
                              spec.pre_tokenizer && spec.pre_tokenizer->gives_bytes());
  spec.model = std::move(read.model);
  spec.vocabulary = std::move(read.vocabulary);
  spec.unk = std::move(read.unknown);
  spec.n_holes = static_cast<size_t>(std::ranges::count(spec.vocabulary, std::string()));
  KnownTokens known(spec.file, spec.vocabulary, spec.n_holes);
  if (const auto list = root.find("added_tokens")) read_added_tokens(*list, known, spec);
  add_configured_tokens(config, known, spec);
  if (const auto truncation = root.find("truncation"); truncation && truncation->is_object())
    spec.truncates_left = truncation->text("direction", "Right") == "Left";

  context.known = &known;
  if (const auto section = root.find("post_processor"))
    spec.post_processor = read_post_processor(*section, context);
  if (const auto section = root.find("decoder")) spec.decoder = read_decoder(*section, context);
}

}  // namespace ferry::text
