#pragma once
// The planner decides the place of every byte from a model's tensor table, budgets and wishes.
// `ferry plan` prints a Plan, training executes the same object. Torch-free; no device is touched.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/blocks/generation_memory.h"
#include "models/core/batch_layout.h"
#include "models/core/tensor_table.h"
#include "offload/step/layout.h"
#include "src/plan/cost/simulate.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry {

/** Tokens of the micro-batches of one size, of texts not all as long as max_length. */
struct TextTokens {
  int64_t most = 0;     ///< the most of any of them: memory is kept for that
  int64_t typical = 0;  ///< the number that a step's time is told of
  int64_t attended =
      0;               ///< tokens that a token attends to: sum of squared lengths / sum of lengths
  int64_t n_seqs = 0;  ///< the most sequences of any; 0: as many as samples
};

/** The user's wishes; the planner chooses everything that is left open. */
struct PlanRequest {
  int64_t train_batch_size = 32;
  std::optional<int64_t> micro_batch_size;  ///< sequences
  int64_t max_length = 512;
  int sequences_per_sample = 1;  ///< each of at most max_length tokens
  /** Tells how many tokens steps and micro-batches of these sizes have. The function is empty where
   * the texts are not known, and every text may be as long as max_length. */
  std::function<TextTokens(int64_t train_batch_size, int64_t micro_batch_size)> text_tokens;
  int world = 1;  ///< ranks that share a step, each with these budgets
  /** Micro-batches by rank, relative to the others. Without any all ranks get as many. */
  std::vector<int> shares = {};
  int n_per_host = 0;  ///< ranks of one host, which share its cores and memory; 0: all of them
  /** How ranks keep what lives on their GPUs. 2: whole weights beside a part of states and
   * gradients; 3: a part of the weights, too, which each pass gathers. */
  std::optional<int> zero_level;
  std::optional<Reduction> reduction;
  /** Stages of each replica of the model: a divisor of the world (offload/step/ranks.h). */
  std::optional<int> n_stages;
  int n_chunks = 1;  ///< StepShape::n_chunks
  bool has_gpu = false;
  int64_t gpu_budget_bytes = 0;  ///< beyond the context; with has_gpu
  /** The same by rank of a host, where GPUs have unlike memory; `gpu_budget_bytes` is then the
   * least. Empty: each has `gpu_budget_bytes`. */
  std::vector<int64_t> gpu_budgets_bytes = {};
  int64_t host_budget_bytes = INT64_MAX;
  int64_t pinned_bytes_max = INT64_MAX;  ///< of host memory: what more is copied takes longer
  /** States may live on a drive, in a store of so many bytes at most, which has room for
   * n_nvme_copies of them. */
  bool has_nvme = false;
  int64_t nvme_budget_bytes = INT64_MAX;
  int n_nvme_copies = 2;
  /** Bytes that gpu_memory and host_memory hold besides these budgets, for messages that name those
   * options. */
  int64_t gpu_reserved_bytes = 0, host_reserved_bytes = 0;
  /** gpu: resident; host: all on the host; nvme: all states on a drive, and weights where the CPU
   * finds them. */
  std::optional<Place> placement;
  std::optional<Activations> activations;
  /** The place of the layer inputs that a backward pass reads again. */
  std::optional<Place> layer_inputs;
  std::optional<AccumulationOrder> order;
  std::optional<int> n_weight_slots;
  bool trains = true;
  /** A language model goes on with texts, with no more sequences at once than these and a
   * micro-batch's. Where it trains, too, memory is kept for both, and steps stay as they are
   * without it: the micro-batch is that of the same request without a generation. */
  GenerationShape generation;
  simd::Optim optim = simd::Optim::adamw;
  bool split_master = false;  ///< true only in a run that trains in bf16
  /** Updates wait for the gradients' norm: clipping, or loss scaling. */
  bool clips = true;
  /** The abilities of a host. With them candidates are compared by the time they would take;
   * without them the first that fits in the order of make_plan() is taken. */
  std::optional<MachineProfile> machine;
  /** Settings beside the plan that change a step's time, as a text; empty: the usual ones. */
  std::string timed_with;
  /** True where what is reserved rests on other machines' figures, for messages. */
  bool is_reserve_assumed = false;
  /** Notes on wishes of the user that were taken otherwise than they were written. */
  std::vector<std::string> notes;
};

