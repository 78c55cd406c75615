#pragma once
// The list of a step, made before step 1 (design 4): which block is fetched into which slot, run,
// sent, updated, in what order and after what. A pure function of the step's shape: no device, no
// memory. The executor walks it, the planner's simulator times it, tests search it for hazards.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "offload/step/step_shape.h"

namespace ferry {

/** Each queue runs its actions in list order; between queues only `after` orders. `decision` has
 * what a step waits for, so that updates on `host` do not stand before it. `save` is no part of a
 * step: a checkpoint's bytes leave on it while steps go on. */
enum class QueueId : uint8_t { compute, h2d, d2h, host, decision, save };
inline constexpr int kQueues = 6;
std::string_view name_of(QueueId queue);

enum class Verb : uint8_t {
  fetch_batch,        ///< h2d: ids, lengths and labels of a micro-batch
  fetch_weights,      ///< h2d: host weights (and borrowed tensors) into a weight slot
  forward,            ///< compute
  send_saved,         ///< d2h: saved tensors of (block, micro) to the host
  fetch_saved,        ///< h2d: and back
  send_layer_input,   ///< d2h: output of (block, micro) to the host
  fetch_layer_input,  ///< h2d: and back, for a pass of the next block
  recompute,          ///< compute: forward again, for its saved tensors
  backward,  ///< compute: gradients of this micro-batch (and their sum, where it lies on the GPU)
  square_sum_gpu,   ///< compute: norm parts of the final sum, on the GPU
  send_grads,       ///< d2h: a gradient slot to the host
  accumulate,       ///< host: staged gradients of one micro-batch into the fp32 sum
  combine,          ///< sum of a tied tensor's uses, where they lie
  square_sum_host,  ///< host
  send_step_sums,   ///< d2h: losses and norm parts of the GPU
  decide,           ///< decision: norm, clip factor, skip or go
  update_gpu,       ///< compute: AdamW of a resident block
  update_host,      ///< host: AdamW of a host block, into its weights
};
std::string_view name_of(Verb verb);

struct Action {
  Verb verb{};
  QueueId queue{};
  int block = -1;
  int micro = -1;
  int slot = -1;                  ///< weight slot; -1: the weights are resident
  int grad_slot = -1;             ///< -1: the gradients are resident
  int saved_slot = -1;            ///< -1: kept or recomputed
  int input_slot = -1;            ///< layer-input slot of the output of the block before; -1: none
  int output_slot = -1;           ///< layer-input slot of the block's own output
  bool first_sum = false;         ///< gradients: this micro-batch starts the sum
  bool last_sum = false;          ///< and this one ends it
  bool releases_slot = false;     ///< nobody reads the weight slot's content after this
  bool releases_input = false;    ///< nor the input slot's
  std::vector<int> after;         ///< indices of earlier actions on other queues
  std::vector<int> after_update;  ///< blocks whose update of the step before must have ended
};

using StepList = std::vector<Action>;

/** The time when blocks of the host are updated. Clipping and loss scaling need all gradients
 * first. */
enum class UpdateOrder : uint8_t {
  after_decision,   ///< in the order the next forward needs them, under that forward
  as_grads_arrive,  ///< under the backward, but for BlockShape::updates_late and tied blocks
};

/** The list of a training step with `n_micro` (<= shape.n_micro_max) micro-batches. */
StepList make_training_list(const StepShape& shape,
                            int n_micro,
                            UpdateOrder order = UpdateOrder::after_decision);
/** Forward only, one micro-batch: fetch, forward, losses to the host. */
StepList make_evaluation_list(const StepShape& shape);
/** "backward(layer.3, micro 1) on compute": for messages and traces. */
std::string describe(const Action& action, const StepShape& shape);

}  // namespace ferry
