#include "src/text/pieces.h"

#include <fmt/format.h>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry::text {
namespace {

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

void refuse_growth(size_t n_bytes) {
  throw Error(Fault::data, "tokenizer.encode",
              fmt::format("the tokenizer makes a text larger than {} by what it puts into it",
                          format_bytes(static_cast<int64_t>(n_bytes))),
              "is tokenizer.json as its maker wrote it? Such replacements may come of a stranger");
}

void NormalizedText::assign(const NormalizedText& whole, size_t begin, size_t end) {
  text_ = whole.text_.substr(begin, end - begin);
  aligned_ = whole.aligned_;
  continues_ = whole.continues_ && begin == 0;
  origins_ = whole.origins_ ? whole.origins_ + begin : nullptr;
  n_bytes_max_ = most_bytes_of(end - begin);
  at_ = whole.at_;
  if (!origins_)
    at_ += begin;
  else if (begin < end)
    at_ = origins_->begin;
}

Span NormalizedText::origin(size_t begin, size_t end) const {
  if (origins_) return {origins_[begin].begin, origins_[end - 1].end};
  while (begin > 0 && continues_character(text_[begin]))
    --begin;
  while (end < text_.size() && continues_character(text_[end]))
    ++end;
  return span_of(at_ + begin, at_ + end);
}

}  // namespace ferry::text
