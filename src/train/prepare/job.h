#pragma once
// Everything a run needs before its first step, opened and checked in the order that finds mistakes
// soonest: settings, model directory, data, tokenizer, tensor table, plan. Training, evaluation and
// prediction share it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json_value.h"
#include "src/config/config.h"
#include "src/data/batch.h"
#include "src/data/reader.h"
#include "src/data/step_plan.h"
#include "src/data/tokenized.h"
#include "src/engine/session.h"
#include "src/engine/weights.h"
#include "src/files/hf/hf_directory.h"
#include "src/plan/plan.h"
#include "src/runs/checkpoints.h"
#include "src/text/tokenizer.h"
#include "src/train/prepare/machine.h"

namespace ferry {

/** In config.json: whether a classifier was trained on pairs of texts. Nobody else's key. */
inline constexpr std::string_view kPairsKey = "ferry_text_pairs";

struct Job {
  config::Config config;
  Machine machine;
  HfDirectory directory;
  Tokenizer tokenizer;
  LabelScheme scheme;
  LossKind loss = LossKind::cross_entropy;
  int64_t max_length = 512;
  ModelTable model;
  Plan plan;
  std::vector<int64_t> token_sizes;  ///< sizes that a micro-batch's token count is rounded up to

  TokenizedDataset train = TokenizedDataset();  ///< empty unless the job trains
  Dataset eval_examples;  ///< texts, for predictions to show; empty without evaluation data
  TokenizedDataset eval = TokenizedDataset();
  StepSplit split;
  int64_t steps_per_epoch = 0;
  int64_t n_steps = 0;
  bool has_checkpoint = false;     ///< the weights are a checkpoint's, loaded by who resumes
  JsonValue identity;              ///< the identity of a training: identity_of()
  JsonValue settings;              ///< those that change training, as they are when it starts
  std::vector<std::string> notes;  ///< notes for the user: what was taken for what
};

/** The seed that the texts are shuffled by. */
uint64_t data_seed_of(const config::Config& config);

/** The job of `ferry train`; of a run that goes on from a checkpoint with the model's config and
 * tokenizer from there, so that the model it began with may be gone. Paths among the settings are
 * absolute then. Throws Error for everything that is wrong with settings, model or data. */
std::unique_ptr<Job> prepare_training(config::Config config,
                                      const std::optional<runs::Checkpoint>& checkpoint = {});

/** The job of `ferry eval` (labels wanted) and `ferry predict` on a trained model. `texts`: predict
 * these instead of a dataset. */
std::unique_ptr<Job> prepare_inference(config::Config config,
                                       bool wants_labels,
                                       const std::vector<std::string>& texts);

/** Memory, device and weights as the plan says; weights not where a checkpoint's come later. */
std::unique_ptr<Session> open_session(const Job& job, LoadReport* report = nullptr);

/** MicroBatch of the data room as the engine takes it; it points into `batch`. */
HostBatch host_batch(const MicroBatch& batch, const Job& job);

/** The host memory that the plan, the dataset and LibTorch's own buffers take beyond the process as
 * it starts. */
int64_t planned_host_bytes(const Job& job);
/** The bytes that the driver will count on the card, with those that other programs took before; 0
 * on a CPU. */
int64_t planned_gpu_bytes(const Job& job);

}  // namespace ferry
