#include "src/text/decoders/wordpiece_decoder.h"

#include <array>
#include <string_view>

#include "src/text/replace_all.h"

namespace ferry::text {
namespace {

/** Blanks that `tokenizers` removes, in its order. */
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kCleanups = {
    {{" .", "."},
     {" ?", "?"},
     {" !", "!"},
     {" ,", ","},
     {" ' ", "'"},
     {" n't", "n't"},
     {" 'm", "'m"},
     {" do not", " don't"},
     {" 's", "'s"},
     {" 've", "'ve"},
     {" 're", "'re"}}};

}  // namespace

std::unique_ptr<Decoder> WordPieceDecoder::read(const JsonReader& section, const StageContext&) {
  return std::make_unique<WordPieceDecoder>(section.text("prefix"), section.flag("cleanup"));
}

void WordPieceDecoder::decode(std::vector<std::string>& tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0 && token.starts_with(prefix_))
      token.erase(0, prefix_.size());
    else if (i > 0)
      token.insert(0, 1, ' ');
    if (!cleanup_) continue;
    for (const auto& [from, to] : kCleanups)
      replace_all(token, from, to);
  }
}

}  // namespace ferry::text
