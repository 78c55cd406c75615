#include "src/config/options/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "src/base/bytes.h"
#include "src/base/nearest_name.h"
#include "src/config/param_groups.h"

namespace ferry::config {

namespace {

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

bool in_range(const Range& range, double value) {
  if (!std::isfinite(value) || value < range.min) return false;
  return range.is_below_max ? value < range.max : value <= range.max;
}

bool is_text(Type type) {
  return type == Type::text || type == Type::path || type == Type::choice || type == Type::list ||
         type == Type::groups;
}

bool is_steps(Type type) {
  return type == Type::steps || type == Type::interval;
}

struct TimeUnit {
  std::string_view name;
  int64_t seconds;
};
/** Largest first: a duration is written in the largest that divides it. */
constexpr std::array kTimeUnits = {TimeUnit{"d", 86400}, TimeUnit{"h", 3600}, TimeUnit{"min", 60},
                                   TimeUnit{"s", 1}};

/** "1.5h" in whole seconds. */
std::optional<int64_t> parse_duration(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  for (const auto& [name, seconds] : kTimeUnits)
    if (const double total = value * static_cast<double>(seconds);
        (unit == name || (unit.empty() && name == "s")) && std::abs(total) < 9e15)
      return static_cast<int64_t>(std::llround(total));
  return std::nullopt;
}

std::string format_duration(int64_t seconds) {
  for (const TimeUnit& unit : kTimeUnits)
    if (seconds % unit.seconds == 0) return fmt::format("{}{}", seconds / unit.seconds, unit.name);
  return {};
}

/** The items of a list as TOML writes them. */
std::string list_to_toml(const std::string& text) {
  std::vector<std::string> items;
  for (const std::string& item : parse_list(text).value_or(std::vector<std::string>()))
    items.push_back(toml_quoted(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string trimmed_copy(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

std::string bound_text(const Option& option, double bound) {
  return option.type == Type::bytes ? format_bytes(static_cast<int64_t>(bound))
                                    : fmt::format("{}", bound);
}

std::string range_text(const Option& option) {
  const Range& range = option.range;
  bool has_max = option.type == Type::number ? range.max < 1e9 : range.max < 9e15;
  if (std::isinf(range.min)) return has_max ? " of at most " + bound_text(option, range.max) : "";
  std::string text = " of at least " + bound_text(option, range.min);
  if (has_max)
    text += (range.is_below_max ? " and below " : " and at most ") + bound_text(option, range.max);
  return text;
}

}  // namespace

std::string to_text(Seconds time) {
  return format_duration(time.count);
}

std::optional<bool> parse_boolean(std::string_view text) {
  const std::string word = normalized_name(text);
  for (std::string_view yes : {"true", "yes", "on", "1"})
    if (word == yes) return true;
  for (std::string_view no : {"false", "no", "off", "0"})
    if (word == no) return false;
  return std::nullopt;
}

std::string expectation(const Option& option) {
  std::string text;
  switch (option.type) {
    case Type::text:
      text = "text";
      break;
    case Type::path:
      text = "a path";
      break;
    case Type::boolean:
      text = "true or false";
      break;
    case Type::integer:
      text = "an integer" + range_text(option);
      break;
    case Type::number:
      text = "a number" + range_text(option);
      break;
    case Type::bytes:
      text = "a size such as 11GiB" + range_text(option);
      break;
    case Type::steps:
      text = "a whole number of steps, or a share of all steps from 0 to below 1";
      break;
    case Type::interval:
      text =
          "a whole number of steps, a share of all steps from 0 to below 1, or a time such as "
          "30min";
      break;
    case Type::choice:
      text = fmt::format("one of {}", fmt::join(option.choices, ", "));
      break;
    case Type::duration:
      text = fmt::format("a time such as 90s, 30min or 8h, at most {}",
                         format_duration(static_cast<int64_t>(option.range.max)));
      break;
    case Type::list:
      text = "items separated by commas";
      break;
    case Type::groups:
      text = "groups such as 'classifier.*:lr=1e-4,decay=0', separated by ;";
      break;
  }
  if (option.can_be_auto) text += ", or auto";
  return text;
}

std::optional<Value> value_from_typed(const Option& option, const Value& typed) {
  if (std::holds_alternative<Auto>(typed))
    return option.can_be_auto ? std::optional(typed) : std::nullopt;
  if (const auto* text = std::get_if<std::string>(&typed)) {
    if (is_text(option.type) || option.type == Type::bytes || option.type == Type::duration ||
        option.type == Type::interval || *text == "auto")
      return value_from_text(option, *text);
    return std::nullopt;
  }
  if (const auto* boolean = std::get_if<bool>(&typed))
    return option.type == Type::boolean ? std::optional<Value>(*boolean) : std::nullopt;

  if (const auto* integer = std::get_if<int64_t>(&typed)) {
    if (option.type == Type::text) return std::to_string(*integer);  // a column by its number
    if (option.type == Type::number) return value_from_typed(option, static_cast<double>(*integer));
    bool is_whole = option.type == Type::integer || option.type == Type::bytes ||
                    is_steps(option.type) || option.type == Type::duration;
    if (!is_whole || !in_range(option.range, static_cast<double>(*integer))) return std::nullopt;
    return *integer;
  }
  if (const auto* time = std::get_if<Seconds>(&typed))
    return option.type == Type::interval && time->count > 0 ? std::optional(typed) : std::nullopt;
  const double number = std::get<double>(typed);
  if (is_steps(option.type)) {
    if (number == 0) return int64_t{0};
    return number > 0 && number < 1 ? std::optional<Value>(number) : std::nullopt;
  }
  if (option.type != Type::number || !in_range(option.range, number)) return std::nullopt;
  return number;
}

std::optional<Value> value_from_text(const Option& option, std::string_view raw) {
  if (option.type == Type::text || option.type == Type::path) {
    if (option.can_be_auto && raw == "auto") return Auto{};
    return std::string(raw);
  }
  const std::string text = trimmed_copy(raw);
  if (option.can_be_auto && normalized_name(text) == "auto") return Auto{};
  switch (option.type) {
    case Type::choice: {
      for (std::string_view choice : option.choices)
        if (normalized_name(choice) == normalized_name(text)) return std::string(choice);
      for (const ChoiceAlias& alias : option.choice_aliases)
        if (!alias.choice.empty() && normalized_name(alias.typed) == normalized_name(text))
          return std::string(alias.choice);
      return std::nullopt;
    }
    case Type::boolean:
      if (auto boolean = parse_boolean(text)) return *boolean;
      return std::nullopt;
    case Type::bytes:
      if (auto bytes = parse_bytes(text)) return value_from_typed(option, *bytes);
      return std::nullopt;
    case Type::interval:
      if (!text.empty() && std::isalpha(static_cast<unsigned char>(text.back()))) {
        const auto seconds = parse_duration(text);
        return seconds ? value_from_typed(option, Seconds{*seconds}) : std::nullopt;
      }
      [[fallthrough]];
    case Type::integer:
    case Type::steps:
      if (auto integer = parse_whole<int64_t>(text)) return value_from_typed(option, *integer);
      if (option.type == Type::integer) return std::nullopt;
      [[fallthrough]];
    case Type::number:
      if (auto number = parse_whole<double>(text)) return value_from_typed(option, *number);
      return std::nullopt;
    case Type::duration:
      if (auto seconds = parse_duration(text)) return value_from_typed(option, *seconds);
      return std::nullopt;
    case Type::list:
      if (auto items = parse_list(raw)) return fmt::format("{}", fmt::join(*items, ","));
      return std::nullopt;
    case Type::groups: {
      const ParamGroups parsed = parse_param_groups(raw);
      return parsed.problem.empty() ? std::optional<Value>(to_text(parsed.groups)) : std::nullopt;
    }
    case Type::text:
    case Type::path:
      break;  // returned above
  }
  return std::nullopt;
}

std::string toml_quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string to_toml(const Option& option, const Value& value) {
  if (std::holds_alternative<Auto>(value)) return "\"auto\"";
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value))
    return option.type == Type::list ? list_to_toml(*text) : toml_quoted(*text);
  if (const auto* time = std::get_if<Seconds>(&value)) return toml_quoted(to_text(*time));
  const int64_t integer = std::get<int64_t>(value);
  if (option.type == Type::bytes && integer > 0) {
    if (integer % kGiB == 0) return fmt::format("\"{}GiB\"", integer / kGiB);
    if (integer % kMiB == 0) return fmt::format("\"{}MiB\"", integer / kMiB);
  }
  if (option.type == Type::duration && integer > 0)
    return fmt::format("\"{}\"", format_duration(integer));
  return fmt::format("{}", integer);
}

}  // namespace ferry::config
