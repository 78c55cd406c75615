#include "src/chat/template_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/plain_file.h"

namespace ferry::chat {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemplateFile = "chat_template.jinja";

std::optional<JsonReader> read_json_if_there(const fs::path& file) {
  if (!path_exists(file)) return std::nullopt;
  return JsonReader::parse(read_text_file(file),
                           {file.string(), "chat.template", "fetch the model's files again"});
}

/** A text, or a list of templates with names. */
std::optional<TemplateSource> source_in(const JsonReader& config, const fs::path& file) {
  const auto field = config.find("chat_template");
  if (!field) return std::nullopt;
  TemplateSource source = {.name = file.string()};
  if (field->is_text()) {
    source.text = field->text();
    return source;
  }
  for (size_t i = 0; i < field->size(); ++i) {
    const std::string name = field->at(i).text("name");
    if (name == "default") source.text = field->at(i).text("template");
    if (name == "tool_use") source.tools_text = field->at(i).text("template");
  }
  if (source.text.empty()) source.text = source.tools_text;
  if (source.text.empty())
    field->fail("has no template of the name default", "name a file with --chat-template");
  return source;
}

// The forms are public, the texts Ferry's.
constexpr std::string_view kChatMl =
    "{%- for message in messages %}\n"
    "{{- '<|im_start|>' + message.role + '\\n' }}\n"
    "{%- if message.role == 'assistant' %}\n"
    "{%- generation %}{{ message.content + '<|im_end|>' }}{%- endgeneration %}\n"
    "{%- else %}{{ message.content + '<|im_end|>' }}{%- endif %}\n"
    "{{- '\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}";

/** A form in plain words, whose answers end with the tokenizer's end token. */
#define FERRY_PLAIN_FORM(SYSTEM, USER, ANSWER)                                              \
  "{%- if bos_token is defined %}{{ bos_token }}{%- endif %}\n"                             \
  "{%- for message in messages %}\n"                                                        \
  "{%- if message.role == 'assistant' %}{{ '" ANSWER                                        \
  "' }}\n"                                                                                  \
  "{%- generation %}{{ message.content + eos_token }}{%- endgeneration %}\n"                \
  "{%- elif message.role == 'user' %}{{ '" USER                                             \
  "' }}\n"                                                                                  \
  "{%- elif message.role == 'system' %}{{ " SYSTEM                                          \
  " }}\n"                                                                                   \
  "{%- else %}{{ raise_exception('this template knows system, user and assistant, not ' + " \
  "message.role) }}{%- endif %}\n"                                                          \
  "{%- endfor %}\n"                                                                         \
  "{%- if add_generation_prompt %}{{ '" ANSWER "' }}{%- endif %}"

constexpr std::string_view kAlpaca =
    FERRY_PLAIN_FORM("message.content + '\\n\\n'",
                     "### Instruction:\\n' + message.content + '\\n\\n",
                     "### Response:\\n");
constexpr std::string_view kVicuna =
    FERRY_PLAIN_FORM("message.content + ' '", "USER: ' + message.content + ' ", "ASSISTANT: ");
constexpr std::string_view kZephyr =
    FERRY_PLAIN_FORM("'<|system|>\\n' + message.content + eos_token + '\\n'",
                     "<|user|>\\n' + message.content + eos_token + '\\n",
                     "<|assistant|>\\n");
#undef FERRY_PLAIN_FORM

constexpr std::string_view kLlama3 =
    "{{- bos_token }}\n"
    "{%- for message in messages %}\n"
    "{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}\n"
    "{%- if message.role == 'assistant' %}\n"
    "{%- generation %}{{ message.content + '<|eot_id|>' }}{%- endgeneration %}\n"
    "{%- else %}{{ message.content + '<|eot_id|>' }}{%- endif %}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}";

}  // namespace

std::optional<TemplateSource> template_of_model(const fs::path& directory) {
  if (const fs::path file = directory / kTemplateFile; path_exists(file)) {
    TemplateSource source = {.name = file.string(), .text = read_text_file(file)};
    if (const fs::path more = directory / "additional_chat_templates" / "tool_use.jinja";
        path_exists(more))
      source.tools_text = read_text_file(more);
    return source;
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"})
    if (const auto config = read_json_if_there(directory / name))
      if (auto source = source_in(*config, directory / name)) return source;
  return std::nullopt;
}

std::optional<TemplateSource> template_of_tokenizer_config(const fs::path& directory) {
  const fs::path file = directory / "tokenizer_config.json";
  const auto config = read_json_if_there(file);
  return config ? source_in(*config, file) : std::nullopt;
}

const std::vector<KnownTemplate>& known_templates() {
  static const std::vector<KnownTemplate> known = {{"alpaca", kAlpaca},
                                                   {"chatml", kChatMl},
                                                   {"llama3", kLlama3},
                                                   {"vicuna", kVicuna},
                                                   {"zephyr", kZephyr}};
  return known;
}

TemplateSource template_named(const std::string& name) {
  const auto found = std::ranges::find(known_templates(), name, &KnownTemplate::name);
  if (found != known_templates().end()) return {.name = name, .text = std::string(found->text)};
  if (path_exists(name) && !path_is_directory(name))
    return {.name = name, .text = read_text_file(name)};
  std::string names;
  for (const KnownTemplate& known : known_templates())
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  throw Error(Fault::usage, "config.chat_template",
              fmt::format("chat_template is '{}', which is no file and no known name", name),
              fmt::format("expected auto, model, a .jinja file, or one of {}", names));
}

Json special_tokens_in(const fs::path& directory) {
  constexpr std::array kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                 "pad_token", "cls_token", "mask_token"};
  Json tokens = Json::object();
  for (const char* file : {"special_tokens_map.json", "tokenizer_config.json"}) {
    const auto config = read_json_if_there(directory / file);
    if (!config) continue;
    for (const char* name : kNames)
      if (const auto token = config->find(name)) {
        if (token->is_text())
          tokens[name] = token->text();
        else if (token->is_object() && token->find("content"))
          tokens[name] = token->text("content");
      }
  }
  return tokens;
}

}  // namespace ferry::chat
