#pragma once
// Split cuts text at the matches of a pattern. Sequence calls pre-tokenizers one after the other.

#include <memory>
#include <utility>
#include <vector>

#include "src/text/pattern.h"
#include "src/text/registry.h"

namespace ferry::text {

class Split final : public PreTokenizer {
 public:
  /** What becomes of a match: a piece, nothing, a part of the piece before or after it, or one
   * piece with the matches beside it. */
  enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  static std::unique_ptr<PreTokenizer> read(const JsonReader& section, const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;  // what lies between the matches counts as matched
};

/** {"Regex": ".."} or {"String": ".."} under the key "pattern". */
Pattern read_pattern(const JsonReader& section);

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}

  static std::unique_ptr<PreTokenizer> read(const JsonReader& section, const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;
  bool gives_bytes() const override { return !parts_.empty() && parts_.back()->gives_bytes(); }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace ferry::text
