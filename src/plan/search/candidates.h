#pragma once
// The candidates of the planner's search: micro-batch sizes, places, and what happens to
// activations. Private to src/plan.

#include <limits>
#include <vector>

#include "models/ops/cuda_scratch.h"
#include "src/data/step_plan.h"
#include "src/plan/plan.h"

namespace ferry {

/** The tokens of a micro-batch are counted in int32 (cu_seqlens). */
constexpr int64_t kTokens_max = INT32_MAX - kTokenMultiple;
/** The limit of a GPU grid's second dimension. It holds pieces of a sum over rows (models/ops), and
 * the texts of flash attention (LibTorch). */
constexpr int64_t kGridRows_max = 65535;
constexpr int64_t kGpuTokens_max = kGridRows_max * ops::kSumChunkRows;

/** The largest micro-batch and the one whose time is told; of ranks that share them, the part of
 * each. */
struct Shapes {
  BatchShape largest, typical;
};
Shapes shapes_of(const PlanRequest& request, int64_t micro_batch_size, const Sharing& sharing = {});

struct Candidate {
  Choice choice;
  int64_t micro_batch_size = 0;
  bool operator==(const Candidate&) const = default;
};

/** The places to try for layer inputs, the preferred one first. Without times, the host is tried
 * only where nothing fits with them on the GPU. */
std::vector<Place> layer_input_places_of(const PlanRequest& request);

/** All candidates, the preferred one first. Smaller micro-batches cost less than recomputing, and
 * recomputing costs less than streaming. */
std::vector<Candidate> candidates_of(const PlanRequest& request,
                                     Place layer_inputs,
                                     const Sharing& sharing = {});

}  // namespace ferry
