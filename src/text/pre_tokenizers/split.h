#pragma once
// Split cuts text at the matches of a pattern. Sequence calls pre-tokenizers one after the other.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/text/pattern.h"
#include "src/text/pre_tokenizers/cut.h"
#include "src/text/registry.h"

namespace ferry::text {

/** Under the key "behavior". */
Behavior read_behavior(const JsonReader& section, std::optional<std::string> fallback = {});

class Split final : public PreTokenizer {
 public:
  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  static std::unique_ptr<PreTokenizer> read(const JsonReader& section, const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;  // what lies between the matches counts as matched
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}

  static std::unique_ptr<PreTokenizer> read(const JsonReader& section, const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;
  bool gives_bytes() const override { return !parts_.empty() && parts_.back()->gives_bytes(); }
  bool needs_origins() const override;

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace ferry::text
