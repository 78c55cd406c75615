#pragma once
// The task of a job: the labels of its texts, and the loss that follows from them. A trained
// model's config.json holds it. Micro-batches take their labels by it
// (src/train/prepare/batches.h), and evaluations their metrics (src/train/evaluate/evaluation.h).

#include "models/loss_kind.h"
#include "src/data/read/reader.h"
#include "src/files/hf/hf_directory.h"

namespace ferry {

struct Task {
  LabelScheme scheme;
  bool masks_tokens = false;  ///< masked-LM training: the texts need no labels

  LossKind loss() const;
  /** The outputs of a classifier's head for a text. */
  int64_t n_labels() const;
};

/** The task of a trained model: a classifier, or a masked language model. Throws Error(data) where
 * config.json names none. */
Task trained_task(const HfDirectory& model);
/** Writes the task into config.json, where trained_task() finds it. */
void write_task(const Task& task, HfConfig& config);

}  // namespace ferry
