// From rows with labels as texts to examples with ids or values: problem type, label map, and a
// refusal with file and line of what does not fit.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/raw_rows.h"

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

/** The separator of lists of labels in one column: asked for, or the first of | ; , that any row
 * has. */
char separator_of(const RawRows& raw, const DatasetOptions& options) {
  if (options.label_separator) return options.label_separator;
  for (char candidate : {'|', ';', ','})
    for (const RawRow& row : raw.rows)
      if (row.labels.front().find(candidate) != std::string::npos) return candidate;
  return ',';
}

/** Turns one text "a|b" a row into a list. */
void split_lists(RawRows& raw, const DatasetOptions& options) {
  const char separator = separator_of(raw, options);
  for (RawRow& row : raw.rows) {
    std::vector<std::string> items;
    for (std::string_view rest = row.labels.front(); !rest.empty();) {
      const size_t end = rest.find(separator);
      if (auto item = trim(rest.substr(0, end)); !item.empty()) items.emplace_back(item);
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    row.labels = std::move(items);
  }
}

/** Turns the 0 and 1 of several columns into the names of those that are 1. */
void collect_hot_columns(RawRows& raw) {
  for (RawRow& row : raw.rows) {
    std::vector<std::string> items;
    for (size_t i = 0; i < raw.hot_columns.size(); ++i) {
      auto value = parse_number(row.labels[i]);
      if (!value || (*value != 0 && *value != 1))
        refuse_row(raw.place(row), fmt::format("label column '{}' is '{}', expected 0 or 1",
                                               raw.hot_columns[i], row.labels[i]));
      if (*value == 1) items.push_back(raw.hot_columns[i]);
    }
    row.labels = std::move(items);
  }
}

/** One bad cell in a column of scores must not turn them into as many classes. */
[[noreturn]] void refuse_stray_label(const RawRows& raw, const RawRow& stray, size_t n_numbers) {
  if (trim(stray.labels.front()).empty()) refuse_row(raw.place(stray), "the label is missing");
  refuse_row(raw.place(stray),
             fmt::format("the label '{}' is not a number, but {} of {} are, some with a fraction",
                         stray.labels.front(), n_numbers, raw.rows.size()),
             "mend it, or give problem_type to say which it is: regression or "
             "single_label_classification");
}

ProblemType problem_from_labels(const RawRows& raw) {
  if (raw.any_list || !raw.hot_columns.empty()) return ProblemType::multi_label;
  bool any_fraction = false;
  size_t n_numbers = 0;
  const RawRow* stray = nullptr;
  for (const RawRow& row : raw.rows) {
    if (auto value = parse_number(row.labels.front())) {
      any_fraction |= std::trunc(*value) != *value;
      ++n_numbers;
    } else if (!stray) {
      stray = &row;
    }
  }
  if (any_fraction && stray && n_numbers > raw.rows.size() / 2)
    refuse_stray_label(raw, *stray, n_numbers);
  return any_fraction && !stray ? ProblemType::regression : ProblemType::single_label;
}

/** Labels that are all whole numbers get one spelling each: "1.0" and "1" are one class. */
void unify_integers(RawRows& raw) {
  for (const RawRow& row : raw.rows)
    for (const std::string& label : row.labels)
      if (!canonical_integer(label)) return;
  for (RawRow& row : raw.rows)
    for (std::string& label : row.labels)
      label = *canonical_integer(label);
}

[[noreturn]] void refuse_one_label(const RawRows& raw, const LabelMap& map) {
  if (!raw.is_folder)
    throw Error(
        Fault::data, "data.labels",
        fmt::format("'{}' has the one label '{}', expected at least two", raw.name, map.list()),
        "is it the right label column?");
  throw Error(
      Fault::data, "data.labels",
      fmt::format("'{}' has documents of the one label '{}' ({} .txt files), and "
                  "classification needs at least two{}",
                  raw.name, map.list(), raw.rows.size(),
                  raw.bare_folders.empty()
                      ? ""
                      : fmt::format("; without .txt files: {}", fmt::join(raw.bare_folders, ", "))),
      "expected a sub-directory per label with a .txt file per document");
}

LabelMap build_map(const RawRows& raw, ProblemType problem) {
  if (!raw.hot_columns.empty()) return LabelMap(raw.hot_columns);
  std::vector<std::string> names;
  for (const RawRow& row : raw.rows)
    names.insert(names.end(), row.labels.begin(), row.labels.end());
  LabelMap map = LabelMap::sorted(std::move(names));
  if (problem == ProblemType::single_label && map.size() < 2) refuse_one_label(raw, map);
  if (map.size() == 0)
    throw Error(Fault::data, "data.labels", fmt::format("'{}' has no labels", raw.name));
  return map;
}

int32_t id_of(const RawRows& raw,
              const RawRow& row,
              const std::string& label,
              const LabelMap& map) {
  if (auto id = map.find(label)) return *id;
  refuse_row(raw.place(row),
             fmt::format("the label '{}' is unknown, expected one of: {}", label, map.list()),
             "the labels are those of the training set");
}

Label make_label(const RawRows& raw, const RawRow& row, const LabelScheme& scheme) {
  Label label;
  switch (scheme.problem) {
    case ProblemType::unlabelled:
    case ProblemType::tags:     // words.cpp reads them
    case ProblemType::answers:  // questions.cpp reads them
      break;
    case ProblemType::single_label:
      label.class_id = id_of(raw, row, row.labels.front(), scheme.labels);
      break;
    case ProblemType::multi_label:
      for (const std::string& name : row.labels)
        label.classes.push_back(id_of(raw, row, name, scheme.labels));
      std::sort(label.classes.begin(), label.classes.end());
      label.classes.erase(std::unique(label.classes.begin(), label.classes.end()),
                          label.classes.end());
      break;
    case ProblemType::regression: {
      auto value = parse_number(row.labels.front());
      const float narrow = value ? static_cast<float>(*value) : 0.0f;
      if (!value || !std::isfinite(narrow))
        refuse_row(raw.place(row),
                   fmt::format("the label '{}' is not a number", row.labels.front()));
      label.value = narrow;
    }
  }
  return label;
}

void check_label(const RawRows& raw, const RawRow& row, const std::string& label) {
  if (trim(label).empty())
    refuse_row(raw.place(row),
               raw.any_list ? "a label of the list is empty" : "the label is missing");
  check_name(raw.place(row), label);
}

/** Evaluating pairs of texts on single ones (or the reverse) would measure another task. */
void check_pairs(const RawRows& raw, const LabelScheme& known) {
  const bool has_pairs = raw.rows.front().text_pair.has_value();
  if (!known.has_pairs || *known.has_pairs == has_pairs) return;
  constexpr std::string_view kOne = "one text an example", kTwo = "two texts an example";
  throw Error(Fault::data, "data.columns",
              fmt::format("'{}' is read as {}, but the training data as {}", raw.name,
                          has_pairs ? kTwo : kOne, has_pairs ? kOne : kTwo),
              "both need the same columns; name them with text_column and text_pair_column");
}

/** Brings the rows' labels into the form of the problem: one text, or a list. */
void shape_labels(RawRows& raw, const DatasetOptions& options, ProblemType problem) {
  const bool is_multi = problem == ProblemType::multi_label;
  if (!is_multi && (raw.any_list || raw.hot_columns.size() > 1))
    throw Error(
        Fault::data, "data.labels",
        fmt::format("'{}' has lists of labels, expected {}", raw.name, plain_name_of(problem)));
  if (!raw.hot_columns.empty())
    collect_hot_columns(raw);
  else if (is_multi && !raw.any_list)
    split_lists(raw, options);
  for (const RawRow& row : raw.rows)
    for (const std::string& label : row.labels)
      check_label(raw, row, label);
}

/** "4 labels: a, b, c, d". */
std::string note_of(const LabelScheme& scheme) {
  const int32_t n = scheme.labels.size();
  const std::string labels = fmt::format("{} label{}", n, n == 1 ? "" : "s");
  switch (scheme.problem) {
    case ProblemType::single_label:
      return fmt::format("{}: {}", labels, scheme.labels.list());
    case ProblemType::multi_label:
      return fmt::format("{}, any number of them per text: {}", labels, scheme.labels.list());
    case ProblemType::regression:
      return "labels are numbers to predict (regression)";
    case ProblemType::unlabelled:
    case ProblemType::tags:
    case ProblemType::answers:
      break;
  }
  return "no labels";
}

/** A header that nobody knows must not become an example and a class of its own. */
void check_header(const RawRows& raw, const LabelScheme* known) {
  if (raw.unknown_header.empty()) return;
  const RawRow& row = raw.rows[raw.unknown_header_row];
  const std::string& label = row.labels.front();
  if (known && known->labels.find(label)) return;
  refuse_row(raw.place(row),
             fmt::format("is '{}' a header or an example? its label '{}' stands in no other line",
                         raw.unknown_header, label),
             "a header: dataset_header = yes, or name the columns with text_column and "
             "label_column; an example: dataset_header = no");
}

}  // namespace

