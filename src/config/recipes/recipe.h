#pragma once
// Recipes: YAML files of LLaMA-Factory, axolotl and TRL (and of Ferry's own keys). Keys that Ferry
// has are set, those that change nothing are said, all others are refused by name.

#include <filesystem>
#include <string>

#include "src/config/config.h"

namespace ferry::config {

/** The ending is .yaml or .yml. */
bool is_yaml(const std::filesystem::path& file);

/** Sets what the text of a recipe says; `null` sets nothing, and text spells numbers (1e-5, which
 * YAML 1.1 calls a text). Throws Error(usage) naming file and line: no YAML, what Ferry does not
 * do, a LoRA recipe, an unknown key, a key given twice, a wrong value. */
void read_recipe(Config& config, const std::string& text, const std::filesystem::path& file);

}  // namespace ferry::config
