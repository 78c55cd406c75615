#include "src/config/command_line/foreign_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/options/value.h"

namespace ferry::config {
namespace {

/** A pattern may leave its beginning or its end open: "hub_*", "*forcausallm". */
bool is_named(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == name;
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

bool is_value(std::string_view pattern, const std::string& value) {
  if (is_named(pattern, value)) return true;
  const auto wanted = number_of(pattern), given = number_of(value);
  return wanted && wanted == given;
}

/** A value that asks for nothing. */
bool is_off(std::string_view value) {
  const auto truth = parse_boolean(value);
  return is_null(value) || truth == false || number_of(value) == 0.0;
}

}  // namespace

const ForeignFlag* find_foreign_flag(std::string_view name) {
  std::string wanted(name);
  std::ranges::replace(wanted, '-', '_');
  for (const bool whole : {true, false})  // hub_always_push before hub_*
    for (const ForeignFlag& flag : foreign_flags())
      for (const std::string_view pattern : flag.names)
        if (pattern.ends_with('*') != whole && is_named(pattern, wanted)) return &flag;
  return nullptr;
}

bool is_null(std::string_view value) {
  const std::string word = normalized_name(value);
  return word.empty() || word == "null" || word == "none" || word == "~";
}

const ForeignMeaning* meaning_of(const ForeignFlag& flag, std::string_view value) {
  const std::string word = normalized_name(value);
  for (const ForeignMeaning& meaning : flag.meanings)
    if (is_value(meaning.value, word)) return &meaning;
  return nullptr;
}

std::string accept_foreign_flag(const ForeignFlag& flag,
                                std::string_view written,
                                std::string_view value,
                                std::string_view where) {
  const std::string place = where == written ? "" : fmt::format(" ({})", where);
  const auto truth = parse_boolean(value);
  const std::string_view means = flag.is_boolean && truth ? (*truth ? "true" : "false") : value;
  const std::string word = normalized_name(means);
  const auto is_harmless = [&] {
    return std::ranges::any_of(flag.harmless,
                               [&](std::string_view other) { return is_value(other, word); });
  };
  if (flag.is_refused && !is_off(value) && !is_harmless())
    throw Error(Fault::usage, "config.option", fmt::format("there is no {}{}", written, place),
                flag.reason);
  const bool is_nothing = is_null(value) || word == "auto";
  if (!flag.is_refused && flag.is_boolean && !truth && !is_nothing && !is_harmless())
    throw Error(Fault::usage, "config.value",
                fmt::format("{} = {}{}, expected true or false", written, value, place),
                "leave it out: it changes nothing");
  if (!flag.is_refused && !flag.harmless.empty() && !is_nothing && !is_harmless())
    throw Error(Fault::usage, "config.option",
                fmt::format("there is no {} = {}{}", written, means, place), flag.reason);
  return fmt::format("{}{} changes nothing: {}", written, place, flag.reason);
}

}  // namespace ferry::config
