// Configuration files and presets: flat TOML, one `key = value` a line, and what a preset says of
// itself. The only file that includes toml++.

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/version.h"
#include "src/config/config.h"
#include "src/config/recipes/recipe.h"
#include "src/files/plain_file.h"

namespace ferry::config {

namespace {

/** A file of settings is a page; more is a wrong file (a model given as --config). */
constexpr std::uintmax_t kConfigLimit_bytes = 1 << 20;

/** Not settings: what a run's config.toml says of itself. */
constexpr std::string_view kFormatKey = "format_version", kWriterKey = "ferry_version";
constexpr int64_t kFormat_version = 1;
/** Not settings either: what a preset says of itself, preset.title and so on. */
constexpr std::string_view kHeadKey = "preset";

std::string read_text(const std::filesystem::path& file) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Fault::usage, "config.file",
                fmt::format("cannot read '{}': {}", file.string(), why),
                "--config takes a TOML or YAML file, --preset a name from ferry presets ls");
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) refuse("no such file");
  if (status.type() == std::filesystem::file_type::directory) refuse("it is a directory");
  const auto size_bytes = std::filesystem::file_size(file, error);
  if (!error && size_bytes > kConfigLimit_bytes) refuse("larger than 1 MiB, no file of settings");
  return read_text_file(file, kConfigLimit_bytes);
}

/** ["a", "b"] as "a,b"; nullopt for other arrays. */
std::optional<std::string> list_text(const toml::array& array) {
  std::string text;
  for (const toml::node& item : array) {
    if (!item.is_string()) return std::nullopt;
    if (&item != &array.front()) text += ',';
    text += item.as_string()->get();
  }
  return text;
}

std::optional<std::pair<Value, std::string>> value_of(const toml::node& node);

/** Tables of a pattern and settings in the one-line form of param_groups; nullopt for others. */
std::optional<std::string> groups_text(const toml::array& array) {
  std::string text;
  for (const toml::node& item : array) {
    const toml::table* group = item.as_table();
    if (!group) return std::nullopt;
    std::string settings;
    for (auto&& [key, node] : *group) {
      if (key == "pattern") continue;
      const auto value = value_of(node);
      settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", key.str(),
                              value ? value->second : "?");
    }
    text += fmt::format("{}{}:{}", text.empty() ? "" : "; ",
                        (*group)["pattern"].value_or(std::string()), settings);
  }
  return text;
}

/** The node's value and how the user wrote it; nullopt for what no option takes (dates, tables,
 * arrays but those of list and groups). */
std::optional<std::pair<Value, std::string>> value_of(const toml::node& node) {
  if (auto text = node.as_string()) return std::pair{Value(text->get()), toml_quoted(text->get())};
  if (auto integer = node.as_integer())
    return std::pair{Value(integer->get()), fmt::format("{}", integer->get())};
  if (auto number = node.as_floating_point())
    return std::pair{Value(number->get()), fmt::format("{}", number->get())};
  if (auto boolean = node.as_boolean())
    return std::pair{Value(boolean->get()), fmt::format("{}", boolean->get())};
  return std::nullopt;
}

/** The place after a text that begins at a quote, or at three of them. */
size_t end_of_quoted(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const std::string three(3, quote);
  const bool is_long = text.substr(begin).starts_with(three);
  const std::string closing = is_long ? three : std::string(1, quote);
  for (size_t i = begin + closing.size(); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (text.substr(i).starts_with(closing))
      return i + closing.size();
    else if (!is_long && text[i] == '\n')
      return i;
  }
  return text.size();
}

/** toml++ limits the depth of lists and of tables in braces. A key "a.a.a..." of 200,000 parts is
 * as many tables in each other too, and taking them apart overflows the stack. */
void refuse_deep_keys(std::string_view text, const std::filesystem::path& file) {
  const auto is_of_key = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == ' ' ||
           c == '\t';
  };
  int64_t line = 1;
  int n_dots = 0;
  bool in_value = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const size_t end = end_of_quoted(text, i);
      line += std::ranges::count(text.substr(i, end - i), '\n');
      i = end - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.') {
      if (!in_value && ++n_dots == 2)
        throw Error(Fault::usage, "config.file",
                    fmt::format("{}:{}: a key of several parts", file.string(), line),
                    "settings stand at the top level, without tables");
    } else if (!is_of_key(c)) {
      n_dots = 0;
      if (c == '=') in_value = true;
      if (c == '\n' || c == ',' || c == '{') in_value = false;
      line += c == '\n';
    }
  }
}

/** Bytes and lines of a text that a line of a table or a message can hold. */
constexpr size_t kHeadText_bytes_max = 200;

bool is_one_line(std::string_view text) {
  return !text.empty() && text.size() <= kHeadText_bytes_max &&
         std::ranges::none_of(text,
                              [](char c) { return std::iscntrl(static_cast<unsigned char>(c)); });
}

