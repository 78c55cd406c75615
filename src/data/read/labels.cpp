#include "src/data/read/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"

namespace ferry {
namespace {

std::string_view plain_name_of(ProblemType type) {
  switch (type) {
    case ProblemType::unlabelled:
      return "no labels";
    case ProblemType::single_label:
      return "one label per text";
    case ProblemType::multi_label:
      return "several labels per text";
    case ProblemType::regression:
      return "regression";
    case ProblemType::tags:
      return "a tag per word";
    case ProblemType::answers:
      return "answers in a text";
  }
  return "?";
}

/** Adds uses of a label; the rows of `uses` need not come in order. */
void add_uses(LabelTexts& all, const std::string& label, const LabelUses& uses) {
  const auto [found, is_new] = all.try_emplace(label, uses);
  if (is_new) return;
  found->second.n += uses.n;
  if (uses.first_row >= found->second.first_row) return;
  found->second.first_row = uses.first_row;
  found->second.place = uses.place;
}

/** The first of the labels, by their rows, that `is_meant`; null where none is. */
template <typename IsMeant>
const LabelTexts::value_type* first_label(const LabelTexts& labels, const IsMeant& is_meant) {
  const LabelTexts::value_type* first = nullptr;
  for (const auto& label : labels)
    if (is_meant(label.first) && (!first || label.second.first_row < first->second.first_row))
      first = &label;
  return first;
}

/** The separator of lists of labels in one column: asked for, or the first of | ; , that any row
 * has. */
char separator_of(const LabelTexts& labels, const DatasetOptions& options) {
  if (options.label_separator) return options.label_separator;
  for (char candidate : {'|', ';', ','})
    for (const auto& [label, uses] : labels)
      if (label.find(candidate) != std::string::npos) return candidate;
  return ',';
}

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (const auto item = trim(text.substr(0, end)); !item.empty()) items.emplace_back(item);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return items;
}

bool is_zero_or_one(const std::string& label) {
  const auto value = parse_number(label);
  return value && (*value == 0 || *value == 1);
}

[[noreturn]] void refuse_hot_label(const LabelFacts& facts) {
  std::tuple<int64_t, size_t, const LabelTexts::value_type*> first = {INT64_MAX, 0, nullptr};
  for (size_t i = 0; i < facts.columns().size(); ++i)
    if (const auto* label = first_label(
            facts.columns()[i], [](const std::string& text) { return !is_zero_or_one(text); }))
      first = std::min(first, {label->second.first_row, i, label});
  const auto& [row, column, label] = first;
  refuse_row(label->second.place, fmt::format("label column '{}' is '{}', expected 0 or 1",
                                              facts.head().hot_columns[column], label->first));
}

/** The columns that are 1 somewhere. */
LabelTexts hot_labels(const LabelFacts& facts) {
  LabelTexts labels;
  for (size_t i = 0; i < facts.columns().size(); ++i)
    for (const auto& [text, uses] : facts.columns()[i]) {
      if (!is_zero_or_one(text)) refuse_hot_label(facts);
      if (parse_number(text) == 1) add_uses(labels, facts.head().hot_columns[i], uses);
    }
  return labels;
}

/** One bad cell in a column of scores must not turn them into as many classes. */
[[noreturn]] void refuse_stray_label(const LabelTexts::value_type& stray,
                                     int64_t n_numbers,
                                     int64_t n_rows) {
  const auto& [label, uses] = stray;
  if (trim(label).empty()) refuse_row(uses.place, "the label is missing");
  refuse_row(uses.place,
             fmt::format("the label '{}' is not a number, but {} of {} are, some with a fraction",
                         label, n_numbers, n_rows),
             "mend it, or give problem_type to say which it is: regression or "
             "single_label_classification");
}

ProblemType problem_from_labels(const LabelFacts& facts) {
  if (facts.any_list() || !facts.head().hot_columns.empty()) return ProblemType::multi_label;
  bool any_fraction = false;
  int64_t n_numbers = 0;
  const LabelTexts& labels = facts.columns().front();
  for (const auto& [label, uses] : labels)
    if (const auto value = parse_number(label)) {
      any_fraction |= std::trunc(*value) != *value;
      n_numbers += uses.n;
    }
  const auto* stray =
      first_label(labels, [](const std::string& label) { return !parse_number(label); });
  if (any_fraction && stray && n_numbers > facts.n_rows() / 2)
    refuse_stray_label(*stray, n_numbers, facts.n_rows());
  return any_fraction && !stray ? ProblemType::regression : ProblemType::single_label;
}

[[noreturn]] void refuse_one_label(const LabelFacts& facts, const LabelMap& map) {
  if (!facts.head().is_folder)
    throw Error(
        Fault::data, "data.labels",
        fmt::format("'{}' has the one label '{}', expected at least two", facts.name(), map.list()),
        "is it the right label column?");
  const auto& bare = facts.head().bare_folders;
  throw Error(
      Fault::data, "data.labels",
      fmt::format(
          "'{}' has documents of the one label '{}' ({} .txt files), and "
          "classification needs at least two{}",
          facts.name(), map.list(), facts.n_rows(),
          bare.empty() ? "" : fmt::format("; without .txt files: {}", fmt::join(bare, ", "))),
      "expected a sub-directory per label with a .txt file per document");
}

LabelMap build_map(const LabelFacts& facts,
                   const LabelTexts& labels,
                   bool are_integers,
                   ProblemType problem) {
  if (!facts.head().hot_columns.empty()) return LabelMap(facts.head().hot_columns);
  std::vector<std::string> names;
  for (const auto& [label, uses] : labels)
    names.push_back(are_integers ? *canonical_integer(label) : label);
  LabelMap map = LabelMap::sorted(std::move(names));
  if (problem == ProblemType::single_label && map.size() < 2) refuse_one_label(facts, map);
  if (map.size() == 0)
    throw Error(Fault::data, "data.labels", fmt::format("'{}' has no labels", facts.name()));
  return map;
}

void check_labels(const LabelTexts& labels, bool any_list) {
  const auto* bad = first_label(labels, [](const std::string& label) {
    return trim(label).empty() || first_control_character(label) != std::string::npos;
  });
  if (!bad) return;
  if (trim(bad->first).empty())
    refuse_row(bad->second.place,
               any_list ? "a label of the list is empty" : "the label is missing");
  check_name(bad->second.place, bad->first);
}

/** A header that nobody knows must not become an example and a class of its own. */
void check_header(const LabelFacts& facts, const LabelScheme* known) {
  const auto& header = facts.unknown_header();
  if (!header || (known && known->labels.find(header->label))) return;
  refuse_row(header->place,
             fmt::format("is '{}' a header or an example? its label '{}' stands in no other line",
                         header->row, header->label),
             "a header: dataset_header = yes, or name the columns with text_column and "
             "label_column; an example: dataset_header = no");
}

}  // namespace

