#pragma once
// Low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685) beside the linear maps of any family:
// y = W x + b + s B A x, with A (rank, in) and B (out, rank) trained and W frozen. Torch-free.
//
// A linear map of a block's program gets two companions: a linear map by A, and a low_rank
// operation by B. Where one matrix of a block is several tensors of the file (queries, keys and
// values), each adapted tensor has an A and a B, and all A of equal rank lie in one matrix. DoRA
// gives each row of W + s B A a length that is trained.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/adapters/adapted_model.h"

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
  float dropout = 0;  ///< of what A reads, in training; with dora of what W reads beside A, too
  bool dora = false;  ///< rows have a trained length (models/ops/dora)
  IsWhole is_whole;
};

/** The linear maps that may have an adapter, by module_of(). */
std::vector<std::string> linear_modules(const ModelTable& model);

/** The ends of PEFT's names of an adapter's tensors. */
inline constexpr std::string_view kLoraA = ".lora_A.weight", kLoraB = ".lora_B.weight",
                                  kLoraMagnitude = ".lora_magnitude_vector";

/** The module that an adapter's tensor is for; empty where it is no adapter's. */
std::string adapted_module_of(const HfEntry& entry);

/** Freezes the model but for what Lora names whole, and gives it the adapters. Their tensors have
 * PEFT's names. Plans the blocks anew. Throws Error(usage) where ranks share the layers. */
void add_lora(ModelTable& model, const Lora& lora);

}  // namespace ferry
