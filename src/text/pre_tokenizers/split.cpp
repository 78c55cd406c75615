#include "src/text/pre_tokenizers/split.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>
#include <string>

namespace ferry::text {
namespace {

Split::Behavior read_behavior(const JsonReader& section) {
  const std::string name = section.text("behavior");
  if (name == "Isolated") return Split::Behavior::isolated;
  if (name == "Removed") return Split::Behavior::removed;
  if (name == "MergedWithPrevious") return Split::Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Split::Behavior::merged_with_next;
  if (name == "Contiguous") return Split::Behavior::contiguous;
  section.fail(fmt::format("has the behavior {}, which is not known", name), kSaveAgain);
}

}  // namespace

Pattern read_pattern(const JsonReader& section) {
  const auto [kind, value] = section.at("pattern").only();
  const std::string expression = value.text();
  if (kind != "Regex" && kind != "String")
    value.fail(fmt::format("is a {}, expected Regex or String", kind), kSaveAgain);
  if (expression.empty()) value.fail("is empty", kSaveAgain);
  if (kind == "String") return Pattern::literal(expression);
  try {
    return Pattern(expression);
  } catch (const std::invalid_argument& error) {
    value.fail(fmt::format("is the pattern {}, {}", expression, error.what()),
               "patterns know classes, quantifiers of characters, alternatives and look-ahead");
  }
}

std::unique_ptr<PreTokenizer> Split::read(const JsonReader& section, const StageContext&) {
  return std::make_unique<Split>(read_pattern(section), read_behavior(section),
                                 section.flag("invert"));
}

void Split::split(Pieces& pieces, size_t enough) const {
  const std::string_view text = pieces.text.text();
  std::vector<Span>& spans = pieces.spans;
  pieces.refine([&](Span piece) {
    if (spans.size() >= enough) return;
    const size_t n_before = spans.size();
    bool after_match = false;
    bool open = false;  // merged_with_next: the last piece waits for what follows
    auto add = [&](size_t begin, size_t end, bool matched) {
      if (begin == end) return;
      const bool has_last = spans.size() > n_before;
      const Span added = span_of(piece.begin + begin, piece.begin + end);
      bool merge = false;
      switch (behavior_) {
        case Behavior::isolated:
          break;
        case Behavior::removed:
          if (matched) return;
          break;
        case Behavior::merged_with_previous:
          merge = matched && !after_match && has_last;
          break;
        case Behavior::merged_with_next:
          merge = open && !matched;
          open = matched;
          break;
        case Behavior::contiguous:
          merge = matched == after_match && has_last;
          break;
      }
      after_match = matched;
      if (merge)
        spans.back().end = added.end;
      else
        spans.push_back(added);
    };
    const std::string_view part = text.substr(piece.begin, piece.size());
    size_t done = 0;
    const bool may_stop = behavior_ == Behavior::isolated || behavior_ == Behavior::removed;
    const bool to_the_end = pattern_.find_all(part, [&](size_t begin, size_t end) {
      add(done, begin, invert_);
      add(begin, end, !invert_);
      done = end;
      return !may_stop || spans.size() < enough;
    });
    if (to_the_end) add(done, part.size(), invert_);
  });
}

std::unique_ptr<PreTokenizer> PreTokenizerSequence::read(const JsonReader& section,
                                                         const StageContext& context) {
  const JsonReader list = section.at("pretokenizers");
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!parts.empty() && parts.back()->gives_bytes())
      list.at(i).fail("follows a ByteLevel pre-tokenizer, which has to be the last",
                      "reorder the pre-tokenizers");
    parts.push_back(read_pre_tokenizer(list.at(i), context));
  }
  return std::make_unique<PreTokenizerSequence>(std::move(parts));
}

void PreTokenizerSequence::split(Pieces& pieces, size_t enough) const {
  for (size_t i = 0; i < parts_.size(); ++i)
    parts_[i]->split(pieces, i + 1 == parts_.size() ? enough : std::numeric_limits<size_t>::max());
}

}  // namespace ferry::text
