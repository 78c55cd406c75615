#include "src/text/pieces.h"

namespace ferry::text {
namespace {

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

void NormalizedText::assign(const NormalizedText& whole, size_t begin, size_t end) {
  text_ = whole.text_.substr(begin, end - begin);
  aligned_ = whole.aligned_;
  continues_ = whole.continues_ && begin == 0;
  origins_ = whole.origins_ ? whole.origins_ + begin : nullptr;
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