inline constexpr int kZeroLevel_least = 2, kZeroLevel_most = 3;

/** Slots for blocks' weights: one is read, one is on its way, and one may wait; at least two. */
inline constexpr int kWeightSlots = 3, kWeightSlots_least = 2;

/** The planner's choices for a step's shape, the same for all blocks. */
struct Choice {
  Place place = Place::device;
  Activations activations = Activations::keep;
  AccumulationOrder order = AccumulationOrder::horizontal;
  Place layer_inputs = Place::device;
  bool operator==(const Choice&) const = default;
};

struct Plan {
  StepShape shape;
  Layout layout;
  Choice choice;       ///< what the shape was made with; blocks may live in better places since
  BatchShape largest;  ///< largest micro-batch
  BatchShape typical;  ///< the shape of `predicted`: the largest if texts are unknown
  int64_t micro_batch_size = 0;
  /** Micro-batches of a full step; where ranks share them, parts of these. */
  int64_t n_micro = 1;
  int n_resident = 0;         ///< blocks on the GPU where others are on the host
  int n_weights_on_nvme = 0;  ///< blocks whose weights are read from a drive for each pass
  int n_grads_on_nvme = 0;    ///< blocks whose gradients wait on a drive for their update
  int n_weights = 0;    ///< more blocks whose weights stay on the GPU while the host updates them
  int n_states = 0;     ///< more blocks whose states stay on the GPU, which updates their weights
  int n_on_nvme = 0;    ///< blocks whose states live on a drive
  int n_kept_more = 0;  ///< the last layers, which keep more activations than the others
  std::string why;      ///< one line: what was chosen and what bound it
  /** The smallest host-memory shortfall of any candidate; INT64_MAX where none fell short. Where it
   * is more than the buffer of checkpoints, adding less host memory than this cannot change the
   * plan. */
  int64_t host_lacking_bytes = INT64_MAX;
  /** A full step of typical micro-batches, with a machine profile. Where runs have timed such steps
   * here, its time is theirs (learnt_steps.h). */
  std::optional<Simulation> predicted;
  std::string timed;  ///< the day when a step of this plan was timed here; empty: it never was
};

/** The CUDA graphs that a run keeps: passes of layers, one for each micro-batch of a step and each
 * of `token_sizes`, the token counts to which its micro-batches are rounded up. */
int64_t n_graphs_of(const ModelTable& model,
                    const Plan& plan,
                    std::span<const int64_t> token_sizes);

/** The most CUDA graphs that any run of the model keeps; 0 where it can have none. */
int64_t n_graphs_max(const ModelTable& model);

/** The bytes that the driver counts beside the context and the plan once a step has run: kernels of
 * LibTorch, local memory of those that need it, `n_graphs` CUDA graphs. What was not measured on
 * the card is assumed to be as on an H200. */
int64_t loaded_kernels_bytes(const ModelTable& model,
                             const KernelMemory& measured,
                             int64_t n_graphs);

/** The most sizes to which micro-batches' token counts are rounded up: as many as can have all
 * their CUDA graphs kept, or 8 where those are too few for the sizes to fit the texts. */
int64_t n_token_sizes(const ModelTable& model, const Plan& plan);

