#pragma once
// The key "ferry_prompt" of a config.json: a model that answers a template with the words of
// labels, beside the names of the labels in id2label. No other program reads it. Torch-free.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/core/prompt.h"
#include "src/files/hf/hf_config.h"

namespace ferry {

inline constexpr std::string_view kPromptKey = "ferry_prompt";

struct PromptConfig {
  std::string text;                             ///< of the template
  std::vector<std::vector<std::string>> words;  ///< by label
  PromptHead head;
  std::vector<SoftToken> soft_tokens;  ///< of the template
};

/** nullopt: the model has none. Error(data) where it is damaged. */
std::optional<PromptConfig> read_prompt_config(const HfConfig& config);
nlohmann::ordered_json to_json(const PromptConfig& config);

/** Its name in the option multi_token_handler. */
std::string_view name_of(WordTokens tokens);
std::optional<WordTokens> parse_word_tokens(std::string_view name);

}  // namespace ferry
