#pragma once
// `ferry export`: a trained model as a Hugging Face directory of its own, checked against what it
// was made from.

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "src/base/dtype.h"
#include "src/files/hf/hf_directory.h"

namespace ferry {

/** `dtype`: of the weights; nothing: of a checkpoint the type that its run computes in, of other
 * models as they are. `directories`: of drives (nvme_path), where the states of a run's
 * checkpoint were moved there.
 *
 * Writes config.json, the tokenizer's files, generation_config.json and the weights of the model in
 * `from` to the new directory `to`, then reads the weights back and compares every byte. `check`
 * gets the whole before it appears at `to`, where nothing is left when anything fails. */
void export_model(const std::filesystem::path& from,
                  const std::filesystem::path& to,
                  std::optional<DType> dtype = {},
                  const std::vector<std::filesystem::path>& directories = {},
                  const std::function<void(const std::filesystem::path& written)>& check = {});

/** The type that the run of a checkpoint computes in; nothing: `from` is no checkpoint. */
std::optional<DType> dtype_of_run(const std::filesystem::path& from);

/** True where the weights are no files of `from` yet: an adapter has to be merged first, and a
 * checkpoint may have its states on a drive. */
bool has_scattered_weights(const HfDirectory& model, const std::filesystem::path& from);
/** Writes the weights of such a model in fp32 to an existing directory, checked. */
void gather_weights(const HfDirectory& model,
                    const std::filesystem::path& from,
                    const std::vector<std::filesystem::path>& directories,
                    const std::filesystem::path& to);

}  // namespace ferry
