#include "src/data/read/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
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
    case ProblemType::preferences:
      return "answers that are compared";
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
  std::vector<std::string> names;
  for (const auto& [label, uses] : labels)
    names.push_back(are_integers ? *canonical_integer(label) : label);
  LabelMap map = LabelMap::sorted(std::move(names));
  if (problem == ProblemType::single_label && map.size() < 2) refuse_one_label(facts, map);
  if (map.size() == 0)
    throw Error(Fault::data, "data.labels", fmt::format("'{}' has no labels", facts.name()));
  return map;
}

/** transformers' names of labels that have none. */
std::vector<std::string> default_names(size_t n) {
  std::vector<std::string> names;
  for (size_t i = 0; i < n; ++i)
    names.push_back(fmt::format("LABEL_{}", i));
  return names;
}

/** Every label that may be one is a name already. */
bool are_all_names(const LabelTexts& labels, const std::vector<std::string>& names) {
  return std::ranges::all_of(labels, [&](const auto& label) {
    return std::ranges::count(names, label.first) > 0 || label.first == "-100" ||
           label.first == "-1";
  });
}

bool are_numbers(const std::vector<std::string>& names) {
  return std::ranges::any_of(
      names, [](const std::string& name) { return canonical_integer(name).has_value(); });
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

void LabelFacts::look_at_list(const RawRow& row) {
  const std::vector<std::string>& labels = row.labels;
  const bool is_hot = labels.size() > 1 && std::ranges::all_of(labels, is_zero_or_one);
  const bool is_first = !any_list_ && n_rows_ == 0;
  hot_length_ =
      row.has_list && is_hot && (is_first || hot_length_ == labels.size()) ? labels.size() : 0;
  const auto n_ones = std::ranges::count_if(
      labels, [](const std::string& label) { return parse_number(label) == 1; });
  const bool has_twice = n_ones > 1 || std::ssize(labels) - n_ones > 1;
  if (row.has_list && is_hot && has_twice && twice_.empty()) twice_ = row.place;
}

void LabelFacts::add(const RawRow& row, const TextFiles& files) {
  if (n_rows_ == 0) {
    head_ = files.source().head();
    columns_.resize(std::max<size_t>(head_.hot_columns.size(), 1));
  }
  const bool begins_file = n_rows_ == 0 || files.file() != file_;
  if (begins_file) start_file(row, files);
  if (first_ && !begins_file) others_.insert(row.labels.front());
  look_at_list(row);
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

/** Labels that mean that a row has none. -100 is torch's; the hub writes -1 in parts of data sets
 * whose labels are kept secret. */
void LabelReading::find_without(const LabelFacts& facts, const LabelScheme* known) {
  if (facts.any_list() || scheme_.problem != ProblemType::single_label) return;
  const LabelTexts& labels = facts.columns().front();
  const auto take = [&](const std::string& label) {
    if (known && known->labels.find(label)) return;
    if (const auto found = labels.find(label); found != labels.end()) without_.insert(*found);
  };
  take("-100");
  const auto minus_one = labels.find("-1");
  if (minus_one == labels.end()) return;
  if (known || !names_.empty()) {
    if (std::ranges::count(names_, "-1") == 0) take("-1");
    return;
  }
  std::set<int64_t> others;
  for (const auto& [label, uses] : labels) {
    const auto number = canonical_integer(label);
    if (!number) return;
    if (label != "-1" && label != "-100") others.insert(std::stoll(*number));
  }
  const bool count_from_0 = !others.empty() && *others.begin() == 0 &&
                            *others.rbegin() + 1 == static_cast<int64_t>(others.size());
  if (!count_from_0) return;
  // 0 and 1 may be two classes beside rows without one, or two of three: bad, neutral, good.
  if (others.size() == 2)
    refuse_row(minus_one->second.place,
               "the label is -1, others are 0 and 1: is -1 a class, or has the row no label?",
               "a class: label_names = -1,0,1; no label: remove such rows, or name the two classes "
               "with label_names = NAME,NAME");
  if (others.size() > 2) take("-1");
}

bool LabelReading::is_without(const RawRow& row) const {
  return !without_.empty() && row.labels.size() == 1 && !row.has_list &&
         without_.contains(row.labels.front());
}

/** The name that a label of the data stands for. */
std::string LabelReading::name_of(const std::string& label, std::string_view place) const {
  if (names_.empty()) return label;
  const auto number = canonical_integer(label);
  const bool is_name = std::ranges::count(names_, label) > 0;
  if (is_name && (!are_places_ || !number)) return label;
  const int64_t at = number ? std::stoll(*number) : -1;
  if (at < 0 || at >= std::ssize(names_))
    refuse_row(place,
               fmt::format("the label '{}' has no name, the {} names are {}", label, names_.size(),
                           LabelMap(names_).list()),
               "label_names names the labels 0, 1, ... in their order");
  return names_[static_cast<size_t>(at)];
}

LabelTexts LabelReading::named(const LabelTexts& labels) const {
  LabelTexts all;
  for (const auto& [label, uses] : labels)
    if (!without_.contains(label)) add_uses(all, name_of(label, uses.place), uses);
  return all;
}

/** The labels that rows have once they are in the form of the problem: one, or a list. */
LabelTexts LabelReading::shape(const LabelFacts& facts, const DatasetOptions& options) {
  const bool is_multi = scheme_.problem == ProblemType::multi_label;
  hot_names_ = facts.head().hot_columns;
  if (!is_multi && (facts.any_list() || hot_names_.size() > 1))
    throw Error(Fault::data, "data.labels",
                fmt::format("'{}' has lists of labels, expected {}", facts.name(),
                            plain_name_of(scheme_.problem)));
  const LabelTexts& as_they_are = facts.columns().front();
  const bool knows_numbers = are_numbers(scheme_.labels.names());
  if (!hot_names_.empty()) {
    form_ = Form::hot_columns;
    return hot_labels(facts);
  }
  if (is_multi && facts.hot_length() > 0 && !knows_numbers) {
    form_ = Form::hot_list;
    hot_names_ = scheme_.labels.size() > 0 ? scheme_.labels.names()
                 : !names_.empty()         ? names_
                                           : default_names(facts.hot_length());
    if (hot_names_.size() != facts.hot_length())
      throw Error(Fault::data, "data.labels",
                  fmt::format("the lists of '{}' have a 0 or 1 for {} labels, expected {}: {}",
                              facts.name(), facts.hot_length(), hot_names_.size(),
                              LabelMap(hot_names_).list()));
    return {};
  }
  if (!facts.twice().empty() && !knows_numbers)
    refuse_row(facts.twice(), "the list has the label 0 or 1 twice",
               "a list names the labels of a text, each once; or all lists have a 0 or 1 for every "
               "label, and are of one length");
  LabelTexts labels;
  if (is_multi && !facts.any_list()) {
    form_ = Form::in_one_text;
    separator_ = separator_of(as_they_are, options);
    LabelTexts single;
    for (const auto& [text, uses] : as_they_are)
      for (const std::string& label : split_list(text, separator_))
        add_uses(single, label, uses);
    labels = named(single);
  } else if (scheme_.problem == ProblemType::regression) {
    labels = as_they_are;
  } else {
    labels = named(as_they_are);
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
  names_ = options.label_names.empty() ? facts.head().label_names : options.label_names;
  are_places_ = options.label_names.empty() || !are_all_names(facts.columns().front(), names_);
  if (scheme_.problem == ProblemType::single_label) check_header(facts, known);
  if (known) scheme_ = *known;
  find_without(facts, known);
  const LabelTexts labels =
      scheme_.problem == ProblemType::unlabelled ? LabelTexts() : shape(facts, options);
  const bool has_map =
      scheme_.problem == ProblemType::single_label || scheme_.problem == ProblemType::multi_label;
  if (!known && has_map) {
    const bool is_hot = form_ == Form::hot_columns || form_ == Form::hot_list;
    const std::vector<std::string>& given = is_hot ? hot_names_ : names_;
    are_integers_ = given.empty() && std::ranges::all_of(labels, [](const auto& label) {
                      return canonical_integer(label.first).has_value();
                    });
    if (labels.empty() && !is_hot && !without_.empty())
      throw Error(Fault::data, "data.labels",
                  fmt::format("'{}' has no labels: all {} rows are labelled {}", facts.name(),
                              facts.n_rows(), without_.begin()->first),
                  "is it the part of the data set whose labels are kept secret?");
    scheme_.labels =
        given.empty() ? build_map(facts, labels, are_integers_, scheme_.problem) : LabelMap(given);
  }
  note(labels);
}

void LabelReading::note(const LabelTexts& labels) {
  const int32_t n = scheme_.labels.size();
  const std::string n_labels = fmt::format("{} label{}", n, n == 1 ? "" : "s");
  const std::string list = scheme_.labels.list();
  switch (scheme_.problem) {
    case ProblemType::single_label:
      notes_.push_back(fmt::format("{}: {}", n_labels, list));
      break;
    case ProblemType::multi_label:
      notes_.push_back(fmt::format("{}, any number of them per text: {}", n_labels, list));
      if (form_ == Form::hot_list)
        notes_.push_back("each list of labels has a 0 or 1 for every label");
      break;
    case ProblemType::regression:
      notes_.emplace_back("labels are numbers to predict (regression)");
      break;
    default:
      notes_.emplace_back("no labels");
  }
  for (const auto& [label, uses] : without_)
    notes_.push_back(
        fmt::format("{} row{} labelled {} {} no label and {} passed over, the first "
                    "is {}",
                    uses.n, uses.n == 1 ? "" : "s", label, uses.n == 1 ? "has" : "have",
                    uses.n == 1 ? "is" : "are", uses.place));
  if (scheme_.problem == ProblemType::single_label) count(labels);
}

/** How many rows have each label, and whether that is very uneven. */
void LabelReading::count(const LabelTexts& labels) {
  constexpr size_t kShown = 20;
  std::vector<int64_t> counts(static_cast<size_t>(scheme_.labels.size()));
  for (const auto& [label, uses] : labels)
    if (const auto id = scheme_.labels.find(label)) counts[static_cast<size_t>(*id)] += uses.n;
  std::string shown;
  for (size_t i = 0; i < std::min(counts.size(), kShown); ++i)
    shown += fmt::format("{}{} {}", i > 0 ? ", " : "", scheme_.labels.name(static_cast<int32_t>(i)),
                         counts[i]);
  if (counts.size() > kShown) shown += ", ...";
  notes_.push_back("rows by label: " + shown);
  if (counts.empty()) return;
  const auto rarest = std::ranges::min_element(counts);
  const int64_t n = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  constexpr int64_t kUneven = 5;  // times fewer rows than of even labels
  scheme_.is_unbalanced = *rarest * kUneven * std::ssize(counts) < n;
  if (!scheme_.is_unbalanced) return;
  notes_.push_back(fmt::format(
      "warning: the labels are unbalanced, '{}' has {} of {} rows: go by f1_macro, accuracy says "
      "little; trained with class_weights = auto each label counts the same",
      scheme_.labels.name(static_cast<int32_t>(rarest - counts.begin())), *rarest, n));
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
    case Form::hot_list:
      if (row.labels.size() != hot_names_.size())  // the file may have changed
        refuse_row(row.place,
                   fmt::format("{} values for {} labels", row.labels.size(), hot_names_.size()));
      for (size_t i = 0; i < hot_names_.size(); ++i)
        if (parse_number(row.labels[i]) == 1) labels.push_back(hot_names_[i]);
      return labels;
  }
  for (std::string& label : labels) {
    label = name_of(label, row.place);
    if (are_integers_) label = canonical_integer(label).value_or(label);
  }
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
    case ProblemType::preferences:
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