void check_name(std::string_view place, const std::string& label) {
  if (first_control_character(label) != std::string::npos)
    refuse_row(place, fmt::format("the label '{}' has control characters in it", label),
               "is it the right label column?");
}

Dataset label_examples(RawRows raw, const DatasetOptions& options, const LabelScheme* known) {
  Dataset dataset;
  if (known) check_pairs(raw, *known);
  if (raw.has_labels) {
    const ProblemType problem = options.problem ? *options.problem
                                : known         ? known->problem
                                                : problem_from_labels(raw);
    if (known && problem != known->problem)
      throw Error(Fault::usage, "data.labels",
                  fmt::format("'{}' is to be read as {}, but the model is for {}", raw.name,
                              plain_name_of(problem), plain_name_of(known->problem)));
    if (problem == ProblemType::single_label) check_header(raw, known);
    if (problem != ProblemType::unlabelled) shape_labels(raw, options, problem);
    if (known) {
      dataset.scheme = *known;
    } else {
      dataset.scheme.problem = problem;
      if (problem == ProblemType::single_label || problem == ProblemType::multi_label) {
        unify_integers(raw);
        dataset.scheme.labels = build_map(raw, problem);
      }
    }
    dataset.notes.push_back(note_of(dataset.scheme));
  }
  dataset.scheme.has_pairs = raw.rows.front().text_pair.has_value();
  dataset.notes.insert(dataset.notes.begin(), raw.notes.begin(), raw.notes.end());
  for (std::string& note : dataset.notes)
    note = escaped(note);  // they quote the names of files and columns

  dataset.examples.reserve(raw.rows.size());
  for (RawRow& row : raw.rows) {
    if (trim(row.text).empty()) refuse_row(raw.place(row), "the text is empty");
    if (row.text_pair && trim(*row.text_pair).empty())
      refuse_row(raw.place(row), "the second text is empty");
    dataset.examples.push_back({.text = std::move(row.text),
                                .text_pair = std::move(row.text_pair),
                                .label = make_label(raw, row, dataset.scheme)});
  }
  return dataset;
}

}  // namespace ferry
