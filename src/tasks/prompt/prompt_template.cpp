#include "src/tasks/prompt/prompt_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr std::string_view kTemplateOption = "config.template";

int32_t special_id(const std::string& name, const Tokenizer& tokenizer) {
  const SpecialIds& ids = tokenizer.special_ids();
  for (const auto& [its, id] : {std::pair{"<cls>", ids.cls},
                                {"<sep>", ids.sep},
                                {"<bos>", ids.bos},
                                {"<eos>", ids.eos},
                                {"<pad>", ids.pad},
                                {"<unk>", ids.unk}})
    if (name == its && id >= 0) return id;
  const int32_t id = tokenizer.token_to_id(name);
  if (id < 0)
    throw Error(Fault::usage, kTemplateOption,
                fmt::format("the tokenizer has no token '{}', which the template names", name),
                "special takes <cls>, <sep>, <bos>, <eos> or a token of the tokenizer");
  return id;
}

std::string with_blank(bool after_blank, const std::string& words) {
  return after_blank ? " " + words : words;
}

/** The tokens of an example's text in its place. */
struct TextTokens {
  std::vector<int32_t> ids;
  std::vector<text::Span> spans;
};

}  // namespace

PromptTemplate::PromptTemplate(const std::string& text,
                               const Tokenizer& tokenizer,
                               bool is_decoder,
                               int32_t first_soft) {
  Piece& begin = pieces_.emplace_back();
  tokenizer.append_part("", /*begins=*/true, /*ends=*/false, /*continues=*/true, begin.ids);
  bool is_asked = false;
  for (const TemplatePart& part : read_template(text)) {
    if (is_asked && is_decoder) {
      if (part.kind == TemplatePartKind::text)
        throw Error(Fault::usage, kTemplateOption,
                    "the template has a text behind the mask, and a decoder reads only what comes "
                    "before it",
                    R"(put {"mask"} at its end)");
      leaves_words_out_ = true;
      continue;
    }
    if (part.kind == TemplatePartKind::soft) {
      add_soft(part, tokenizer, first_soft);
      continue;
    }
    Piece piece = {.after_blank = part.after_blank};
    switch (part.kind) {
      case TemplatePartKind::words:
        tokenizer.append_ids(with_blank(part.after_blank, part.words), piece.ids,
                             /*continues=*/pieces_.size() > 1);
        break;
      case TemplatePartKind::text:
        piece.text = part.text;
        piece.may_be_cut = part.may_be_cut;
        break;
      case TemplatePartKind::special:
        piece.ids = {special_id(part.words, tokenizer)};
        break;
      default:
        is_asked = piece.is_asked = true;
        if (is_decoder) break;
        if (tokenizer.special_ids().mask < 0)
          throw Error(
              Fault::data, "train.mask", "the tokenizer has no mask token",
              "prompts are for masked models that have one, such as BERT, and for decoders");
        piece.ids = {tokenizer.special_ids().mask};
    }
    pieces_.push_back(std::move(piece));
  }
  if (is_decoder) return;
  Piece& end = pieces_.emplace_back();
  tokenizer.append_part("", /*begins=*/false, /*ends=*/true, /*continues=*/true, end.ids);
}

void PromptTemplate::add_soft(const TemplatePart& part,
                              const Tokenizer& tokenizer,
                              int32_t first_soft) {
  const auto known = std::ranges::find(named_soft_, part.soft_id.value_or(-1),
                                       &std::pair<int64_t, std::vector<int32_t>>::first);
  if (part.soft_id && known != named_soft_.end()) {
    pieces_.push_back({.ids = known->second});
    return;
  }
  std::vector<int32_t> starts;
  if (!part.words.empty())
    tokenizer.append_ids(with_blank(part.after_blank, part.words), starts, pieces_.size() > 1);
  std::vector<int32_t> ids;
  const int64_t n = part.words.empty() ? part.n_soft : std::ssize(starts);
  for (int64_t i = 0; i < n; ++i) {
    if (!part.are_same || i == 0) {
      soft_tokens_.emplace_back();
      if (!starts.empty()) soft_tokens_.back() = {starts[static_cast<size_t>(i)]};
    }
    ids.push_back(first_soft + static_cast<int32_t>(soft_tokens_.size()) - 1);
  }
  if (part.soft_id) named_soft_.emplace_back(*part.soft_id, ids);
  pieces_.push_back({.ids = std::move(ids)});
}

PromptedExample PromptTemplate::apply(const Example& example,
                                      const Tokenizer& tokenizer,
                                      int64_t max_length,
                                      Offsets offsets) const {
  std::vector<TextTokens> texts(pieces_.size());
  int64_t n_fixed = 0, n_free = 0;
  for (size_t p = 0; p < pieces_.size(); ++p) {
    const Piece& piece = pieces_[p];
    n_fixed += std::ssize(piece.ids);
    if (piece.text < 0) continue;
    if (piece.text == 1 && !example.text_pair)
      throw Error(Fault::data, kTemplateOption,
                  fmt::format("{}the template shows a second text, and there is none",
                              example.place.empty() ? "" : example.place + ": "),
                  "--text-pair-column names its column");
    const std::string& text = piece.text == 0 ? example.text : *example.text_pair;
    const std::string words = with_blank(piece.after_blank, text);
    const bool continues = p > 1;
    if (offsets == Offsets::keep)
      tokenizer.append_spans(words, texts[p].ids, texts[p].spans, continues);
    else
      tokenizer.append_ids(words, texts[p].ids, continues);
    (piece.may_be_cut ? n_free : n_fixed) += std::ssize(texts[p].ids);
  }
  const int64_t room = max_length - n_fixed;
  if (room < 1 && (n_free > 0 || room < 0))
    throw Error(
        Fault::usage, kTemplateOption,
        fmt::format("the template alone has {} tokens, and max_length is {}", n_fixed, max_length),
        "raise max_length, or shorten the template");
  PromptedExample out = {.ids = {}, .truncated = n_free > room, .places = {}};
  for (; n_free > room; --n_free) {  // the longest text is cut first
    size_t longest = pieces_.size();
    for (size_t p = 0; p < pieces_.size(); ++p)
      if (pieces_[p].may_be_cut &&
          (longest == pieces_.size() || texts[p].ids.size() >= texts[longest].ids.size()))
        longest = p;
    texts[longest].ids.pop_back();
  }
  for (size_t p = 0; p < pieces_.size(); ++p) {
    const Piece& piece = pieces_[p];
    const std::vector<int32_t>& ids = piece.text < 0 ? piece.ids : texts[p].ids;
    // A decoder's mask has no token: the token before it says the next one.
    if (piece.is_asked)
      out.asked = piece.ids.empty() ? std::max<size_t>(out.ids.size(), 1) - 1 : out.ids.size();
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    if (offsets == Offsets::skip) continue;
    const uint32_t shift = piece.after_blank ? 1 : 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      PromptedExample::Place place = {.text = piece.text, .bytes = {}};
      if (piece.text >= 0) {
        const text::Span span = texts[p].spans[i];
        place.bytes = {std::max(span.begin, shift) - shift, std::max(span.end, shift) - shift};
      }
      out.places.push_back(place);
    }
  }
  return out;
}

}  // namespace ferry
