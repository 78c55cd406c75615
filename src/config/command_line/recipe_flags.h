#pragma once
// The part of foreign_flags() that LLaMA-Factory, axolotl, TRL and unsloth bring, beside the
// arguments of Hugging Face's Trainer.

#include "src/config/command_line/foreign_flags.h"

namespace ferry::config {

/** Reasons that both parts give. */
inline constexpr std::string_view kOneGpu = "this version trains on one GPU";
inline constexpr std::string_view kOwnKernels = "Ferry chooses its kernels itself";

std::vector<ForeignFlag> recipe_flags();

}  // namespace ferry::config