/** Takes a key preset.*. Throws Error(usage) that names it and where it stands. */
void take_head_key(PresetHead& head,
                   std::string_view key,
                   const toml::node& node,
                   std::string where) {
  const auto refuse = [&](std::string_view expected) {
    throw Error(
        Fault::usage, "config.preset",
        fmt::format("preset.{} ({}), expected {}", key, where, expected),
        "a preset says of itself preset.title, purpose, card and host_memory; settings stand "
        "without \"preset.\"");
  };
  const std::string text = node.value_or(std::string());
  if (key == "host_memory") {
    head.host_memory_bytes = parse_bytes(text);
    if (head.host_memory_bytes.value_or(0) <= 0) refuse("a size such as \"32GiB\"");
  } else if (key == "title" || key == "purpose" || key == "card") {
    if (!is_one_line(text)) refuse("a line of text");
    (key == "title" ? head.title : key == "purpose" ? head.purpose : head.card) = text;
    if (key == "card") head.card_where = std::move(where);
  } else {
    refuse("title, purpose, card or host_memory");
  }
}

/** The keys preset.* of a file; without any, an empty head. */
PresetHead head_of(const toml::table& table, const std::filesystem::path& file) {
  PresetHead head;
  const toml::node* const node = table.get(kHeadKey);
  if (!node) return head;
  const auto where = [&](const toml::source_region& source) {
    return fmt::format("{}:{}", file.string(), source.begin.line);
  };
  if (!node->is_table())
    throw Error(
        Fault::usage, "config.preset",
        fmt::format("preset ({}) is no table", where(node->source())),
        "write preset.title = \"...\", preset.card = \"2080ti-11g\"; a preset is taken with "
        "--preset NAME");
  for (auto&& [key, value] : *node->as_table())
    take_head_key(head, key.str(), value, where(key.source()));
  return head;
}

/** A form that is not known may mean something else by the same keys. */
void check_format(const toml::table& table, const std::filesystem::path& file) {
  const int64_t version = table[kFormatKey].value_or(kFormat_version);
  if (version <= kFormat_version) return;
  const std::string writer = table[kWriterKey].value_or(std::string("a newer one"));
  throw Error(
      Fault::usage, "config.file",
      fmt::format("'{}' has format_version {} (written by Ferry {}); this is Ferry {}, which "
                  "reads up to {}",
                  file.string(), version, writer, ferry_version(), kFormat_version),
      "use the Ferry that wrote it, or a newer one");
}

}  // namespace

std::string format_lines() {
  return fmt::format("{} = {}\n{} = \"{}\"\n\n", kFormatKey, kFormat_version, kWriterKey,
                     ferry_version());
}

PresetHead read_toml_file(Config& config, const std::filesystem::path& file, Source source) {
  const std::string text = read_text(file);
  refuse_deep_keys(text, file);
  toml::table table;
  try {
    table = toml::parse(text, file.string());
  } catch (const toml::parse_error& error) {
    throw Error(
        Fault::usage, "config.file",
        fmt::format("{}:{}: {}", file.string(), error.source().begin.line, error.description()),
        "text needs quotes, as in dataset = \"train.tsv\"");
  }

  check_format(table, file);
  PresetHead head = head_of(table, file);
  std::map<std::string_view, std::string> given;  // key -> where
  for (auto&& [key, node] : table) {
    if (key.str() == kFormatKey || key.str() == kWriterKey || key.str() == kHeadKey) continue;
    const std::string where = fmt::format("{}:{}", file.string(), key.source().begin.line);
    auto value = value_of(node);
    const NameMatch match = find_option(key.str());
    if (const toml::array* array = node.as_array(); array && match.option) {
      std::optional<std::string> text_of_array;
      if (match.option->type == Type::list) text_of_array = list_text(*array);
      if (match.option->type == Type::groups) text_of_array = groups_text(*array);
      if (text_of_array) value = std::pair{Value(*text_of_array), *text_of_array};
    }
    if (node.is_table())
      throw Error(Fault::usage, "config.file", fmt::format("table [{}] ({})", key.str(), where),
                  "settings stand at the top level, without tables");
    const bool denies = match.alias && !match.alias->means_value.empty() && node.is_boolean() &&
                        !node.as_boolean()->get();  // fp16 = false
    if (match.option && !denies) {
      auto [entry, is_new] = given.emplace(match.option->key, where);
      if (!is_new)
        throw Error(
            Fault::usage, "config.file",
            fmt::format("{} is given twice: {} and {}", match.option->key, entry->second, where),
            "leave one out");
      if (!value)
        throw Error(Fault::usage, "config.value",
                    fmt::format("{} ({}) is a list or a date, expected {}", key.str(), where,
                                expectation(*match.option)));
    }
    if (!value) value = std::pair{Value(std::string()), std::string()};
    config.set(key.str(), value->first, value->second, {source, where});
  }
  return head;
}

PresetHead read_config_file(Config& config, const std::filesystem::path& file) {
  if (is_yaml(file)) {
    read_recipe(config, read_text(file), file);
    return {};
  }
  if (file.extension() == ".json") {
    const std::string text = read_text(file);
    const bool is_deepspeed = text.find("zero_optimization") != std::string::npos;
    throw Error(Fault::usage, "config.file",
                is_deepspeed
                    ? fmt::format("'{}' is a configuration of DeepSpeed", file.string())
                    : fmt::format("'{}' is JSON, which is no form of settings here", file.string()),
                is_deepspeed ? "leave it out: Ferry offloads by itself, and gpu_memory and "
                               "host_memory say how much it may take"
                             : "write a line for each setting: key = value in a .toml file, or "
                               "key: value in a .yaml file; a model's config.json goes to "
                               "--from-config");
  }
  return read_toml_file(config, file, Source::file);
}

}  // namespace ferry::config
