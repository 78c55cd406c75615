#pragma once
// The data of a job: read as its settings or the command line name it, tokenized, and with the
// numbers by which it falls into micro-batches. `ferry plan` reads it, too: no torch.

#include <memory>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/data/step_plan.h"
#include "src/data/tokenized.h"
#include "src/files/hf/hf_directory.h"
#include "src/tasks/task.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** Texts as they were read, and the task that their labels make. */
struct Texts {
  std::shared_ptr<const Task> task;
  Dataset train;                   ///< empty unless the job trains
  Dataset eval;                    ///< empty without evaluation data
  std::vector<std::string> notes;  ///< for the user: what was taken for what
};

/** The texts of `ferry train`. Labels that the model knows already keep the model's order. Without
 * a tokenizer nothing is known but what the model's configuration says of padding. */
Texts texts_to_train_on(const config::Config& config,
                        const HfConfig& model,
                        const Tokenizer* tokenizer = nullptr);

/** The kind of the task that a training's settings name. */
const TaskKind& task_kind_of(const config::Config& config);

/** The texts of `ferry eval` (labels wanted) and `ferry predict`: the dataset, or without one
 * `words`, or without those standard input. */
Texts texts_to_answer(const config::Config& config,
                      const HfDirectory& model,
                      bool wants_labels,
                      const std::vector<std::string>& words);

struct Data {
  std::shared_ptr<const Task> task;
  TokenizedDataset train;  ///< empty unless the job trains
  TokenizedDataset eval;
  std::vector<Example> eval_texts;  ///< the texts of `eval`, for predictions to show
  uint64_t seed = 0;                ///< masks are drawn by it
  uint64_t shuffle_seed = 0;
  int64_t max_length = 512;
  StepSplit split;
  std::vector<int64_t> token_sizes;  ///< sizes that a micro-batch's token count is rounded up to
};

/** The settings ask for several texts a sample. Throws Error(usage) where the task has none. */
bool packs_texts(const config::Config& config, const Task& task);

/** Texts as tokens, with `packs` in samples of up to max_length tokens; the numbers of
 * micro-batches stay open but for max_length. */
Data tokenize(
    Texts texts, const Tokenizer& tokenizer, int64_t max_length, int n_threads, bool packs = false);

/** The seed that the texts are shuffled by. */
uint64_t shuffle_seed_of(const config::Config& config);

}  // namespace ferry
