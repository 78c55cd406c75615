#pragma once
// From labels as texts to labels as ids or values. Private to src/data: a first pass over the rows
// collects what labels there are (LabelFacts), from which the problem type and the map of names
// follow (LabelReading); a second one turns each row's texts into its label.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/data/read/raw_rows.h"

namespace ferry {

/** A label as rows have it: how many do, and which is the first. */
struct LabelUses {
  int64_t n = 0;
  int64_t first_row = 0;
  std::string place;  // of that row
};
using LabelTexts = std::map<std::string, LabelUses>;

/** The labels that rows of a dataset have: no more than their different texts is kept. */
class LabelFacts {
 public:
  explicit LabelFacts(std::string name) : name_(std::move(name)) {}

  /** A row of the files, in their order. */
  void add(const RawRow& row, const TextFiles& files);
  /** After the last row. */
  void finish() { finish_file(); }

  const std::string& name() const { return name_; }  // of the dataset
  int64_t n_rows() const { return n_rows_; }
  bool any_list() const { return any_list_; }
  const RowsHead& head() const { return head_; }
  /** By the place of the label: one, or one for each hot column. */
  const std::vector<LabelTexts>& columns() const { return columns_; }

  /** A first row that may be names of columns: its label stands in no other row of its file, where
   * labels come back. */
  struct UnknownHeader {
    std::string row, label, place;
  };
  const std::optional<UnknownHeader>& unknown_header() const { return unknown_header_; }

  /** Labels of each list, where every list has a 0 or 1 for each label; 0: they are names. */
  size_t hot_length() const { return hot_length_; }
  /** The first list that has a 0 or 1 twice and is no such list; empty: there is none. */
  const std::string& twice() const { return twice_; }

 private:
  void look_at_list(const RawRow& row);
  void start_file(const RawRow& row, const TextFiles& files);
  void finish_file();

  std::string name_;
  RowsHead head_;
  int64_t n_rows_ = 0;
  bool any_list_ = false;
  size_t hot_length_ = 0;
  std::string twice_;
  std::vector<LabelTexts> columns_;
  std::optional<UnknownHeader> unknown_header_;
  // The file that is being read.
  size_t file_ = 0;
  int64_t n_file_rows_ = 0;
  std::optional<UnknownHeader> first_;  // null: its first row is no header
  std::set<std::string> others_;        // labels of the rows below it
};

/** The way from rows' texts to labels. */
class LabelReading {
 public:
  /** Throws Error(data) where labels do not fit the problem or the known scheme. `known` may be
   * null. */
  LabelReading(const LabelFacts& facts, const DatasetOptions& options, const LabelScheme* known);

  const LabelScheme& scheme() const { return scheme_; }
  /** "4 labels: a, b, c, d"; how many rows have each, and which rows are passed over. */
  std::vector<std::string> notes() const { return notes_; }
  /** The row's label says that it has none: -100, or -1 where labels count from 0. */
  bool is_without(const RawRow& row) const;
  /** Error(data) where the scheme does not know the label. */
  Label read(const RawRow& row) const;

 private:
  enum class Form : uint8_t { as_they_are, in_one_text, hot_columns, hot_list };

  void find_without(const LabelFacts& facts, const LabelScheme* known);
  LabelTexts shape(const LabelFacts& facts, const DatasetOptions& options);
  LabelTexts named(const LabelTexts& labels) const;
  std::string name_of(const std::string& label, std::string_view place) const;
  std::vector<std::string> labels_of(const RawRow& row) const;
  void note(const LabelTexts& labels);
  void count(const LabelTexts& labels);

  LabelScheme scheme_;
  Form form_ = Form::as_they_are;
  char separator_ = '\0';
  std::vector<std::string> hot_names_;  // of the columns, or of a list's places
  std::vector<std::string> names_;      // of the labels 0, 1, ...; empty: labels are names
  bool are_places_ = false;    // labels are places in names_, also where a name is a number
  LabelTexts without_;         // labels that say "no label"
  bool are_integers_ = false;  // "1.0" and "1" are one class
  std::vector<std::string> notes_;
};

}  // namespace ferry
