#pragma once
// `ferry export`: a trained model as a Hugging Face directory of its own, checked against what it
// was made from.

#include <filesystem>
#include <vector>

namespace ferry {

/** `directories`: of drives (nvme_path), where the states of a run's checkpoint were moved there.
 *
 * Writes config.json, the tokenizer's files and the weights (as stored) of the model in `from` to
 * the new directory `to`, then reads the weights back and compares every byte. Nothing is left at
 * `to` when anything fails. */
void export_model(const std::filesystem::path& from,
                  const std::filesystem::path& to,
                  const std::vector<std::filesystem::path>& directories = {});

}  // namespace ferry
