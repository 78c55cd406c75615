#pragma once
// A training step as the offload room sees it: blocks as counts of elements and bytes, where each
// lives, how many micro-batches, in which order. Made by src/plan from the tensor tables; read by
// the pager (which makes the list of actions), the layout (which places every byte) and the
// executor (which runs the list).

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "offload/step/place.h"
#include "offload/step/ranks.h"
#include "simd/update/optim.h"
#include "src/base/dtype.h"
#include "src/base/indexed.h"
#include "src/base/port.h"

namespace ferry {

/** A parameter inside a block's segments. */
struct TensorExtent {
  int64_t offset = 0;  ///< elements, a multiple of 256; trained tensors lie before frozen ones
  int64_t n_elements = 0;
  int group = 0;          ///< which of Decision::steps updates it
  bool trainable = true;  ///< false: no update, no part in the gradient norm
};

/** A tensor of another block that this one uses too (tied embeddings): read from that block's
 * weights; this use's gradient has its own accumulator behind this block's gradients. */
struct BorrowedExtent {
  int block = 0;
  int tensor = 0;  ///< index into that block's tensors
  bool operator==(const BorrowedExtent&) const = default;
};

/** The treatment of the activations, the tensors that a block's forward pass saves for its backward
 * pass. selective: the block recomputes those that cost least for their size right before its
 * backward pass, and keeps the others. */
enum class Activations : uint8_t { keep, selective, recompute, host };
constexpr std::string_view name_of(Activations activations) {
  constexpr std::string_view kNames[] = {"keep", "selective", "recompute", "host"};
  return kNames[static_cast<size_t>(activations)];
}
/** The value of that name; nullopt for "auto". */
constexpr std::optional<Activations> activations_of(std::string_view name) {
  for (const auto a :
       {Activations::keep, Activations::selective, Activations::recompute, Activations::host})
    if (name_of(a) == name) return a;
  return std::nullopt;
}
/** vertical: all micro-batches of a step pass through a block before the next block. horizontal:
 * one micro-batch passes through all blocks, forwards and backwards, before the next one. With
 * several stages, horizontal is a pipeline: no more micro-batches than stages are under way. */
enum class AccumulationOrder : uint8_t { horizontal, vertical };

/** A tensor of one micro-batch that passes between blocks: hidden states, their gradient, a running
 * sum. It lives from the first pass that writes it to the last one that reads it; ports of blocks
 * say which these are. */
struct ValueShape {
  std::string name;     ///< "output of layer.3"
  int64_t n_bytes = 0;  ///< bytes of a micro-batch of the largest shape
};

/** The places of a block's bytes. */
struct BlockPlacement {
  /** Passes find them there; host and nvme: in a slot that is filled from there. Weights of a
   * trained block lie on a drive where its states do, too. */
  Place weights = Place::device;
  /** Master and the optimizer's states: the block is updated there. States on a drive come piece by
   * piece to the memory of the gradients, and the update runs there. Where the device updates
   * weights of the host, it does so in a slot, and sends them back.
   */
  Place states = Place::device;
  /** Final gradients: the update finds them there; nvme: they are written there as they arrive, and
   * read back with the states, which live on a drive, too. */
  Place grads = Place::device;

  BlockPlacement() = default;
  constexpr BlockPlacement(Place all) : weights(all), states(all), grads(all) {}
  constexpr BlockPlacement(Place weights_, Place states_, Place grads_)
      : weights(weights_), states(states_), grads(grads_) {}
  /** The memory where the update reads and writes; nvme: StepShape::drive_memory(). */
  constexpr Place updates() const { return states == Place::nvme ? grads : states; }
  bool operator==(const BlockPlacement&) const = default;
};
/** The host updates the block and the device keeps its weights, which are copied there once a step.
 */
inline constexpr BlockPlacement kWeightsOnDevice{Place::device, Place::host, Place::host};
/** The device updates the block, whose weights and gradients it gets from the host. */
inline constexpr BlockPlacement kStatesOnDevice{Place::host, Place::device, Place::host};
/** The same with gradients that stay where they are made. */
inline constexpr BlockPlacement kStatesAndGradsOnDevice{Place::host, Place::device, Place::device};

struct BlockShape {
  std::string name;
  int64_t n_elements = 0;  ///< elements of the weights
  /** Elements of the trained prefix, a multiple of 256: gradients, master and states have no more.
   */
  int64_t n_trained_elements = 0;
  Indexed<TensorExtent> tensors;
  Indexed<BorrowedExtent> borrowed;
  int64_t saved_bytes = 0;             ///< bytes of one micro-batch of the largest shape
  int64_t saved_recomputed_bytes = 0;  ///< the part of these that selective recomputes
  Indexed<Port> ports;                 ///< of StepShape::values
  bool has_loss = false;               ///< its forward gives a part of the loss
  int stage = 0;                       ///< the stage that has the block
  BlockPlacement place;
  /** Several ranks that have their parts of the weights on the device, and update them there,
   * gather the weights into a weight slot for each pass. Else they gather them once a step, into a
   * slot of the block, and no rank has memory for more of the model than one GPU has. */
  bool gathers_each_pass = false;
  Activations activations = Activations::keep;
  /** True where the block's update waits for the end of the backward pass although nothing is
   * clipped. Updates in the order in which gradients arrive leave the backlog on the blocks that
   * the next forward pass needs first. */
  bool updates_late = false;

