#pragma once
// The trained model as a Hugging Face directory: weights, config with the labels, the tokenizer's
// files as they were.

#include <filesystem>

#include "src/train/evaluation.h"

namespace ferry {

/** The run's directory: output_dir, or runs/<time>_<model>_<data>. Throws Error(usage) where it
 * holds a model or anything else than the settings of this very run, begun before. */
std::filesystem::path choose_output_directory(const Job& job);

/** Makes it and writes config.toml, before training, so that what cannot be written shows then.
 * Throws Error(machine) where it cannot be made or the disk has no room for the model. */
void make_output_directory(const Job& job, const std::filesystem::path& run);

/** Writes `run`/final, complete or not at all. */
std::filesystem::path save_final(Session& session,
                                 const Job& job,
                                 const std::filesystem::path& run);

/** One JSON object a sample: text, label, predicted, logits. */
void save_predictions(const Evaluation& evaluation,
                      const Job& job,
                      const std::filesystem::path& file);

}  // namespace ferry
