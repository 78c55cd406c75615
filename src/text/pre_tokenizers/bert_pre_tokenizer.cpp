#include "src/text/pre_tokenizers/bert_pre_tokenizer.h"

#include <utility>

namespace ferry::text {
namespace {

constexpr uint8_t kCuts = CharTable::kSpace | CharTable::kPunctuation;

}  // namespace

BertPreTokenizer::BertPreTokenizer(std::shared_ptr<const CharTable> table)
    : table_(std::move(table)) {
  for (size_t i = 0; i < ascii_.size(); ++i)
    ascii_[i] = table_->flags(static_cast<char32_t>(i)) & kCuts;
}

std::unique_ptr<PreTokenizer> BertPreTokenizer::read(const JsonReader&,
                                                     const StageContext& context) {
  return std::make_unique<BertPreTokenizer>(context.table);
}

void BertPreTokenizer::split(Pieces& pieces, size_t enough) const {
  const std::string_view text = pieces.text.text();
  std::vector<Span>& spans = pieces.spans;
  pieces.refine([&](Span piece) {
    const size_t end = piece.end;
    size_t word = piece.begin;  // where the word begins that is being read
    for (size_t i = word; i < end;) {
      size_t at = i;
      uint8_t flags = 0;
      while (at < end && static_cast<unsigned char>(text[at]) < 0x80 &&
             (flags = ascii_[static_cast<unsigned char>(text[at])]) == 0)
        ++at;
      i = at;
      if (at == end) break;
      if (static_cast<unsigned char>(text[at]) < 0x80)
        ++i;
      else if ((flags = table_->flags(next_code_point(text, i)) & kCuts) == 0)
        continue;
      if (at > word) spans.push_back(span_of(word, at));
      if (!(flags & CharTable::kSpace)) spans.push_back(span_of(at, i));
      word = i;
      if (spans.size() >= enough) return;
    }
    if (end > word) spans.push_back(span_of(word, end));
  });
}

}  // namespace ferry::text
