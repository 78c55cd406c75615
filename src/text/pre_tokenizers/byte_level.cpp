#include "src/text/pre_tokenizers/byte_level.h"

#include <algorithm>

namespace ferry::text {
namespace {

constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

ByteLevel::ByteLevel(bool add_prefix_space, bool use_regex) : add_prefix_space_(add_prefix_space) {
  if (use_regex) words_.emplace(Pattern(kGpt2Words), Behavior::isolated, false);
}

std::unique_ptr<PreTokenizer> ByteLevel::read(const JsonReader& section, const StageContext&) {
  return std::make_unique<ByteLevel>(section.flag("add_prefix_space"),
                                     section.flag("use_regex", true));
}

void put_blank_before(Pieces& pieces) {
  const auto lacks_blank = [&](Span piece) {
    return pieces.text.text()[piece.begin] != ' ' && !pieces.continues(piece);
  };
  if (std::none_of(pieces.spans.begin(), pieces.spans.end(), lacks_blank)) return;
  pieces.rewrite([&](auto& out, Span piece) {
    size_t after = piece.begin;
    next_code_point(out.source(), after);
    if (lacks_blank(piece)) out.put(' ', out.origin(piece.begin, after));
    out.keep(piece.begin, piece.end);
  });
}

void ByteLevel::split(Pieces& pieces, size_t enough) const {
  if (add_prefix_space_) put_blank_before(pieces);
  if (words_) words_->split(pieces, enough);
}

}  // namespace ferry::text
