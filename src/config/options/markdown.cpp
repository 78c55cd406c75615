// The option table as Markdown: the tables of src/config/options.md, `ferry help --markdown`.

#include <fmt/format.h>

#include "src/config/options/option.h"

namespace ferry::config {

namespace {

/** Text in which a cell of a table does not end and nothing is taken for a tag, a link or emphasis.
 */
std::string cell(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (std::string_view("\\`*<[|").find(c) != std::string_view::npos) result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", text);
}

std::string aliases_of(const Option& option) {
  std::string names;
  for (const Alias& alias : option.aliases) {
    if (!names.empty()) names += ", ";
    names += code(alias.name);
    if (!alias.means_value.empty()) names += fmt::format(" (= {})", cell(alias.means_value));
  }
  return names;
}

std::string default_of(const Option& option) {
  const bool is_special = !option.special.value.empty() && option.special.value == option.value;
  return code(option.value) + (is_special ? fmt::format(" ({})", cell(option.special.word)) : "");
}

std::string values_of(const Option& option) {
  if (option.type == Type::boolean) return "true, false";
  if (!option.choices.empty()) {
    std::string text = fmt::format("{}", fmt::join(option.choices, ", "));
    for (const ChoiceAlias& alias : option.choice_aliases)
      if (!alias.choice.empty()) text += fmt::format(", {} (= {})", alias.typed, alias.choice);
    return cell(text);
  }
  return cell(option.unit);
}

}  // namespace

std::string options_markdown() {
  std::string text;
  std::string_view group;
  for (const Option& option : option_table()) {
    if (option.group != group) {
      group = option.group;
      text += fmt::format(
          "{}### {}\n\n| option | also | default | unit, or values | on resume | what it does |\n"
          "|---|---|---|---|---|---|\n",
          text.empty() ? "" : "\n", cell(group));
    }
    text += fmt::format("| {} | {} | {} | {} | {} | **{}.** {} |\n", code(option.key),
                        aliases_of(option), default_of(option), values_of(option),
                        option.verbs & kTrain ? name_of(option.effect) : "", cell(option.label),
                        cell(option.help));
  }
  return text;
}

}  // namespace ferry::config