/** The plan: with a machine profile the fastest candidate that fits the budgets, else the first.
 * The candidates are, in this order: all resident and kept; the largest or all activations
 * recomputed; weights and states on the host, except for as many blocks as the GPU has room for;
 * then the same with smaller micro-batches. With a profile the search also tries activations or
 * layer inputs on the host, fewer slots, and fewer blocks on the GPU; without one, layer inputs
 * are on the host only where nothing else fits. Where the host's memory is too small, states of
 * some blocks live on a drive if there is one, and such a plan is taken where it is faster than
 * those without. Where runs have timed steps of such a request here, their times count.
 * Throws Error(does_not_fit), which names the
 * largest tag and changes with which it would fit, each of them tried. Throws Error(usage) when
 * the micro-batch asked for is more than can be computed at once, or too small for its number.
 * Before it throws, `nearest` becomes the plan that lacked the fewest bytes, if anything could be
 * laid out. */
Plan make_plan(const ModelTable& model,
               const PlanRequest& request,
               std::optional<Plan>* nearest = nullptr);
/** The same plan, and nothing where none fits. Searches may run in several threads. */
std::optional<Plan> find_plan(const ModelTable& model, const PlanRequest& request);

/** The request with the plan's ways to split a step, reduce gradients and gather weights, so that a
 * search looks at no others. */
PlanRequest with_rank_choices_of(const Plan& plan, PlanRequest request);

/** The order in which a request's blocks are updated. */
constexpr UpdateOrder update_order_of(const PlanRequest& request) {
  return request.clips ? UpdateOrder::after_decision : UpdateOrder::as_grads_arrive;
}

/** Passes of blocks whose simulation tells the same as that of more: 8 micro-batches of 40 layers.
 */
inline constexpr int64_t kSimulatedPasses = 340;

/** A simulation lists some of very many micro-batches, in whole rounds of the ranks, and each lasts
 * as long as several. Each rank has as many of them as its share says, one at least. */
struct SimulatedMicroBatches {
  int n = 1;
  double n_each = 1;
};
SimulatedMicroBatches simulated_micro_batches(const Plan& plan, int64_t n_passes);

/** A step of the plan by the cost models of its shape; with `keeps_actions` its trace. */
Simulation simulate_plan(const RankCosts& costs,
                         const PlanRequest& request,
                         const Plan& plan,
                         bool keeps_actions = false,
                         int64_t n_passes = kSimulatedPasses);
/** The same on the request's machine. */
Simulation simulate_plan(const ModelTable& model,
                         const PlanRequest& request,
                         const Plan& plan,
                         bool keeps_actions = false);

/** The generation that there is room for where `most` is wanted. */
GenerationShape generation_shape(const GenerationShape& most, const BatchShape& largest);

/** A step's shape with everything on the GPU and kept; what choose() changes of it costs little. */
StepShape make_step_shape(const ModelTable& model,
                          const BatchShape& largest,
                          const PlanRequest& request,
                          int64_t n_micro);

void choose(StepShape& shape, const ModelTable& model, const Choice& choice);

/** One line of the report. */
struct PlanRow {
  Tag tag;
  Place place;
  int64_t n_bytes;
  std::string_view name;  ///< of the tag
};
/** Bytes by tag and place, largest first, zero rows left out. On a drive they count once, however
 * many copies its store keeps (nvme_need_of()). */
std::vector<PlanRow> rows_of(const Plan& plan, bool has_gpu);

/** Bytes of host memory between which and the GPU copies go. */
struct PlannedPinning {
  int64_t pinned_bytes = 0;     ///< with the ring
  int64_t ring_bytes = 0;       ///< slots for copies of what is not pinned; 0: all of it is
  int64_t unpinned_bytes = 0;   ///< what goes through the ring
  int64_t step_ring_bytes = 0;  ///< the copies of a step that do, both ways together
};
/** Of a plan with a GPU. */
PlannedPinning pinning_of(const Plan& plan, const PlanRequest& request);

/** The bytes of GPU memory that the plan's rank may take. GPUs of unlike memory have a budget each
 * if the blocks are split over them, and else the least for all. */
int64_t gpu_budget_of(const PlanRequest& request, const StepShape& shape);

/** Bytes of host memory, those of a ring among them: all of them without a GPU. */
int64_t host_bytes_of(const Plan& plan, bool has_gpu);

}  // namespace ferry
