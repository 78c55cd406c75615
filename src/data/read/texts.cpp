// Examples of one or two texts with a label, or without.

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/labels.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

/** Evaluating pairs of texts on single ones (or the reverse) would measure another task. */
void check_pairs(const std::string& name, bool has_pairs, const LabelScheme& known) {
  if (!known.has_pairs || *known.has_pairs == has_pairs) return;
  constexpr std::string_view kOne = "one text an example", kTwo = "two texts an example";
  throw Error(Fault::data, "data.columns",
              fmt::format("'{}' is read as {}, but the training data as {}", name,
                          has_pairs ? kTwo : kOne, has_pairs ? kOne : kTwo),
              "both need the same columns; name them with text_column and text_pair_column");
}

/** Rows that were passed over. */
struct PassedOver {
  int64_t n = 0;
  std::string first;  // its place

  void add(const std::string& place) {
    if (n++ == 0) first = place;
  }
  void note(std::string_view what, std::vector<std::string>& notes) const {
    if (n > 0)
      notes.push_back(fmt::format("{} row{} without {} {} passed over, the first is {}", n,
                                  n == 1 ? "" : "s", what, n == 1 ? "is" : "are", first));
  }
};

/** The rows that have something to learn or to answer. */
class FullRows {
 public:
  /** `known` may be null. */
  FullRows(const DatasetFiles& files, const LabelScheme* known)
      : files_(files, open_rows),
        keeps_empty_(files.options.keeps_empty),
        may_have_no_class_((known ? known->problem : files.options.problem) ==
                           ProblemType::multi_label) {}

  /** False at the end. */
  bool next(RawRow& row) {
    while (files_.next(row)) {
      const bool is_whole = row.part == TextPart::whole;
      if (!keeps_empty_ &&
          ((is_whole && trim(row.text).empty()) || (row.text_pair && trim(*row.text_pair).empty())))
        empty_.add(row.place);
      else if (row.is_unlabelled && !(may_have_no_class_ && !row.labels.empty()))
        unlabelled_.add(row.place);
      else
        return true;
    }
    return false;
  }

  const TextFiles& files() const { return files_; }
  /** Notes quote the names of files and columns. Rows that were passed over are counted at the end
   * only. */
  std::vector<std::string> notes(const LabelReading* labels, bool is_at_end) const {
    std::vector<std::string> notes = files_.notes();
    if (is_at_end) {
      empty_.note("a text", notes);
      unlabelled_.note("a label", notes);
    }
    if (labels)
      for (std::string& note : labels->notes())
        notes.push_back(std::move(note));
    for (std::string& note : notes)
      note = escaped(note);
    return notes;
  }

  [[noreturn]] void refuse_all(const std::string& name) const {
    throw Error(
        Fault::data, "data.read",
        fmt::format("'{}' has no examples: {} rows have no text, {} no label", name, empty_.n,
                    unlabelled_.n),
        "is it the right column? the part of a data set that is kept for tests may lack labels");
  }

 private:
  TextFiles files_;
  bool keeps_empty_;
  bool may_have_no_class_;  // an empty label is one of no class
  PassedOver empty_, unlabelled_;
};

class TextStream : public ExampleStream {
 public:
  TextStream(const DatasetFiles& files, const LabelReading* labels)
      : rows_(files, labels ? &labels->scheme() : nullptr), labels_(labels) {}

  bool next(Example& example) override {
    do {
      if (!rows_.next(row_)) {
        is_at_end_ = true;
        return false;
      }
    } while (labels_ && labels_->is_without(row_));
    example.part = row_.part;
    example.continues = false;
    example.place = row_.place;
    example.label = labels_ ? labels_->read(row_) : Label();
    example.text = std::move(row_.text);
    example.text_pair = std::move(row_.text_pair);
    example.is_chat = row_.is_chat;
    return true;
  }
  int64_t n_bytes_read() const override { return rows_.files().n_bytes_read(); }
  std::vector<std::string> notes() const override { return rows_.notes(labels_, is_at_end_); }

 private:
  FullRows rows_;
  const LabelReading* labels_;
  bool is_at_end_ = false;
  RawRow row_;
};

class TextReader : public DatasetReader {
 public:
  TextReader(const DatasetFiles& files, const LabelScheme* known) : DatasetReader(files) {
    FullRows rows(files, known);
    RawRow row;
    const std::string name = files.options.path.string();
    if (!rows.next(row)) rows.refuse_all(name);
    const bool has_pairs = row.text_pair.has_value();
    if (known) check_pairs(name, has_pairs, *known);
    if (rows.files().source().head().has_labels) {
      LabelFacts facts(name);
      do {
        facts.add(row, rows.files());
      } while (rows.next(row));
      facts.finish();
      labels_.emplace(facts, files.options, known);
      scheme_ = labels_->scheme();
    }
    scheme_.has_pairs = has_pairs;
    notes_ = rows.notes(labels(), /*is_at_end=*/labels_.has_value());
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<TextStream>(files_, labels());
  }

 private:
  const LabelReading* labels() const { return labels_ ? &*labels_ : nullptr; }

  std::optional<LabelReading> labels_;  // null: none are read
};

}  // namespace

std::unique_ptr<DatasetReader> open_texts(const DatasetFiles& files, const LabelScheme* known) {
  return std::make_unique<TextReader>(files, known);
}

}  // namespace ferry
