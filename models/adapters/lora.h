#pragma once
// Low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685) beside the linear maps of any family:
// y = W x + b + s B A x, with A (rank, in) and B (out, rank) trained and W frozen. Torch-free.
//
// A linear map of a block's program gets two companions: a linear map by A, and a low_rank
// operation by B. Where one matrix of a block is several tensors of the file (queries, keys and
// values), each adapted tensor has its own A and B, and those of equal rank lie in one matrix.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/core/tensor_table.h"

namespace ferry {

/** The adapter of one module. */
struct LoraOfModule {
  int64_t rank = 0;
  float factor = 1;  ///< s: alpha / rank, or with rsLoRA alpha / sqrt(rank)

  bool operator==(const LoraOfModule&) const = default;
};

struct Lora {
  /** The adapter of a linear map, by its name as transformers has it
   * ("model.layers.0.self_attn.q_proj"); none: it has no adapter. */
  std::function<std::optional<LoraOfModule>(const std::string& module)> of;
  float dropout = 0;  ///< of what A reads, in training
  /** True of a tensor that is trained whole and saved beside the adapters. */
  std::function<bool(const HfEntry&)> is_whole;
};

/** A linear map that may have an adapter. */
struct LinearModule {
  std::string name;  ///< the file's tensor, without ".weight"
  int64_t rows = 0, columns = 0;
};
std::vector<LinearModule> linear_modules(const ModelTable& model);

/** Names of an adapter's tensors begin so in PEFT's files. */
inline constexpr const char* kPeftPrefix = "base_model.model.";

/** Freezes the model but for what Lora names whole, and gives it the adapters. Their tensors have
 * PEFT's names. Throws Error(usage) where ranks share the layers. */
void add_lora(ModelTable& model, const Lora& lora);

}  // namespace ferry
