#pragma once
// Cuts long documents to parts whose tokens together are those of the whole, so that all threads
// work on one document, and none has to hold it. Between the reader of a dataset and the task.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/data/read/reader.h"
#include "src/text/text_cut.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** The examples of another stream. Its documents of more than about two parts come in parts of
 * about part_bytes, however they came in; examples of two texts as they are. A document that has no
 * place to be cut at (src/text/text_cut.h) stays whole. */
class DocumentParts : public ExampleStream {
 public:
  static constexpr size_t kPart_bytes = 1 << 20;

  /** `tokenizer` outlives it. */
  DocumentParts(std::unique_ptr<ExampleStream> from,
                const Tokenizer& tokenizer,
                size_t part_bytes = kPart_bytes)
      : from_(std::move(from)), tokenizer_(tokenizer), part_bytes_(part_bytes) {}

  bool next(Example& example) override;
  int64_t n_bytes_read() const override { return from_->n_bytes_read(); }
  std::vector<std::string> notes() const override { return from_->notes(); }

 private:
  bool begin(Example& example);
  void read_on();
  std::optional<TextCut> find_cut();
  void give(Example& example, size_t n_bytes, bool ends);

  std::unique_ptr<ExampleStream> from_;
  const Tokenizer& tokenizer_;
  size_t part_bytes_;
  // The document that is being cut; what of it was not given yet is text_ from at_ on.
  bool is_open_ = false, is_first_ = false, is_read_ = false;
  std::string text_;
  size_t at_ = 0;
  bool continues_ = false;  // what was not given yet, as Example::continues
  size_t next_try_ = 0;     // the place in what was not given yet near which a cut is looked for
};

/** One side of a document's two, cut at a byte of it. */
class DocumentSide : public ExampleStream {
 public:
  /** The bytes before `cut` of the first document of `from`, or those from it on. */
  DocumentSide(std::unique_ptr<ExampleStream> from, size_t cut, bool is_behind)
      : from_(std::move(from)), cut_(cut), is_behind_(is_behind) {}

  bool next(Example& example) override;
  int64_t n_bytes_read() const override { return from_->n_bytes_read(); }
  std::vector<std::string> notes() const override { return from_->notes(); }

 private:
  std::unique_ptr<ExampleStream> from_;
  size_t cut_;
  bool is_behind_;
  size_t at_ = 0;  // bytes of the document that were read
  bool is_begun_ = false;
};

/** The place from which the last part of the only document is held out: behind the line end that is
 * nearest to where `fraction` of it begins. Nothing where there are several examples, or pairs, or
 * no line end has text on both sides. */
std::optional<size_t> find_document_cut(const DatasetReader& reader, double fraction);

}  // namespace ferry
