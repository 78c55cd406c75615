#pragma once
// Metaspace writes blanks as another character, as SentencePiece does, may put one before a text,
// and cuts before each of them.

#include <memory>
#include <string>

#include "src/text/pre_tokenizers/split.h"
#include "src/text/registry.h"

namespace ferry::text {

struct MetaspaceOptions {
  enum class Prepend { always, first, never };
  std::string replacement;
  Prepend prepend = Prepend::always;  // first: only where the original begins
  bool split = true;
};

/** Reads the fields that pre-tokenizer and decoder share, also those of old files. */
MetaspaceOptions read_metaspace_options(const JsonReader& section);

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceOptions options);

  static std::unique_ptr<PreTokenizer> read(const JsonReader& section, const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;
  bool needs_origins() const override {
    return options_.prepend == MetaspaceOptions::Prepend::first;
  }

 private:
  MetaspaceOptions options_;
  Split words_;
};

}  // namespace ferry::text
