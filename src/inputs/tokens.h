#pragma once
// Texts as tokens: read, tokenized and kept for the next time (src/data/tokens/token_cache.h), or
// found there. `ferry plan` counts them, too: no torch.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/config/config.h"
#include "src/data/step_plan.h"
#include "src/data/tokenized.h"
#include "src/inputs/data.h"
#include "src/tasks/task.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** The data of a job, with the numbers by which it falls into micro-batches. */
struct Data {
  std::shared_ptr<const Task> task;
  TokenizedDataset train;  ///< empty unless the job trains
  TokenizedDataset eval;   ///< with its examples, where the task answers texts
  uint64_t seed = 0;       ///< masks are drawn by it
  uint64_t shuffle_seed = 0;
  int64_t max_length = 512;
  StepSplit split;
  std::vector<int64_t> token_sizes;  ///< sizes that a micro-batch's token count is rounded up to
  std::vector<float> class_weights;  ///< (n_labels) of a training's loss; empty: all count 1
  std::vector<std::string> notes;    ///< for the user: where the tokens are

  /** Host memory that the tokens take. */
  int64_t bytes() const;
};

/** The option class_weights for texts with one label each: those given, or n / (classes * count) of
 * each class that the texts have, as scikit-learn's "balanced" defines it, and 1 of others. Empty
 * where all count the same. Throws Error(usage) where they do not fit the task. */
std::vector<float> choose_class_weights(const std::string& option,
                                        const Task& task,
                                        const TokenizedDataset& texts);

/** The option token_cache. */
struct TokenKeeping {
  std::filesystem::path directory;  ///< empty: tokens are held in memory
  bool is_asked_for = false;        ///< else only those of large files are kept
};
/** Its value for tokens that are held in memory. */
inline constexpr std::string_view kNoTokenCache = "off";
/** auto is $XDG_CACHE_HOME/ferry/tokens (~/.cache/ferry/tokens). */
TokenKeeping token_keeping(const config::Config& config);

struct TokenSettings {
  int64_t max_length = 512;
  int n_threads = 1;
  bool packs = false;         ///< samples of several texts, up to max_length tokens
  uint64_t shuffle_seed = 0;  ///< what is held out is drawn by it
  int64_t doc_stride = 128;
  TokenKeeping keeping;
  uint64_t tokenizer_hash = 0;  ///< of the files that it was opened from
};
/** Throws Error(usage) where the task cannot do what the settings ask for. */
TokenSettings token_settings(const config::Config& config,
                             const Task& task,
                             const std::filesystem::path& model_directory,
                             int64_t max_length,
                             int n_threads);

/** The numbers of micro-batches stay open but for max_length. */
Data tokenize(const Texts& texts, const Tokenizer& tokenizer, const TokenSettings& settings);

}  // namespace ferry
