// From rows with labels as texts to examples with ids or values: problem type, label map, and a
// refusal with file and line of what does not fit.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/data/raw_rows.h"

namespace ferry {
namespace {

std::string_view plain_name_of(ProblemType type) {
  switch (type) {
    case ProblemType::unlabelled:
      return "no labels";
    case ProblemType::single_label:
      return "one label of several";
    case ProblemType::multi_label:
      return "several labels at once";
    case ProblemType::regression:
      return "regression";
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

ProblemType problem_from_labels(const RawRows& raw) {
  if (raw.any_list || !raw.hot_columns.empty()) return ProblemType::multi_label;
  bool any_fraction = false;
  for (const RawRow& row : raw.rows) {
    auto value = parse_number(row.labels.front());
    if (!value) return ProblemType::single_label;
    any_fraction |= std::trunc(*value) != *value;
  }
  return any_fraction ? ProblemType::regression : ProblemType::single_label;
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

LabelMap build_map(const RawRows& raw, ProblemType problem) {
  if (!raw.hot_columns.empty()) return LabelMap(raw.hot_columns);
  std::vector<std::string> names;
  for (const RawRow& row : raw.rows)
    names.insert(names.end(), row.labels.begin(), row.labels.end());
  LabelMap map = LabelMap::sorted(std::move(names));
  if (problem == ProblemType::single_label && map.size() < 2)
    throw Error(Fault::data, "data.labels",
                fmt::format("'{}' has the one label '{}', expected at least two", raw.files.front(),
                            map.list()),
                "is it the right label column?");
  if (map.size() == 0)
    throw Error(Fault::data, "data.labels", fmt::format("'{}' has no labels", raw.files.front()));
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

/** Brings the rows' labels into the form of the problem: one text, or a list. */
void shape_labels(RawRows& raw, const DatasetOptions& options, ProblemType problem) {
  const bool is_multi = problem == ProblemType::multi_label;
  if (!is_multi && (raw.any_list || raw.hot_columns.size() > 1))
    throw Error(Fault::data, "data.labels",
                fmt::format("'{}' has lists of labels, expected {}", raw.files.front(),
                            plain_name_of(problem)));
  if (!raw.hot_columns.empty()) return collect_hot_columns(raw);
  if (is_multi) {
    if (!raw.any_list) split_lists(raw, options);
    return;
  }
  for (const RawRow& row : raw.rows)
    if (row.labels.front().empty()) refuse_row(raw.place(row), "the label is missing");
}

}  // namespace

Dataset label_examples(RawRows raw, const DatasetOptions& options, const LabelScheme* known) {
  Dataset dataset;
  if (raw.has_labels) {
    ProblemType problem =
        options.problem.value_or(known ? known->problem : problem_from_labels(raw));
    if (known && problem != known->problem)
      throw Error(
          Fault::usage, "data.labels",
          fmt::format("'{}' is to be read as {}, but the model is for {}", raw.files.front(),
                      plain_name_of(problem), plain_name_of(known->problem)));
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
    dataset.notes.push_back(
        problem == ProblemType::single_label || problem == ProblemType::multi_label
            ? fmt::format("{}: {}", plain_name_of(problem), dataset.scheme.labels.list())
            : std::string(plain_name_of(problem)));
  }
  dataset.notes.insert(dataset.notes.begin(), raw.notes.begin(), raw.notes.end());

  dataset.examples.reserve(raw.rows.size());
  for (RawRow& row : raw.rows) {
    if (trim(row.text).empty()) refuse_row(raw.place(row), "the text is empty");
    if (row.text_pair && trim(*row.text_pair).empty())
      refuse_row(raw.place(row), "the second text is empty");
    dataset.examples.push_back(
        {std::move(row.text), std::move(row.text_pair), make_label(raw, row, dataset.scheme)});
  }
  return dataset;
}

}  // namespace ferry