  /** Saved tensors that stay from the forward to the backward. */
  int64_t saved_kept_bytes() const {
    if (activations == Activations::recompute) return 0;
    return saved_bytes - (activations == Activations::selective ? saved_recomputed_bytes : 0);
  }
};

/** The host memory that a checkpoint's bytes may take on their way to the disk: the wanted size,
 * and the least one. */
inline constexpr int64_t kSaveBuffer_bytes = 512 << 20, kSaveBuffer_bytes_least = 32 << 20;

struct StepShape {
  Indexed<BlockShape> blocks;  ///< forward order; the last is the head
  DType compute = DType::f32;
  simd::Optim optim = simd::Optim::adamw;
  /** True in bf16 runs where the weights are the master's upper halves and its segment holds the
   * lower ones. */
  bool split_master = false;
  Ranks ranks;
  Reduction reduction = Reduction::ordered;
  int n_ranks_per_host = 0;  ///< in the order of ranks; 0: all of them are of one host
  int n_micro_max = 1;       ///< micro-batches of a step that a rank has, at most
  AccumulationOrder order = AccumulationOrder::horizontal;
  /** A stage of a pipeline has so many runs of blocks: more make the pipeline fill faster, and more
   * values pass between ranks (interleaved: Narayanan et al. 2021). */
  int n_chunks = 1;
  int n_weight_slots = 2;
  int n_grad_slots = 2;
  int n_saved_slots = 2;       ///< slots for activations on the host
  Indexed<ValueShape> values;  ///< tensors that pass between blocks
  /** All blocks in the order of their backwards; empty: the last one first. */
  std::vector<int> backwards;
  /** Values of forwards that a backward reads again lie in slots of the GPU, and in host memory
   * while the slots are for others; false: each in its own region of the GPU. */
  bool layer_inputs_on_host = false;
  int n_layer_input_slots = 3;  ///< all that a forward reads and what it writes, at least
  int64_t scratch_bytes = 0;
  int64_t library_bytes = 0;
  int64_t batch_bytes = 0;       ///< ids, labels, lengths of one micro-batch
  int64_t generation_bytes = 0;  ///< keys and values, and logits, of texts that are gone on with
  int64_t save_buffer_bytes_max = kSaveBuffer_bytes;
  /** The most bytes of host memory that are pinned, for the time that copies take: those of the
   * rest go through a ring. */
  int64_t pinned_bytes_max = INT64_MAX;
  /** States that live on a drive pass through slots of the host, a piece of so many elements in
   * each: a multiple of simd::kStateBlock. */
  int64_t state_piece_elements = 16 << 20;
  int n_state_slots = 4;     ///< one is read, one updated, one written, and one waits
  int n_weight_windows = 2;  ///< in the host's memory, for blocks of weights that a drive has
  int n_grad_windows = 2;    ///< the same, for pieces of gradients on their way to a drive
  /** The device's memory is the host's own: a drive reads into it. */
  bool computes_on_host = false;
  bool trains = true;  ///< false: forward only, no gradients or states

