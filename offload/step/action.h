#pragma once
// An action of a step: the link it runs on, and the bytes it reads and writes there, as ranges of
// regions. The pager makes lists of them, the executor runs these, the planner's simulator times
// them, and tests search them for hazards.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "offload/step/place.h"

namespace ferry {

struct StepShape;

/** Each queue runs its actions in list order; between queues only `after` orders. A queue is a
 * link: it has a rate of its own. `decision` has what a step waits for, so that updates on `host`
 * do not stand before it. `save` is no part of a step: a checkpoint's bytes leave on it while steps
 * go on. `nvme_read` and `nvme_write` share a drive. `collective` has what ranks send each other:
 * any two ranks have what passes between them in the same order. */
enum class QueueId : uint8_t {
  compute,
  h2d,
  d2h,
  collective,
  host,
  decision,
  save,
  nvme_read,
  nvme_write
};
inline constexpr int kQueues = 9;
template <class T>
using PerQueue = PerEnum<QueueId, T, kQueues>;
std::string_view name_of(QueueId queue);
/** Streams where there is a GPU. */
inline constexpr std::array kGpuQueues = {QueueId::compute, QueueId::h2d, QueueId::d2h,
                                          QueueId::collective};
constexpr bool is_of_gpu(QueueId queue) {
  return queue <= kGpuQueues.back();
}
constexpr bool is_on_drive(QueueId queue) {
  return queue == QueueId::nvme_read || queue == QueueId::nvme_write;
}
/** By queue: the index of an action, of which there is none yet. */
constexpr std::array<int, kQueues> no_actions() {
  std::array<int, kQueues> none{};
  none.fill(-1);
  return none;
}

enum class Verb : uint8_t {
  // Moves: copies of reads[i] to writes[i].
  fetch_batch,        ///< ids, lengths and labels of a micro-batch
  fetch_weights,      ///< host weights (and borrowed tensors) into a weight slot
  send_saved,         ///< activations of (block, micro) to the host
  fetch_saved,        ///< and back
  send_layer_input,   ///< a value of a forward to the host
  fetch_layer_input,  ///< and back, for a pass of a later block
  send_grads,         ///< a gradient slot to the host
  fetch_grads,        ///< and back into a slot, for an update there
  send_weights,       ///< updated weights of a slot to the host: nothing where nothing has changed
  send_step_sums,     ///< losses and norm parts of the device
  // Between ranks.
  gather_weights,  ///< each rank's part of a block's weights into a slot of every rank
  exchange_grads,  ///< each rank's part of a micro-batch's gradients to that rank
  pass_value,      ///< a value of a micro-batch to a rank that runs a later block
  // Passes of blocks.
  forward,
  recompute,  ///< makes activations again: all of them by a forward, or a selected part
  backward,   ///< gradients of this micro-batch (and their sum, where it lies on the device)
  // Arithmetic on gradients and states, where they lie.
  accumulate,  ///< staged gradients of one micro-batch into the fp32 sum
  combine,     ///< sums reads[i] into writes[i]: the uses of tied tensors
  square_sum,  ///< norm parts of the final sum
  decide,      ///< norm, clip factor, skip or go
  update,      ///< the optimizer on a block, or on a piece of one whose states live on a drive
  // Between a drive and the host.
  read_weights,  ///< a block's weights into a window of the host, or into a slot that lies there
  write_grads,   ///< the final gradients of a piece, as they arrive
  read_grads,    ///< and back, beside the piece's states
  fetch_states,  ///< the states of a piece
  send_states,   ///< and back, beside what was there: nothing where the update changed nothing
  commit,        ///< makes what was sent the states that survive a power cut
};
inline constexpr int kVerbs = 27;
std::string_view name_of(Verb verb);
constexpr bool is_move(Verb verb) {
  return verb <= Verb::send_step_sums;
}
/** True of passes of blocks, which do layer operations. */
constexpr bool is_pass(Verb verb) {
  return verb >= Verb::forward && verb <= Verb::backward;
}
constexpr bool is_between_ranks(Verb verb) {
  return verb >= Verb::gather_weights && verb <= Verb::pass_value;
}
/** True of what may go on under the passes of the next step. */
constexpr bool ends_later(Verb verb) {
  return verb == Verb::send_weights ||
         (verb >= Verb::update && verb != Verb::read_weights && verb != Verb::write_grads);
}

/** The use that an action has for some bytes. */
enum class Role : uint8_t {
  moved,
  weights,
  borrowed,  ///< a tensor of another block's weights
  batch,
  batch_on_host,
  value,  ///< between blocks
  saved,
  saved_recomputed,
  grads,  ///< those of one micro-batch, or final ones where there is no sum
  sum,    ///< the sum of gradients, fp32
  loss,
  workspace,  ///< content of no meaning before and after
  states,
  square_sum,
  dead,  ///< written: nobody reads the content of this whole region after the action
};

/** A range of a region. */
struct Bytes {
  RegionId region = -1;
  int64_t offset = 0, n_bytes = 0;
  Role role = Role::moved;
  int port = -1;  ///< of a value: index into BlockShape::ports
  /** Between ranks: the rank that these bytes go to or come from. Bytes that a rank reads for
   * itself are copied, in order, to those that it writes for itself. */
  int peer = -1;
  bool operator==(const Bytes&) const = default;
};

struct Action {
  Verb verb{};
  QueueId queue{};
  int block = -1;
  int micro = -1;  ///< -1: once a step, however many micro-batches there are
  int piece = -1;  ///< of the block's states or gradients; -1: all of them
  std::vector<Bytes> reads, writes;
  std::vector<int> after;         ///< indices of earlier actions on other queues
  std::vector<int> after_update;  ///< blocks whose update of the step before must have ended
  bool after_commit = false;      ///< the commit of the step before must have ended
};

using StepList = std::vector<Action>;

/** "backward(layer.3, micro-batch 1) on compute": for messages and traces. */
std::string describe(const Action& action, const StepShape& shape);

}  // namespace ferry
