#include "src/config/param_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>

namespace ferry::config {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find_first_of(separators)) != text.npos; text.remove_prefix(end + 1))
    parts.push_back(trimmed(text.substr(0, end)));
  parts.push_back(trimmed(text));
  return parts;
}

/** One setting of a group. */
struct Setting {
  std::string_view name, long_name;
  std::optional<double> ParamGroup::*value;
  double max;
};
constexpr std::array kSettings = {Setting{"lr", "learning_rate", &ParamGroup::learning_rate, 1},
                                  Setting{"factor", "lr_factor", &ParamGroup::lr_factor, 1000},
                                  Setting{"decay", "weight_decay", &ParamGroup::weight_decay, 1}};

/** Sets what "lr=1e-4" says; returns what is wrong with it, or nothing. */
std::string read_setting(std::string_view text, ParamGroup& group) {
  const size_t equals = text.find('=');
  const std::string_view name = trimmed(text.substr(0, equals));
  for (const Setting& setting : kSettings) {
    if (name != setting.name && name != setting.long_name) continue;
    const std::string_view number =
        equals == text.npos ? std::string_view() : trimmed(text.substr(equals + 1));
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool is_number =
        error == std::errc{} && end == number.data() + number.size() && std::isfinite(value);
    if (!is_number || value < 0 || value > setting.max)
      return fmt::format("{} of '{}' is '{}', expected a number from 0 to {}", name, group.pattern,
                         number, setting.max);
    if (group.*setting.value) return fmt::format("'{}' has {} twice", group.pattern, name);
    group.*setting.value = value;
    return {};
  }
  return fmt::format("'{}' of '{}' is none of lr, factor and decay", name, group.pattern);
}

}  // namespace

ParamGroups parse_param_groups(std::string_view text) {
  ParamGroups out;
  for (std::string_view part : split(text, ";\n")) {
    if (part.empty()) continue;
    const size_t colon = part.find(':');
    ParamGroup group;
    group.pattern = trimmed(part.substr(0, colon));
    if (group.pattern.empty()) return {{}, fmt::format("'{}' has no pattern", part)};
    if (colon == part.npos)
      return {{}, fmt::format("'{}' says nothing: lr, factor or decay follow a ':'", part)};
    for (std::string_view setting : split(part.substr(colon + 1), ","))
      if (std::string problem = read_setting(setting, group); !problem.empty())
        return {{}, std::move(problem)};
    if (group.learning_rate && group.lr_factor)
      return {{}, fmt::format("'{}' has both lr and factor", group.pattern)};
    out.groups.push_back(std::move(group));
  }
  return out;
}

std::string to_text(const std::vector<ParamGroup>& groups) {
  std::vector<std::string> parts;
  for (const ParamGroup& group : groups) {
    std::vector<std::string> settings;
    for (const Setting& setting : kSettings)
      if (const auto& value = group.*setting.value)
        settings.push_back(fmt::format("{}={}", setting.name, *value));
    parts.push_back(fmt::format("{}:{}", group.pattern, fmt::join(settings, ",")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> items;
  if (trimmed(text).empty()) return items;
  for (std::string_view item : split(text, ",")) {
    if (item.empty()) return std::nullopt;
    items.emplace_back(item);
  }
  return items;
}

}  // namespace ferry::config
