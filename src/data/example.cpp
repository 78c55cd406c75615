#include "src/data/example.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "src/base/error.h"

namespace ferry {
namespace {

struct ProblemName {
  ProblemType type;
  std::string_view hf_name;
};

constexpr std::array kProblemNames = {
    ProblemName{ProblemType::unlabelled, ""},
    ProblemName{ProblemType::single_label, "single_label_classification"},
    ProblemName{ProblemType::multi_label, "multi_label_classification"},
    ProblemName{ProblemType::regression, "regression"},
    ProblemName{ProblemType::tags, ""},
    ProblemName{ProblemType::answers, ""},
    ProblemName{ProblemType::preferences, ""},
};

}  // namespace

std::string_view hf_name_of(ProblemType type) {
  return kProblemNames.at(static_cast<size_t>(type)).hf_name;
}

std::optional<ProblemType> parse_problem_type(std::string_view hf_name) {
  for (const ProblemName& row : kProblemNames)
    if (row.hf_name == hf_name) return row.type;
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == text.npos ? std::string_view{}
                            : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::string> canonical_integer(std::string_view text) {
  auto value = parse_number(text);
  // Beyond 2^53 a double no longer tells neighbours apart; such a number is a name like any other.
  if (!value || std::trunc(*value) != *value || std::fabs(*value) > 9007199254740992.0)
    return std::nullopt;
  return std::to_string(static_cast<int64_t>(*value));
}

LabelMap::LabelMap(std::vector<std::string> names) : names_(std::move(names)) {
  for (size_t id = 0; id < names_.size(); ++id) {
    bool is_new = ids_.emplace(names_[id], static_cast<int32_t>(id)).second;
    if (!is_new)
      throw Error(Fault::data, "data.labels",
                  fmt::format("the label '{}' appears twice", names_[id]));
    any_number_ |= canonical_integer(names_[id]).has_value();
  }
}

LabelMap LabelMap::sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (std::all_of(names.begin(), names.end(),
                  [](const auto& name) { return canonical_integer(name) == name; }))
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return std::stoll(a) < std::stoll(b);
    });
  return LabelMap(std::move(names));
}

std::optional<int32_t> LabelMap::find(std::string_view label) const {
  if (auto found = ids_.find(std::string(label)); found != ids_.end()) return found->second;
  auto number = canonical_integer(label);
  if (!number) return std::nullopt;
  if (auto found = ids_.find(*number); found != ids_.end()) return found->second;
  if (any_number_) return std::nullopt;
  const long long id = std::stoll(*number);
  if (id < 0 || id >= size()) return std::nullopt;
  return static_cast<int32_t>(id);
}

bool LabelMap::has_entities() const {
  return std::ranges::any_of(names_, [](const std::string& name) {
    return name == "B" || name == "I" || name.starts_with("B-") || name.starts_with("I-");
  });
}

std::string LabelMap::list() const {
  std::string text;
  for (int32_t id = 0; id < size() && id < 10; ++id)
    fmt::format_to(std::back_inserter(text), "{}{}", id ? ", " : "", name(id));
  if (size() > 10) fmt::format_to(std::back_inserter(text), ", ... ({} in all)", size());
  return text;
}

}  // namespace ferry
