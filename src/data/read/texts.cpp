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

/** Notes quote the names of files and columns. */
std::vector<std::string> escaped_notes(const TextFiles& rows, const LabelReading* labels) {
  std::vector<std::string> notes = rows.notes();
  if (labels) notes.push_back(labels->note());
  for (std::string& note : notes)
    note = escaped(note);
  return notes;
}

class TextStream : public ExampleStream {
 public:
  TextStream(std::unique_ptr<TextFiles> rows, const LabelReading* labels)
      : rows_(std::move(rows)), labels_(labels) {}

  bool next(Example& example) override {
    if (!rows_->next(row_)) return false;
    if (row_.part == TextPart::whole && trim(row_.text).empty())
      refuse_row(row_.place, "the text is empty");
    if (row_.text_pair && trim(*row_.text_pair).empty())
      refuse_row(row_.place, "the second text is empty");
    example.part = row_.part;
    example.continues = false;
    example.label = labels_ ? labels_->read(row_) : Label();
    example.text = std::move(row_.text);
    example.text_pair = std::move(row_.text_pair);
    return true;
  }
  int64_t n_bytes_read() const override { return rows_->n_bytes_read(); }
  std::vector<std::string> notes() const override { return escaped_notes(*rows_, labels_); }

 private:
  std::unique_ptr<TextFiles> rows_;
  const LabelReading* labels_;
  RawRow row_;
};

class TextReader : public DatasetReader {
 public:
  TextReader(const DatasetFiles& files, const LabelScheme* known) : DatasetReader(files) {
    const auto rows = open();
    RawRow row;
    rows->next(row);  // a file without rows is refused
    const std::string name = files.options.path.string();
    const bool has_pairs = row.text_pair.has_value();
    if (known) check_pairs(name, has_pairs, *known);
    if (rows->source().head().has_labels) {
      LabelFacts facts(name);
      do {
        facts.add(row, *rows);
      } while (rows->next(row));
      facts.finish();
      labels_.emplace(facts, files.options, known);
      scheme_ = labels_->scheme();
    }
    scheme_.has_pairs = has_pairs;
    notes_ = escaped_notes(*rows, labels());
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<TextStream>(open(), labels());
  }

 private:
  std::unique_ptr<TextFiles> open() const { return std::make_unique<TextFiles>(files_, open_rows); }
  const LabelReading* labels() const { return labels_ ? &*labels_ : nullptr; }

  std::optional<LabelReading> labels_;  // null: none are read
};

}  // namespace

std::unique_ptr<DatasetReader> open_texts(const DatasetFiles& files, const LabelScheme* known) {
  return std::make_unique<TextReader>(files, known);
}

}  // namespace ferry
