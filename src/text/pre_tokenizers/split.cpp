#include "src/text/pre_tokenizers/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

namespace ferry::text {

Behavior read_behavior(const JsonReader& section, std::optional<std::string> fallback) {
  const std::string name = section.text("behavior", std::move(fallback));
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Removed") return Behavior::removed;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  section.fail(fmt::format("has the behavior {}, which is not known", name), kSaveAgain);
}

std::unique_ptr<PreTokenizer> Split::read(const JsonReader& section, const StageContext&) {
  return std::make_unique<Split>(read_pattern(section), read_behavior(section),
                                 section.flag("invert"));
}

void Split::split(Pieces& pieces, size_t enough) const {
  cut(pieces, behavior_, invert_, enough,
      [this](std::string_view text, auto found) { return pattern_.find_all(text, found); });
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

bool PreTokenizerSequence::needs_origins() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->needs_origins(); });
}

void PreTokenizerSequence::split(Pieces& pieces, size_t enough) const {
  for (size_t i = 0; i < parts_.size(); ++i)
    parts_[i]->split(pieces, i + 1 == parts_.size() ? enough : std::numeric_limits<size_t>::max());
}

}  // namespace ferry::text
