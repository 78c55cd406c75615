#include "src/text/post_processors/byte_level_offsets.h"

#include <algorithm>

namespace ferry::text {
namespace {

constexpr char32_t kBlankLetter = 0x120;  // what a blank is in GPT-2's vocabulary

bool is_space(char32_t c) {
  const Category category = CategoryTable::get().of(c);
  return c == kBlankLetter || category == Category::Zs || category == Category::Zl ||
         category == Category::Zp || category == Category::Cc_space;
}

size_t leading_spaces(std::string_view token) {
  size_t n = 0;
  for (size_t i = 0; i < token.size() && is_space(next_code_point(token, i));)
    ++n;
  return n;
}

size_t trailing_spaces(std::string_view token) {
  size_t n = 0;
  for (size_t end = token.size(); end > 0 && is_space(previous_code_point(token, end));)
    ++n;
  return n;
}

}  // namespace

std::unique_ptr<PostProcessor> ByteLevelOffsets::read(const JsonReader& section,
                                                      const StageContext&) {
  return std::make_unique<ByteLevelOffsets>(section.flag("add_prefix_space"),
                                            section.flag("trim_offsets"));
}

/** Takes a character of the text out of a token's offsets for each space at the token's ends. */
void ByteLevelOffsets::trim(TextTokens tokens) const {
  if (!trim_offsets_) return;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    Span& span = tokens.offsets[i];
    const auto id = static_cast<size_t>(tokens.ids[i]);
    const std::string_view token =
        tokens.added[id] ? tokens.text.substr(span.begin, span.size()) : tokens.all[id];
    size_t leading = leading_spaces(token);
    size_t trailing = trailing_spaces(token);
    if (leading > 0 && add_prefix_space_ && (i == 0 || span.begin == 0)) --leading;
    size_t begin = span.begin, end = span.end;
    for (; leading > 0 && begin < end; --leading)
      next_code_point(tokens.text, begin);
    for (; trailing > 0 && end > begin; --trailing)
      previous_code_point(tokens.text, end);
    span = span_of(begin, end);
  }
}

RobertaProcessing::RobertaProcessing(int32_t cls, int32_t sep, ByteLevelOffsets offsets)
    : TemplateProcessing(
          {{{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}}},
          {{{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep, sep}, 0}, {1, {}, 0}, {-1, {sep}, 0}}}),
      offsets_(offsets) {}

std::unique_ptr<PostProcessor> RobertaProcessing::read(const JsonReader& section,
                                                       const StageContext& context) {
  const size_t vocab_size = context.known->n_ids();
  return std::make_unique<RobertaProcessing>(
      read_token_pair(section, "cls", vocab_size), read_token_pair(section, "sep", vocab_size),
      ByteLevelOffsets(section.flag("add_prefix_space"), section.flag("trim_offsets")));
}

PostProcessorSequence::PostProcessorSequence(std::vector<std::unique_ptr<PostProcessor>> parts)
    : parts_(std::move(parts)) {
  const auto has_template = [](const auto& part) { return part->single() != nullptr; };
  const auto found = std::find_if(parts_.begin(), parts_.end(), has_template);
  if (found != parts_.end()) template_ = found->get();
}

std::unique_ptr<PostProcessor> PostProcessorSequence::read(const JsonReader& section,
                                                           const StageContext& context) {
  const JsonReader list = section.at("processors");
  std::vector<std::unique_ptr<PostProcessor>> parts;
  bool has_template = false;
  for (size_t i = 0; i < list.size(); ++i) {
    parts.push_back(read_post_processor(list.at(i), context));
    if (has_template && parts.back()->single())
      list.at(i).fail("is the second that adds special tokens, expected one", kSaveAgain);
    has_template = has_template || parts.back()->single();
  }
  return std::make_unique<PostProcessorSequence>(std::move(parts));
}

void PostProcessorSequence::trim(TextTokens tokens) const {
  for (const auto& part : parts_)
    part->trim(tokens);
}

}  // namespace ferry::text