void check_name(std::string_view place, const std::string& label) {
  if (first_control_character(label) != std::string::npos)
    refuse_row(place, fmt::format("the label '{}' has control characters in it", label),
               "is it the right label column?");
}

void LabelFacts::start_file(const RawRow& row, const TextFiles& files) {
  finish_file();
  file_ = files.file();
  n_file_rows_ = 0;
  const std::string& header = files.source().head().unknown_header;
  if (header.empty() || row.labels.size() != 1) return;
  first_ = UnknownHeader{.row = header, .label = row.labels.front(), .place = row.place};
}

void LabelFacts::finish_file() {
  constexpr int64_t kFewRows = 5;  // of so few nothing can be said
  const auto n_others = std::ssize(others_);
  if (first_ && !unknown_header_ && n_file_rows_ > kFewRows && !parse_number(first_->label) &&
      !others_.contains(first_->label) && 2 * n_others <= n_file_rows_ - 1)
    unknown_header_ = std::move(first_);
  first_.reset();
  others_.clear();
}

void LabelFacts::add(const RawRow& row, const TextFiles& files) {
  if (n_rows_ == 0) {
    head_ = files.source().head();
    columns_.resize(std::max<size_t>(head_.hot_columns.size(), 1));
  }
  const bool begins_file = n_rows_ == 0 || files.file() != file_;
  if (begins_file) start_file(row, files);
  if (first_ && !begins_file) others_.insert(row.labels.front());
  any_list_ |= row.has_list;
  for (size_t i = 0; i < row.labels.size(); ++i) {
    LabelTexts& column = columns_[columns_.size() > 1 ? i : 0];
    const auto [found, is_new] = column.try_emplace(row.labels[i]);
    if (is_new) found->second = {.n = 0, .first_row = n_rows_, .place = row.place};
    ++found->second.n;
  }
  ++n_rows_;
  ++n_file_rows_;
}