  /** Parts of the loss of a micro-batch, and a block's number among them. */
  int n_losses() const { return loss_index(n_blocks()); }
  int loss_index(int block) const {
    return static_cast<int>(std::count_if(blocks.begin(), blocks.begin() + block,
                                          [](const BlockShape& b) { return b.has_loss; }));
  }
  int n_blocks() const { return static_cast<int>(blocks.size()); }
  /** Micro-batches whose activations are alive at once. */
  int n_live() const {
    if (order == AccumulationOrder::vertical) return n_micro_max;
    return std::min(n_micro_max, ranks.n_stages);
  }
  /** A tensor of the block is trained: it has states and an update. */
  bool is_trained(int block) const;
  /** Its backward is for gradients that are wanted: of its own tensors or of those it borrows. */
  bool has_grads(int block) const;
  /** The first block with a backward; those before it are frozen. n_blocks(): nothing is trained.
   */
  int first_backward() const;
  /** Blocks with a backward, in the order of these. */
  std::vector<int> backward_order() const;
  /** True if a trained tensor of this block has two uses: its gradients are always summed in fp32.
   */
  bool tied(int block) const;
  /** Pieces of the block's states on a drive; 0: they do not live there. */
  int n_state_pieces(int block) const;
  /** The block's gradients wait on a drive for its update, in the pieces of its states. */
  bool grads_on_drive(int block) const {
    return is_trained(block) && runs(block) && blocks[block].place.grads == Place::nvme;
  }
  /** True where they can: they arrive once a step, and no other block adds to them. */
  bool may_write_grads(int block) const {
    return (n_micro_max == 1 || order == AccumulationOrder::vertical) && !tied(block);
  }
  /** The memory that a drive reads and writes. */
  Place drive_memory() const { return computes_on_host ? Place::device : Place::host; }
  /** The memory where the block's update reads and writes. */
  Place updates_in(int block) const {
    const Place place = blocks[block].place.updates();
    return place == Place::nvme ? drive_memory() : place;
  }
  /** Pieces of the block's weights on a drive: the same elements, and frozen ones behind them. */
  int n_weight_pieces(int block) const;
  bool grads_fp32(int block) const { return compute == DType::f32 || sums_grads() || tied(block); }
  bool has_peers() const { return ranks.world > 1; }
  /** Each rank has a part of each of its blocks, and ranks of other replicas have the others. */
  bool cuts_blocks() const { return ranks.n_replicas() > 1; }
  /** Each rank has some of the blocks, and other stages have the others. */
  bool deals_blocks() const { return ranks.n_stages > 1; }
  /** The rank runs passes of the block. */
  bool runs(int block, int rank) const {
    return !deals_blocks() || blocks[block].stage == ranks.stage_of(rank);
  }
  bool runs(int block) const { return runs(block, ranks.rank); }
  /** Ranks exchange sums of their own micro-batches' gradients, once a step. */
  bool exchanges_sums() const {
    return cuts_blocks() && reduction == Reduction::fast && n_micro_max > 1 &&
           order == AccumulationOrder::vertical;
  }
  /** The type of the gradients that ranks exchange. */
  DType exchanged_type() const { return exchanges_sums() ? DType::f32 : compute; }
  /** Ranks that share this one's host, itself among them. */
  int n_ranks_of_host() const {
    return n_ranks_per_host > 0 ? std::min(n_ranks_per_host, ranks.world) : ranks.world;
  }
  bool are_of_one_host(int rank, int other) const {
    return rank / n_ranks_of_host() == other / n_ranks_of_host();
  }
  /** A step may have several micro-batches, here or on other ranks. */
  bool sums_grads() const { return n_micro_max > 1 || cuts_blocks(); }
  /** The part of the block's trained prefix that the rank updates. */
  ElementRange part(int block, int rank) const {
    const int64_t n_trained = blocks[block].n_trained_elements;
    if (!runs(block, rank)) return {};
    return part_of(n_trained, ranks.replica_of(rank), ranks.n_replicas());
  }
  ElementRange own_part(int block) const { return part(block, ranks.rank); }
  /** The elements of a range that this rank has: its part of trained ones, all frozen ones. A range
   * is of one kind. */
  ElementRange held(int block, const ElementRange& range) const {
    if (range.begin < blocks[block].n_trained_elements) return common(range, own_part(block));
    return runs(block) ? range : ElementRange{range.begin, 0};
  }
  /** The frozen elements of the block that this rank has. */
  int64_t n_frozen(int block) const {
    return runs(block) ? blocks[block].n_elements - blocks[block].n_trained_elements : 0;
  }
  /** This rank updates some of the block. */
  bool updates_part(int block) const { return is_trained(block) && own_part(block).n > 0; }
  /** Elements of a weight slot with this block: its weights, then one region per borrowed tensor.
   */
  int64_t n_slot_elements(int block) const;
  /** Elements of the block's gradients: its trained prefix, then one region per borrowed tensor
   * that is trained. */
  int64_t n_grad_elements(int block) const;
  /** Element offset of borrowed tensor `i` in a weight slot. */
  int64_t borrowed_in_slot(int block, int i) const;
  /** Element offset of borrowed tensor `i` in the gradients; it is trained. */
  int64_t borrowed_in_grads(int block, int i) const;
  /** The elements of the owner's block that a rank has of borrowed tensor `i`. */
  ElementRange borrowed_part(int block, int i, int rank) const;
  /** Element offset of that part among a rank's gradients of the block, behind its own part. */
  int64_t borrowed_in_part(int block, int i, int rank) const;
  /** Elements of a rank's gradients of the block. */
  int64_t n_part_grad_elements(int block, int rank) const;
  const TensorExtent& borrowed_tensor(int block, int i) const;
  /** Weights of fp32 runs are the master copy itself. */
  bool weights_are_master() const { return compute == DType::f32; }
};

/** Deals the blocks to the stages in their shares: in turn in vertical order, and in horizontal
 * order so that each stage has n_chunks runs of blocks that follow each other, with about as many
 * elements. Blocks that share tensors go to one stage. */
void deal_blocks(StepShape& shape);

/** Makes a chain of the blocks: each reads the output of the one before, of so many bytes, and
 * gives its gradient back. */
void chain_blocks(StepShape& shape, int64_t n_bytes);

}  // namespace ferry
