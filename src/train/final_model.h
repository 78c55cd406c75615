#pragma once
// The trained model as a Hugging Face directory: weights, config with the labels, the tokenizer's
// files as they were.

#include <filesystem>

#include "src/train/evaluation.h"

namespace ferry {

/** The run's directory: output_dir, or runs/<time>_<model>_<data>. Made here, so that what cannot
 * be written shows before training. Throws Error(usage) when it already holds a model,
 * Error(machine) when it cannot be made. */
std::filesystem::path make_output_directory(const Job& job);

/** Writes `run`/final, complete or not at all. */
std::filesystem::path save_final(Session& session,
                                 const Job& job,
                                 const std::filesystem::path& run);

/** One JSON object a sample: text, label, predicted, logits. */
void save_predictions(const Evaluation& evaluation,
                      const Job& job,
                      const std::filesystem::path& file);

}  // namespace ferry
