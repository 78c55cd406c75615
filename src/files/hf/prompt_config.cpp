#include "src/files/hf/prompt_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "src/base/json/json_reader.h"

namespace ferry {
namespace {

constexpr std::array<std::string_view, 3> kTokens = {"first", "mean", "max"};
constexpr std::string_view kSoft = "soft", kManual = "manual";

/** Each element of a list, as `read` has it. */
template <class Read>
auto each(const JsonReader& list, const Read& read) {
  std::vector<decltype(read(list))> all;
  for (size_t i = 0; i < list.size(); ++i)
    all.push_back(read(list.at(i)));
  return all;
}

std::vector<int32_t> ids_of(const JsonReader& list) {
  return each(list,
              [](const JsonReader& id) { return static_cast<int32_t>(id.integer(0, INT32_MAX)); });
}

std::vector<int32_t> ids_of_word(const JsonReader& list) {
  if (list.size() == 0) list.fail("is empty");
  return ids_of(list);
}

}  // namespace

std::string_view name_of(WordTokens tokens) {
  return kTokens[static_cast<size_t>(tokens)];
}

std::optional<WordTokens> parse_word_tokens(std::string_view name) {
  const auto found = std::ranges::find(kTokens, name);
  if (found == kTokens.end()) return std::nullopt;
  return static_cast<WordTokens>(found - kTokens.begin());
}

std::optional<PromptConfig> read_prompt_config(const HfConfig& config) {
  const auto json = config.fields().find(kPromptKey);
  if (!json) return std::nullopt;
  PromptConfig prompt;
  prompt.text = json->text("template");
  prompt.head.is_soft = json->text("verbalizer_type", std::string(kManual)) == kSoft;
  const auto tokens = parse_word_tokens(json->text("multi_token_handler", "first"));
  if (!tokens) json->at("multi_token_handler").fail("is none of first, mean and max");
  prompt.head.labels.tokens = *tokens;
  prompt.words =
      each(json->at("label_words"), [](const JsonReader& words) { return words.texts(); });
  prompt.head.labels.words = each(json->at("label_tokens"), [](const JsonReader& words) {
    if (words.size() == 0) words.fail("is empty");
    return each(words, ids_of_word);
  });
  const size_t n_labels = config.id2label.size();
  if (prompt.words.size() != n_labels || prompt.head.labels.words.size() != n_labels)
    json->fail("has words for another number of labels than id2label");
  if (const auto soft = json->find("soft_tokens")) prompt.soft_tokens = each(*soft, ids_of);
  return prompt;
}

nlohmann::ordered_json to_json(const PromptConfig& config) {
  nlohmann::ordered_json json = {
      {"template", config.text},
      {"verbalizer_type", config.head.is_soft ? kSoft : kManual},
      {"multi_token_handler", name_of(config.head.labels.tokens)},
      {"label_words", config.words},
      {"label_tokens", config.head.labels.words},
  };
  if (!config.soft_tokens.empty()) json["soft_tokens"] = config.soft_tokens;
  return json;
}

}  // namespace ferry
