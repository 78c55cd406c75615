#include "src/data/run_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/error.h"

namespace ferry {

namespace {

/** "a,b,c" as three names. A column whose own name has a comma is asked for by its number. */
std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (const auto name = trim(text.substr(0, end)); !name.empty()) names.emplace_back(name);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

HeaderRow header_of(std::string_view text) {
  return text == "yes"  ? HeaderRow::present
         : text == "no" ? HeaderRow::absent
                        : HeaderRow::automatic;
}

QuotingChoice quoting_of(std::string_view text) {
  return text == "double" ? QuotingChoice::strict
         : text == "none" ? QuotingChoice::none
                          : QuotingChoice::automatic;
}

/** '\0' for "auto". */
char delimiter_of(std::string_view text) {
  constexpr std::pair<std::string_view, char> kNames[] = {
      {"auto", '\0'}, {"comma", ','}, {"semicolon", ';'}, {"tab", '\t'},
      {"\\t", '\t'},  {"pipe", '|'},  {"space", ' '},
  };
  for (const auto& [name, delimiter] : kNames)
    if (text == name) return delimiter;
  const char c = text.size() == 1 ? text.front() : '\0';
  if (c == '\t' || (c >= ' ' && c < 0x7f && c != '"')) return c;
  throw Error(Fault::usage, "config.value", fmt::format("dataset_delimiter is '{}'", text),
              "expected comma, semicolon, tab, pipe, space, or one character of ASCII");
}

}  // namespace

DatasetOptions dataset_options(const Setting& setting, const std::string& path, RowNeed rows) {
  const auto text = [&](std::string_view key) { return setting(key).value_or("auto"); };
  DatasetOptions options;
  options.path = path;
  options.format = *parse_dataset_format(text("dataset_format"));
  options.encoding =
      text("dataset_encoding") == "utf8" ? TextEncoding::utf8 : TextEncoding::utf8_or_latin1;
  options.text_column = setting("text_column").value_or("");
  options.text_pair_column = setting("text_pair_column").value_or("");
  options.label_columns = split_names(setting("label_column").value_or(""));
  options.label_names = split_names(setting("label_names").value_or(""));
  options.header = header_of(text("dataset_header"));
  options.delimiter = delimiter_of(text("dataset_delimiter"));
  options.quoting = quoting_of(text("dataset_quoting"));
  options.problem = parse_problem_type(text("problem_type"));
  options.prompts_are_chats = setting("chat_template").has_value();
  options.rows = rows.form;
  options.labels = rows.labels;
  return options;
}

std::vector<double> dataset_shares(std::string_view text) {
  std::vector<double> shares;
  for (const std::string& item : split_names(text)) {
    const auto share = parse_number(item);
    constexpr double kLeast = 1e-9, kMost = 1e9;
    if (!share || *share < kLeast || *share > kMost)
      throw Error(Fault::usage, "config.dataset_shares",
                  fmt::format("dataset_shares has '{}'", item), "expected numbers above 0");
    shares.push_back(*share);
  }
  return shares;
}

int64_t steps_of_run(int64_t n_steps_per_epoch, double n_epochs, int64_t max_steps) {
  if (max_steps >= 0) return max_steps;
  return static_cast<int64_t>(std::ceil(n_epochs * static_cast<double>(n_steps_per_epoch)));
}

}  // namespace ferry
