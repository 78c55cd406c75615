#include "src/config/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "src/base/bytes.h"

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
  return type == Type::text || type == Type::path || type == Type::choice;
}

std::string trimmed(std::string_view text) {
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
    case Type::choice:
      text = fmt::format("one of {}", fmt::join(option.choices, ", "));
      break;
  }
  if (option.can_be_auto) text += ", or auto";
  return text;
}

std::optional<Value> value_from_typed(const Option& option, const Value& typed) {
  if (std::holds_alternative<Auto>(typed))
    return option.can_be_auto ? std::optional(typed) : std::nullopt;
  if (const auto* text = std::get_if<std::string>(&typed)) {
    if (is_text(option.type) || option.type == Type::bytes || *text == "auto")
      return value_from_text(option, *text);
    return std::nullopt;
  }
  if (const auto* boolean = std::get_if<bool>(&typed))
    return option.type == Type::boolean ? std::optional<Value>(*boolean) : std::nullopt;

  if (const auto* integer = std::get_if<int64_t>(&typed)) {
    if (option.type == Type::text) return std::to_string(*integer);  // a column by its number
    if (option.type == Type::number) return value_from_typed(option, static_cast<double>(*integer));
    bool is_whole =
        option.type == Type::integer || option.type == Type::bytes || option.type == Type::steps;
    if (!is_whole || !in_range(option.range, static_cast<double>(*integer))) return std::nullopt;
    return *integer;
  }
  const double number = std::get<double>(typed);
  if (option.type == Type::steps) {
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
  const std::string text = trimmed(raw);
  if (option.can_be_auto && normalized_name(text) == "auto") return Auto{};
  switch (option.type) {
    case Type::choice: {
      for (std::string_view choice : option.choices)
        if (normalized_name(choice) == normalized_name(text)) return std::string(choice);
      return std::nullopt;
    }
    case Type::boolean:
      if (auto boolean = parse_boolean(text)) return *boolean;
      return std::nullopt;
    case Type::bytes:
      if (auto bytes = parse_bytes(text)) return value_from_typed(option, *bytes);
      return std::nullopt;
    case Type::integer:
    case Type::steps:
      if (auto integer = parse_whole<int64_t>(text)) return value_from_typed(option, *integer);
      if (option.type == Type::integer) return std::nullopt;
      [[fallthrough]];
    case Type::number:
      if (auto number = parse_whole<double>(text)) return value_from_typed(option, *number);
      return std::nullopt;
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
  if (const auto* text = std::get_if<std::string>(&value)) return toml_quoted(*text);
  const int64_t integer = std::get<int64_t>(value);
  if (option.type == Type::bytes && integer > 0) {
    if (integer % kGiB == 0) return fmt::format("\"{}GiB\"", integer / kGiB);
    if (integer % kMiB == 0) return fmt::format("\"{}MiB\"", integer / kMiB);
  }
  return fmt::format("{}", integer);
}

}  // namespace ferry::config
