#include "src/inputs/prompt_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "models/family.h"
#include "src/base/error.h"
#include "src/files/hf/prompt_config.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPromptOption = "config.template";

/** The N-th line of a file of templates that is not blank. */
std::string template_in_line(const fs::path& file, size_t number) {
  const std::string text = read_text_file(file);
  size_t n = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (!line.empty() && ++n == number) return std::string(line);
  }
  throw Error(
      Fault::data, kPromptOption,
      fmt::format("'{}' has {} templates, and number {} is asked for", file.string(), n, number),
      "a line of the file is a template; they are counted from 1");
}

/** The template that an option holds, or that a file holds: "templates.txt", "templates.txt:2". */
std::string template_text_of(const std::string& option) {
  if (option.find('{') != option.npos || option.empty()) return option;
  std::error_code error;
  fs::path file = option;
  size_t number = 1;
  const size_t colon = option.find_last_of(':');
  if (!fs::exists(file, error) && colon != option.npos) {
    const auto n = parse_number(option.substr(colon + 1));
    if (n && *n >= 1 && *n < 1e6) {
      number = static_cast<size_t>(*n);
      file = option.substr(0, colon);
    }
  }
  if (fs::is_regular_file(file, error)) return template_in_line(file, number);
  throw Error(Fault::usage, kPromptOption,
              fmt::format("the template '{}' has no braces and is no file", option),
              R"(write it as in '{"placeholder": "text_a"} It was {"mask"}.')");
}

/** The rows of the table of words; a configuration may leave them to its family. */
int32_t n_words_of(const HfConfig& model) {
  if (model.fields().find("vocab_size"))
    return static_cast<int32_t>(model.fields().integer("vocab_size", 1, INT32_MAX));
  const HeadKind head = head_in_files(family_of(model.fields()), HeadKind::prompt);
  return static_cast<int32_t>(make_table(model.fields(), {.head = head}).vocab_size);
}

}  // namespace

std::shared_ptr<const PromptSettings> prompt_settings_of(const config::Config& config,
                                                         const HfConfig& model,
                                                         const Tokenizer* tokenizer) {
  const std::string& option = config.text("prompt_template");
  if (option.empty() && !read_prompt_config(model)) return nullptr;
  auto settings = std::make_shared<PromptSettings>();
  settings->text = template_text_of(option);
  settings->verbalizer = read_verbalizer(config.text("verbalizer"));
  settings->tokens = parse_word_tokens(config.text("multi_token_handler")).value();
  settings->is_soft = config.text("verbalizer_type") == "soft";
  settings->tokenizer = tokenizer;
  settings->n_words = n_words_of(model);
  settings->is_decoder = family_of(model.fields()).is_decoder;
  settings->replaces_model =
      config.origin("prompt_template").source == config::Source::command_line;
  return settings;
}

void keep_prompt(config::Config& config) {
  const auto keep = [&](const char* key, const std::string& text) {
    if (!text.empty() && text != config.text(key))
      config.choose(key, text, config.origin(key).where);
  };
  keep("prompt_template", template_text_of(config.text("prompt_template")));
  const Verbalizer verbalizer = read_verbalizer(config.text("verbalizer"));
  nlohmann::ordered_json json;
  if (!verbalizer.by_order.empty()) json = verbalizer.by_order;
  for (const auto& [label, words] : verbalizer.by_name)
    json[label] = words;
  if (!verbalizer.is_empty()) keep("verbalizer", json.dump());
}

void check_prompt_task(const config::Config& config, const TaskKind& kind) {
  if (kind.head == HeadKind::prompt) {
    if (config.text("prompt_template").empty())
      throw Error(Fault::usage, kPromptOption, "task = prompt-classification without a template",
                  R"(add --template '{"placeholder": "text_a"} It was {"mask"}.')");
    return;
  }
  for (const char* key : {"prompt_template", "verbalizer"})
    if (!config.text(key).empty())
      throw Error(Fault::usage, kPromptOption,
                  fmt::format("{} ({}) is for task = prompt-classification, and task is {}", key,
                              config.origin(key).where, kind.name),
                  "leave it out, or the task");
}

bool asks_by_prompt(const config::Config& config, const TaskKind& kind) {
  return is_language_model(kind.head) && !config.text("prompt_template").empty();
}

VirtualTokens virtual_tokens_of(const config::Config& config, const HfConfig& model) {
  if (config.text("tuning") != "soft_prompt") return {};
  return {.first = n_words_of(model), .n = config.integer("num_virtual_tokens")};
}

VirtualTokens virtual_tokens_of(const HfDirectory& model) {
  const auto& adapter = model.adapter();
  if (!adapter || adapter->type != PeftType::prompt_tuning) return {};
  return {.first = n_words_of(model.config()), .n = adapter->prompt.n_tokens};
}

void check_virtual_tokens(const config::Config& config, const TaskKind& kind) {
  const bool has_text = !config.text("prompt_tuning_init_text").empty(),
             takes_text = config.text("prompt_tuning_init") == "text";
  if (config.text("tuning") != "soft_prompt") return;
  constexpr std::string_view kTasks[] = {"classification", "causal-lm", "prompt-classification"};
  if (std::ranges::find(kTasks, kind.name) == std::end(kTasks))
    throw Error(Fault::usage, "config.tuning",
                fmt::format("tuning = soft_prompt with task = {}", kind.name),
                "virtual tokens are for classification, causal-lm and prompt-classification; "
                "--tuning lora trains every task");
  if (takes_text && !has_text)
    throw Error(Fault::usage, "config.prompt_tuning_init_text",
                "prompt_tuning_init = text, and there is no text",
                "--prompt-tuning-init-text \"Is the text kind or not?\"");
}

std::vector<SoftToken> starts_of_text(const config::Config& config, const Tokenizer& tokenizer) {
  const std::string& text = config.text("prompt_tuning_init_text");
  std::vector<int32_t> ids;
  tokenizer.append_ids(text, ids);
  if (ids.empty())
    throw Error(Fault::usage, "config.prompt_tuning_init_text",
                fmt::format("the text '{}' has no tokens", text), "give words");
  std::vector<SoftToken> tokens;
  for (int64_t i = 0; i < config.integer("num_virtual_tokens"); ++i)
    tokens.push_back({ids[static_cast<size_t>(i) % ids.size()]});
  return tokens;
}

}  // namespace ferry
