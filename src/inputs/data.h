#pragma once
// The data of a job, as its settings or the command line name it: which texts there are, and the
// task that their labels make. Texts are read when they are tokenized (tokens.h). Plans read them
// as training does: no torch.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/data/read/reader.h"
#include "src/files/hf/hf_directory.h"
#include "src/tasks/task.h"

namespace ferry {

/** Examples that are read when they are wanted. */
struct TextSource {
  std::shared_ptr<const DatasetReader> reader;
  std::vector<Example> given;  ///< in place of a reader: a command line's, or standard input's
  bool has_labels = false;
  /** The bytes of the only document before a place, or behind it. */
  enum class Side : uint8_t { whole, before, behind };
  Side side = Side::whole;
  size_t cut = 0;
  std::optional<int64_t> n_most;  ///< the first examples only

  bool is_empty() const { return !reader && given.empty(); }
  std::unique_ptr<ExampleStream> examples() const;
};

/** The texts of a job, and the task that their labels make. */
struct Texts {
  std::shared_ptr<const Task> task;
  std::shared_ptr<const chat::ChatEncoder> chats;  ///< of a training's chats; null: it has none
  TextSource train;                                ///< empty unless the job trains
  TextSource eval;                                 ///< empty without evaluation data
  double held_out = 0;  ///< the share of the examples of `train` that are for evaluation
  /** Of what is left of `train`, and of what is held out: the first examples only. */
  std::optional<int64_t> n_train_most, n_eval_most;
  std::vector<std::string> notes;  ///< for the user: what was taken for what
};

/** The texts of `ferry train`. Labels that the model knows already keep the model's order. Without
 * a tokenizer nothing is known but what the model's configuration says of padding. `files`
 * lead to the chat template. */
Texts texts_to_train_on(const config::Config& config,
                        const HfConfig& model,
                        const Tokenizer* tokenizer = nullptr,
                        const chat::ModelFiles& files = std::filesystem::path());

/** Makes tokens of chats as the settings say, by the model's template where they name none. Throws
 * Error(usage) for settings that are wrong. */
std::shared_ptr<const chat::ChatEncoder> chat_encoder_of(const config::Config& config,
                                                         const chat::ModelFiles& files,
                                                         const Tokenizer& tokenizer);

/** The data of the option dataset; mixed where dataset_shares gives shares. `known` may be null.
 * Throws Error(usage) where there are not as many shares as data sets. */
std::shared_ptr<const DatasetReader> open_training_data(const config::Config& config,
                                                        RowNeed rows,
                                                        const LabelScheme* known = nullptr);

/** The first of the rows of a form in a data set; none where the data cannot be read so. */
std::optional<Example> first_row(const config::Config& config,
                                 const std::string& data,
                                 RowForm form);
/** The rows of the data set have a better and a worse answer each. */
bool holds_pairs(const config::Config& config, const std::string& data);

/** The kind of the task that a training's settings name. */
const TaskKind& task_kind_of(const config::Config& config);

/** A line for the user where a language model would be trained on texts without an end, and so
 * would not learn to stop; else empty. */
std::string note_of_missing_end(const config::Config& config, const Tokenizer& tokenizer);

/** The labels of a training's head where its data are not read: those of the model, else 2. Their
 * bytes are no matter. */
int64_t n_labels_without_data(const HfConfig& model);

/** The texts of `ferry eval` (labels wanted) and `ferry predict`: the dataset, or without one
 * `words`, or without those standard input. */
Texts texts_to_answer(const config::Config& config,
                      const HfDirectory& model,
                      const Tokenizer& tokenizer,
                      bool wants_labels,
                      const std::vector<std::string>& words);

/** The settings ask for several texts a sample. Throws Error(usage) where the task has none. */
bool packs_texts(const config::Config& config, const Task& task);

/** The seed that the texts are shuffled by. */
uint64_t shuffle_seed_of(const config::Config& config);

}  // namespace ferry