/** The labels that rows have once they are in the form of the problem: one, or a list. */
LabelTexts LabelReading::shape(const LabelFacts& facts, const DatasetOptions& options) {
  const bool is_multi = scheme_.problem == ProblemType::multi_label;
  hot_columns_ = facts.head().hot_columns;
  if (!is_multi && (facts.any_list() || hot_columns_.size() > 1))
    throw Error(Fault::data, "data.labels",
                fmt::format("'{}' has lists of labels, expected {}", facts.name(),
                            plain_name_of(scheme_.problem)));
  const LabelTexts& as_they_are = facts.columns().front();
  LabelTexts labels;
  if (!hot_columns_.empty()) {
    form_ = Form::hot_columns;
    labels = hot_labels(facts);
  } else if (is_multi && !facts.any_list()) {
    form_ = Form::in_one_text;
    separator_ = separator_of(as_they_are, options);
    for (const auto& [text, uses] : as_they_are)
      for (const std::string& label : split_list(text, separator_))
        add_uses(labels, label, uses);
  } else {
    labels = as_they_are;
  }
  check_labels(labels, facts.any_list());
  return labels;
}

LabelReading::LabelReading(const LabelFacts& facts,
                           const DatasetOptions& options,
                           const LabelScheme* known) {
  scheme_.problem = options.problem ? *options.problem
                    : known         ? known->problem
                                    : problem_from_labels(facts);
  if (known && scheme_.problem != known->problem)
    throw Error(Fault::usage, "data.labels",
                fmt::format("'{}' is to be read as {}, but the model is for {}", facts.name(),
                            plain_name_of(scheme_.problem), plain_name_of(known->problem)));
  if (scheme_.problem == ProblemType::single_label) check_header(facts, known);
  const LabelTexts labels =
      scheme_.problem == ProblemType::unlabelled ? LabelTexts() : shape(facts, options);
  if (known) {
    scheme_ = *known;
  } else if (scheme_.problem == ProblemType::single_label ||
             scheme_.problem == ProblemType::multi_label) {
    are_integers_ = std::ranges::all_of(
        labels, [](const auto& label) { return canonical_integer(label.first).has_value(); });
    scheme_.labels = build_map(facts, labels, are_integers_, scheme_.problem);
  }
}

std::string LabelReading::note() const {
  const int32_t n = scheme_.labels.size();
  const std::string labels = fmt::format("{} label{}", n, n == 1 ? "" : "s");
  switch (scheme_.problem) {
    case ProblemType::single_label:
      return fmt::format("{}: {}", labels, scheme_.labels.list());
    case ProblemType::multi_label:
      return fmt::format("{}, any number of them per text: {}", labels, scheme_.labels.list());
    case ProblemType::regression:
      return "labels are numbers to predict (regression)";
    case ProblemType::unlabelled:
    case ProblemType::tags:
    case ProblemType::answers:
      break;
  }
  return "no labels";
}

/** Its labels in the form of the problem. */
std::vector<std::string> LabelReading::labels_of(const RawRow& row) const {
  std::vector<std::string> labels;
  switch (form_) {
    case Form::as_they_are:
      labels = row.labels;
      break;
    case Form::in_one_text:
      labels = split_list(row.labels.front(), separator_);
      break;
    case Form::hot_columns:
      for (size_t i = 0; i < hot_columns_.size(); ++i)
        if (parse_number(row.labels[i]) == 1) labels.push_back(hot_columns_[i]);
  }
  if (are_integers_)
    for (std::string& label : labels)
      label = canonical_integer(label).value_or(label);
  return labels;
}

Label LabelReading::read(const RawRow& row) const {
  const auto id_of = [&](const std::string& label) {
    if (const auto id = scheme_.labels.find(label)) return *id;
    refuse_row(
        row.place,
        fmt::format("the label '{}' is unknown, expected one of: {}", label, scheme_.labels.list()),
        "the labels are those of the training set");
  };
  // The file may have changed since its labels were collected.
  if (row.labels.empty() && scheme_.problem != ProblemType::multi_label)
    refuse_row(row.place, "the label is missing");
  Label label;
  switch (scheme_.problem) {
    case ProblemType::unlabelled:
    case ProblemType::tags:     // words.cpp reads them
    case ProblemType::answers:  // questions.cpp reads them
      break;
    case ProblemType::single_label:
      label.class_id = id_of(labels_of(row).front());
      break;
    case ProblemType::multi_label:
      for (const std::string& name : labels_of(row))
        label.classes.push_back(id_of(name));
      std::sort(label.classes.begin(), label.classes.end());
      label.classes.erase(std::unique(label.classes.begin(), label.classes.end()),
                          label.classes.end());
      break;
    case ProblemType::regression: {
      const auto value = parse_number(row.labels.front());
      const float narrow = value ? static_cast<float>(*value) : 0.0f;
      if (!value || !std::isfinite(narrow))
        refuse_row(row.place, fmt::format("the label '{}' is not a number", row.labels.front()));
      label.value = narrow;
    }
  }
  return label;
}

}  // namespace ferry
