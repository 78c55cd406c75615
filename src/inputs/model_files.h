#pragma once
// The files that a run's model begins with: a model directory, or with config_name a configuration
// and a tokenizer, whose weights are drawn. `ferry plan` and --dry-run read them, too: no torch.

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "models/core/tensor_table.h"
#include "src/config/config.h"
#include "src/files/hf/hf_directory.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** The settings ask for a model from scratch. */
bool draws_weights(const config::Config& config);

/** The configuration that config_name names, and the directory of the tokenizer: nullopt where it
 * is known by its name alone and tokenizer_name is empty. Throws Error(data). */
struct ScratchModel {
  HfConfig config;
  std::optional<std::filesystem::path> tokenizer;
};
ScratchModel find_scratch_model(const config::Config& config);

/** The name of the model for the user: what the settings call it; of a config.json its directory.
 */
std::string name_of_model(const config::Config& config);

/** The model of a run that begins. Throws Error(data) where a file is missing or damaged. */
HfDirectory open_model(const config::Config& config);

/** A model's directory, or an adapter's with the model that it is for. */
HfDirectory open_directory(const std::filesystem::path& path, bool needs_weights = true);
/** A run's checkpoint: its weights may lie on a drive. `base`: the model of an adapter, as --model
 * takes it; empty: the model that adapter_config.json names. */
HfDirectory open_checkpoint_directory(const std::filesystem::path& path,
                                      const std::string& base = "");

/** Throws Error(data) where the tokenizer has more tokens than a new model has rows for, or than a
 * masked model has, which draws any of them. Another one may lack rows for tokens that no text has:
 * check_rows(). */
void check_vocabulary(const HfDirectory& directory,
                      const Tokenizer& tokenizer,
                      const ModelTable& table);
/** Throws Error(data) that names the token where one has no row in the model. */
void check_rows(std::span<const int32_t> ids, const Tokenizer& tokenizer, const ModelTable& table);

}  // namespace ferry
