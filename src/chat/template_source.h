#pragma once
// The sources of chat templates: a model's directory, a name that Ferry knows, a file. Beside the
// chat a template is given the special tokens of a tokenizer.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/chat/conversation.h"

namespace ferry::chat {

struct TemplateSource {
  std::string name;  ///< for messages
  std::string text;
  std::string tools_text;  ///< a second template for chats with tools; empty for none
};

/** The template of a model: chat_template.jinja, else chat_template.json, else chat_template of
 * tokenizer_config.json, as transformers looks for it. Throws Error(data) for a damaged file. */
std::optional<TemplateSource> template_of_model(const std::filesystem::path& directory);

/** The template that tokenizer_config.json has, which programs read where they do not know of
 * chat_template.jinja. Throws Error(data) for a damaged file. */
std::optional<TemplateSource> template_of_tokenizer_config(const std::filesystem::path& directory);

/** Templates for models that have none. */
struct KnownTemplate {
  std::string_view name, text;
};
const std::vector<KnownTemplate>& known_templates();
/** A known name, or a file. Throws Error(usage) where it is neither. */
TemplateSource template_named(const std::string& name);

/** bos_token, eos_token and so on, as tokenizer_config.json and special_tokens_map.json name them.
 */
Json special_tokens_in(const std::filesystem::path& directory);

}  // namespace ferry::chat
