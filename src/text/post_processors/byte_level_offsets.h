#pragma once
// The post-processors of byte-level models take white space out of the tokens' offsets. Roberta's
// also puts <s> A </s></s> B </s> around the texts; Sequence calls several.

#include <memory>
#include <utility>
#include <vector>

#include "src/text/post_processors/template_processing.h"
#include "src/text/registry.h"

namespace ferry::text {

class ByteLevelOffsets final : public PostProcessor {
 public:
  /** add_prefix_space: the text's first blank was put there by the pre-tokenizer. */
  ByteLevelOffsets(bool add_prefix_space, bool trim_offsets)
      : add_prefix_space_(add_prefix_space), trim_offsets_(trim_offsets) {}

  static std::unique_ptr<PostProcessor> read(const JsonReader& section,
                                             const StageContext& context);

  void trim(TextTokens tokens) const override;

 private:
  bool add_prefix_space_, trim_offsets_;
};

class RobertaProcessing final : public TemplateProcessing {
 public:
  RobertaProcessing(int32_t cls, int32_t sep, ByteLevelOffsets offsets);

  static std::unique_ptr<PostProcessor> read(const JsonReader& section,
                                             const StageContext& context);

  void trim(TextTokens tokens) const override { offsets_.trim(tokens); }

 private:
  ByteLevelOffsets offsets_;
};

class PostProcessorSequence final : public PostProcessor {
 public:
  /** At most one of them has templates. */
  explicit PostProcessorSequence(std::vector<std::unique_ptr<PostProcessor>> parts);

  static std::unique_ptr<PostProcessor> read(const JsonReader& section,
                                             const StageContext& context);

  const Template* single() const override { return template_ ? template_->single() : nullptr; }
  const Template* pair() const override { return template_ ? template_->pair() : nullptr; }
  void trim(TextTokens tokens) const override;

 private:
  std::vector<std::unique_ptr<PostProcessor>> parts_;
  const PostProcessor* template_ = nullptr;
};

}  // namespace ferry::text
