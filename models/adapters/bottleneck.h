#pragma once
// Adapters of two small maps with an activation in between, behind or beside the modules of a
// layer: behind attention's projection and the feed-forward's last map, within the residual, or
// beside both branches. Their forms are OpenDelta's. Torch-free.
//
//   adapter            y = h + U f(D h + d) + u            h: what the module gives (Houlsby 2019)
//   parallel_adapter   y = h + s (U f(D x + d) + u)        x: what the branch reads (He 2022)
//   low_rank_adapter   as adapter; D and U are products of a column and a row
//   compacter          as adapter; D and U are sums of Kronecker products (Mahabadi 2021)
//
// f is GELU by tanh; of Compacter ReLU.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/adapters/adapted_model.h"

namespace ferry {

enum class BottleneckKind : uint8_t { adapter, parallel, low_rank, compacter };

struct Bottleneck {
  BottleneckKind kind{};
  int64_t size = 0;      ///< rows of D
  float scale = 1;       ///< s of a parallel adapter
  int64_t division = 4;  ///< terms of Compacter's sums
  IsWhole is_whole;
};

/** The modules that get such an adapter, by the map that it stands behind. */
std::vector<std::string> bottleneck_modules(const ModelTable& model);

/** The module of an adapter's tensor; empty where it is no such tensor. */
std::string bottleneck_module_of(const std::string& hf_name);

/** A tensor that starts uniform between this and its negative: columns and rows, by Glorot's rule
 * with a gain of sqrt(2). */
std::optional<double> glorot_bound_of(const HfEntry& entry);

/** Freezes the model but for tensors that are trained whole, and gives each layer its adapters.
 * Plans the blocks anew. Throws Error(usage) where ranks share the layers, or Compacter cannot
 * divide a width or the size. */
void add_bottlenecks(ModelTable& model, const Bottleneck& its);

}  // namespace ferry
