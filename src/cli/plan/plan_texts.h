#pragma once
// The texts that `ferry plan` counts: of the dataset that the settings name, in the tokens of the
// model's tokenizer, as `ferry train` will see them.

#include <filesystem>
#include <optional>
#include <string>

#include "src/config/config.h"
#include "src/files/hf/hf_config.h"
#include "src/plan/plan.h"
#include "src/train/prepare/data.h"

namespace ferry::cli {

/** The length of a run and of its texts, as far as they are known. */
struct PlannedTexts {
  std::optional<int64_t> n_steps;
  std::optional<double> mean_tokens;  ///< of a training text
  int64_t bytes = 0;                  ///< in host memory, once they are tokens
  int64_t longest = 0;                ///< tokens; 0: not known
  /** For PlanRequest. */
  std::function<TextTokens(int64_t, int64_t)> text_tokens;
};

/** `texts`: nothing where no dataset is given. Counts their tokens with the tokenizer in
 * `model_directory`. Where there is none every text is taken to be as long as max_length, and a
 * line says so. */
PlannedTexts count_texts(const std::optional<Texts>& texts,
                         const config::Config& config,
                         const std::optional<std::filesystem::path>& model_directory,
                         int64_t max_length);

/** The samples that the training would show at once. Without a tokenizer a prompt counts as
 * max_length tokens. */
GenerationShape count_samples(const config::Config& config,
                              const HfConfig& model,
                              const std::optional<std::filesystem::path>& model_directory,
                              int64_t max_length,
                              int64_t context);

}  // namespace ferry::cli
