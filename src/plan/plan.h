#pragma once
// From a model's tensor table, budgets and wishes to the placement of every byte. `ferry plan`
// prints a Plan, training executes the same object. Torch-free; no device is touched.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/batch_layout.h"
#include "models/tensor_table.h"
#include "offload/step/layout.h"
#include "src/plan/cost/simulate.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry {

/** Tokens of the micro-batches of one size, of texts not all as long as max_length. */
struct TextTokens {
  int64_t most = 0;     ///< of any of them: memory is kept for that
  int64_t typical = 0;  ///< what a step's time is told of
  int64_t attended =
      0;  ///< tokens that a token attends to: sum of squared lengths / sum of lengths
};

/** What the user asked for; what is left open the planner chooses. */
struct PlanRequest {
  int64_t train_batch_size = 32;
  std::optional<int64_t> micro_batch_size;  ///< sequences
  int64_t max_length = 512;
  /** Of steps of `train_batch_size` in micro-batches of so many sequences, where the texts are
   * known; nothing: every text may be as long as max_length. */
  std::function<TextTokens(int64_t train_batch_size, int64_t micro_batch_size)> text_tokens;
  bool has_gpu = false;
  int64_t gpu_budget_bytes = 0;  ///< beyond the context; with has_gpu
  int64_t host_budget_bytes = INT64_MAX;
  /** What gpu_memory and host_memory hold besides these budgets: for messages that name them. */
  int64_t gpu_reserved_bytes = 0, host_reserved_bytes = 0;
  std::optional<Place> placement;  ///< gpu: resident; host: all on the host
  std::optional<Activations> activations;
  /** Of the outputs of blocks that a backward reads again. */
  std::optional<Place> layer_inputs;
  std::optional<AccumulationOrder> order;
  std::optional<int> n_weight_slots;
  bool trains = true;
  simd::StateType states = simd::StateType::fp32;
  bool split_master = false;  ///< of a run that trains in bf16
  /** Updates wait for the gradients' norm: clipping, or loss scaling. */
  bool clips = true;
  /** What the machine can do. Candidates are compared by the time they would take; without it the
   * first that fits in the order of make_plan() is taken. */
  std::optional<MachineProfile> machine;
  /** What of the user's wishes was taken otherwise than it was said. */
  std::vector<std::string> notes;
};

/** Slots for blocks' weights: one is read, one is on its way, and one may wait; at least two. */
inline constexpr int kWeightSlots = 3, kWeightSlots_least = 2;

struct Plan {
  StepShape shape;
  Layout layout;
  BatchShape largest;  ///< largest micro-batch
  BatchShape typical;  ///< what `predicted` is of: the largest where nothing is known of the texts
  int64_t micro_batch_size = 0;
  int64_t n_micro = 1;  ///< of a full step
  int n_resident = 0;   ///< blocks on the GPU where others are on the host
  int n_kept_more = 0;  ///< of the last layers more saved tensors are kept than of the others
  std::string why;      ///< one line: what was chosen and what bound it
  /** The least that anything laid out in the search lacked of host memory; INT64_MAX: nothing did.
   * Where it is more than the buffer of checkpoints, the same is chosen with less than this added.
   */
  int64_t host_lacking_bytes = INT64_MAX;
  /** A full step of typical micro-batches, with a machine profile. */
  std::optional<Simulation> predicted;
};

/** What the driver counts beside the context and the plan once a step has run: kernels of LibTorch,
 * local memory of those that need it, CUDA graphs. */
int64_t loaded_kernels_bytes(const ModelTable& model);

/** To how many sizes micro-batches' token counts are rounded up at most: as many as have all their
 * CUDA graphs kept, where these are not too few for the sizes to fit the texts; else 8. */
int64_t n_token_sizes(const ModelTable& model, const Plan& plan);

/** With a machine profile the fastest of these that fit the budgets, else the first: all resident
 * and kept; the largest or all saved tensors recomputed; weights and states on the host, but for as
 * many blocks as the GPU has room for; and so on with smaller micro-batches. With a profile also
 * the same with saved tensors or the outputs of blocks on the host, and the fastest with fewer
 * slots and fewer blocks on the GPU; without one, outputs on the host only where nothing else fits.
 * Throws Error(does_not_fit) that names the
 * largest tag and changes with which it would fit, each tried; Error(usage) when the micro-batch
 * asked for is more than can be computed at once, or too small for its number. `nearest`: becomes,
 * before it throws, what lacked the fewest bytes, if anything could be laid out. */
Plan make_plan(const ModelTable& model,
               const PlanRequest& request,
               std::optional<Plan>* nearest = nullptr);
/** The same plan, and nothing where none fits. Searches may run in several threads. */
std::optional<Plan> find_plan(const ModelTable& model, const PlanRequest& request);

/** The order in which a request's blocks are updated. */
constexpr UpdateOrder update_order_of(const PlanRequest& request) {
  return request.clips ? UpdateOrder::after_decision : UpdateOrder::as_grads_arrive;
}

/** Passes of blocks whose simulation tells the same as that of more: 8 micro-batches of 40 layers.
 */
inline constexpr int64_t kSimulatedPasses = 340;

/** A step of the plan by a cost model of its shape; with `keeps_actions` its trace. */
Simulation simulate_plan(const CostModel& cost,
                         const PlanRequest& request,
                         const Plan& plan,
                         bool keeps_actions = false,
                         int64_t n_passes = kSimulatedPasses);
/** The same on the request's machine. */
Simulation simulate_plan(const ModelTable& model,
                         const PlanRequest& request,
                         const Plan& plan,
                         bool keeps_actions = false);

/** A step's shape with everything on the GPU and kept; what choose() changes of it costs little. */
StepShape make_step_shape(const ModelTable& model,
                          const BatchShape& largest,
                          const PlanRequest& request,
                          int64_t n_micro);

/** What a plan chooses of a step's shape, for all blocks alike. */
struct Choice {
  Place place = Place::device;
  Activations activations = Activations::keep;
  AccumulationOrder order = AccumulationOrder::horizontal;
  Place layer_inputs = Place::device;
  bool operator==(const Choice&) const = default;
};
void choose(StepShape& shape, const ModelTable& model, const Choice& choice);

/** One line of the report. */
struct PlanRow {
  Tag tag;
  Place place;
  int64_t n_bytes;
};
/** Bytes by tag and place, largest first, zero rows left out. */
std::vector<PlanRow> rows_of(const Plan& plan, bool has_gpu);

/** Bytes of host memory: all of them without a GPU. */
int64_t host_bytes_of(const Plan& plan, bool has_gpu);

}  // namespace ferry
