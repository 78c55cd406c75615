#pragma once
// `ferry export`: a trained model as a Hugging Face directory of its own, checked against what it
// was made from.

#include <filesystem>
#include <optional>
#include <vector>

#include "src/base/dtype.h"

namespace ferry {

/** `dtype`: of the weights; nothing: of a checkpoint the type that its run computes in, of other
 * models as they are. `directories`: of drives (nvme_path), where the states of a run's
 * checkpoint were moved there.
 *
 * Writes config.json, the tokenizer's files, generation_config.json and the weights of the model in
 * `from` to the new directory `to`, then reads the weights back and compares every byte. Nothing is
 * left at `to` when anything fails. */
void export_model(const std::filesystem::path& from,
                  const std::filesystem::path& to,
                  std::optional<DType> dtype = {},
                  const std::vector<std::filesystem::path>& directories = {});

}  // namespace ferry
