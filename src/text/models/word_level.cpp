#include "src/text/models/word_level.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "src/base/error.h"

namespace ferry::text {

ReadModel WordLevel::read(const JsonReader& section, const StageContext&, bool gives_bytes) {
  if (gives_bytes) section.fail("is of type WordLevel, which has no letters for bytes", kSaveAgain);
  ReadModel read;
  read.unknown = section.text("unk_token");
  read.vocabulary = read_vocabulary(section.at("vocab"));
  const int32_t unknown_id = TokenMap(read.vocabulary).find(read.unknown);
  read.model = std::make_unique<WordLevel>(read.vocabulary, unknown_id);
  return read;
}

void WordLevel::encode(const Pieces& pieces, size_t enough, TokenSink out) const {
  const std::string_view text = pieces.text.text();
  for (const Span piece : pieces.spans) {
    if (out.ids.size() >= enough) return;
    const std::string_view word = text.substr(piece.begin, piece.size());
    const int32_t found = tokens_.find(word), id = found >= 0 ? found : unknown_id_;
    if (id < 0)
      throw Error(Fault::data, "tokenizer.encode",
                  fmt::format("'{}' is not in the tokenizer's vocabulary, which has no token for "
                              "unknown words",
                              word),
                  "leave the text out, or add the word or an unknown token to the vocabulary");
    out.push(id, piece.begin, piece.end);
  }
}

}  // namespace ferry::text
