#pragma once
// The place of every byte of a run: one reservation a place, cut into tagged regions by a pure
// function of the step's shape. `ferry plan` prints this object, the arenas allocate it, and the
// out-of-memory message names its regions. Nothing of 1 MiB or more is allocated outside
// it once a run has started.

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "offload/step/action.h"
#include "offload/step/step_shape.h"

namespace ferry {

struct Region {
  Tag tag{};
  Place place{};
  std::string name;     ///< "layer.3 grads"
  int64_t offset = 0;   ///< bytes from the start of the place's reservation
  int64_t n_bytes = 0;  ///< a multiple of 512: the regions of a place add up to its reservation
};

/** A block's buffer of one kind; the states are those of the optimizer, in the order of its row. */
enum class Segment : uint8_t { weights, grads, master, state_0, state_1 };
inline constexpr int kSegments = 3 + simd::kStates_max;
template <class T>
using PerSegment = PerEnum<Segment, T, kSegments>;
constexpr bool is_state(Segment segment) {
  return segment >= Segment::state_0;
}
/** Which of the optimizer's states it is. */
constexpr size_t state_index(Segment segment) {
  return static_cast<size_t>(segment) - static_cast<size_t>(Segment::state_0);
}
/** The segments of an optimizer's states. */
std::span<const Segment> state_segments(simd::Optim optim);
/** The master and these: what a checkpoint holds. */
std::span<const Segment> saved_segments(simd::Optim optim);
/** The weights and these: what lasts from step to step. */
std::span<const Segment> lasting_segments(simd::Optim optim);
/** "master"; of a state as the optimizer's row has it, and files. */
std::string_view name_of(Segment segment, simd::Optim optim);

/** A block's part of a layout, and what was decided of it once: passes, gradients and updates
 * follow this, whoever makes, times or runs them. */
struct BlockLayout {
  PerSegment<RegionId> segments{-1, -1, -1, -1, -1};  ///< weights of fp32 runs: master
  /** A slot of the block's own for weights that stay on the device while the host updates them;
   * laid out as any weight slot. -1: passes read the segment or a slot. */
  RegionId own_slot = -1;
  bool streams = false;                ///< its weights go through weight slots
  int n_state_pieces = 0;              ///< of states on a drive; 0: they do not live there
  bool writes_grads_to_drive = false;  ///< as they arrive; in these pieces
  bool reads_weights = false;          ///< from a drive, into weight slots
  bool grads_on_host = false;          ///< final ones
  bool grads_reach_host = false;       ///< these, or those that go on to a drive from there
  bool updates_on_host = false;
  bool sends_weights = false;  ///< updated in a weight slot of the device, whose home is the host
  bool is_trained = false;
  bool has_grads = false;
  bool is_tied = false;
  /** Each micro-batch's gradients are added into an fp32 sum: in host memory, or on the device. */
  bool sums_on_host = false, sums_on_device = false;
  DType grad_type{};  ///< type of the final gradients
  int64_t n_slot_elements = 0, n_grad_elements = 0;
  /** keep where nothing is saved for a backward pass, or nothing of it is recomputed. */
  Activations activations{};
};

struct Layout {
  Indexed<Region> regions;
  PerPlace<int64_t> n_bytes{};  ///< reservation of each place
  /** The bytes of the host's reservation that may be an end of a copy to or from the device: these
   * alone need be pinned. Others are the CPU's: states that it updates, and slots of a drive. */
  ByteRange copied_on_host;

  Indexed<BlockLayout> blocks;
  int first_backward = 0;  ///< blocks before it have no backward
  std::vector<RegionId> weight_slots;
  std::vector<RegionId> state_slots;  ///< states of a drive on their way, where they are updated
  /** States between steps and for checkpoints, beside a step's slots. */
  RegionId state_window = -1;
  std::vector<RegionId> weight_windows;  ///< host: blocks' weights on their way from a drive
  std::vector<RegionId> grad_windows;    ///< host: pieces of gradients on their way to a drive
  std::vector<RegionId> grad_slots;
  RegionId grad_temp = -1;  ///< gradients of one micro-batch before they are summed on the GPU
  std::vector<RegionId> grad_staging;  ///< per gradient slot, host
  /** Per gradient slot: all replicas' gradients of this rank's part, by replica. */
  std::vector<RegionId> grad_parts;
  /** As many as gradient slots: their sum, until it is whole and leaves for the host. */
  std::vector<RegionId> grad_sums;
  /** A use's gradient of a borrowed tensor on its way to a sum in the other memory. */
  RegionId borrowed_on_device = -1, borrowed_on_host = -1;
  std::vector<RegionId> saved;     ///< [block * n_live + live]: kept; -1 else
  RegionId saved_recomputed = -1;  ///< recomputed activations of one block at a time
  std::vector<RegionId> saved_slots;
  std::vector<RegionId> saved_on_host;   ///< [block * n_live + live]
  std::vector<RegionId> values;          ///< [value * n_live + live]; -1: in value slots
  std::vector<RegionId> values_on_host;  ///< the same; -1: never leaves the device
  std::vector<RegionId> discarded;       ///< the same: where a recomputation writes it for nobody
  std::vector<RegionId> value_slots;
  RegionId scratch = -1;
  RegionId library = -1;
  RegionId generation = -1;       ///< keys and values of blocks, last tokens' logits
  std::vector<RegionId> batches;  ///< per micro-batch
  std::vector<RegionId> batches_on_host;
  RegionId save_buffer = -1;  ///< host: a checkpoint's bytes on their way to the disk
  RegionId step_sums = -1;    ///< losses and square sums of a step, GPU
  RegionId step_sums_on_host = -1;
  RegionId arrived_sums = -1;  ///< host, fp64 by block: square sums that came with the gradients

  const Region& region(RegionId id) const { return regions[id]; }
  const BlockLayout& block(int b) const { return blocks[b]; }
  RegionId segment(int b, Segment s) const { return block(b).segments[s]; }
  /** Bytes of a tag in a place. */
  int64_t bytes_of(Tag tag, Place place) const;
};

/** Element type of a block's segment; of states in 8 bits that of their codes. A split master's is
 * fp32, of whose bytes the segment has half. */
DType segment_dtype(const StepShape& shape, int block, Segment segment);

/** Elements of a block's segment: the weights have all of the block's, the others its trained
 * prefix (gradients of what it borrows behind that; the master of fp32 runs is the weights). Where
 * there are several ranks a segment has this rank's part of the trained prefix alone. */
int64_t segment_elements(const StepShape& shape, int block, Segment segment);
/** Bytes of a segment: with 8-bit states the codes, then the exponents. */
int64_t segment_bytes(const StepShape& shape, int block, Segment segment);
/** True where the segment holds elements of this tensor of the block: frozen ones have weights
 * alone. */
bool is_in_segment(const StepShape& shape, Segment segment, const TensorExtent& tensor);

/** The bytes of elements [begin, begin + n) of the block, which the segment has. */
ByteRange element_bytes(
    const StepShape& shape, int block, Segment segment, int64_t begin, int64_t n);
/** A rank's part of a range of a segment's bytes. */
struct RankPart {
  int rank = 0;
  int64_t offset = 0;  ///< in the rank's segment
  int64_t done = 0;    ///< bytes of the range before it
  int64_t n_bytes = 0;
  bool is_copy = false;  ///< another rank has these bytes, too, and comes before this one
};
/** Calls `each` with the parts of a range of bytes, which are counted as one rank has the segment.
 * Frozen elements are a part of each rank that runs the block. */
void for_rank_parts(const StepShape& shape,
                    int block,
                    Segment segment,
                    const ByteRange& range,
                    const std::function<void(const RankPart&)>& each);

/** The bytes of n elements there. */
int64_t bytes_of_elements(const StepShape& shape, int block, Segment segment, int64_t n);
/** The bytes of the exponents of a tensor's 8-bit states in a segment of these, as far as the
 * segment has the tensor. */
ByteRange exponent_bytes(const StepShape& shape, int block, const TensorExtent& tensor);
/** Their offset in the segment. */
int64_t exponents_offset(const StepShape& shape, int block);

/** Slots of the step-sums vector (fp64): square sums by block, then [micro-batch][part] losses. A
 * block has one sum; where there are several ranks, one for each chunk of this rank's part. */
int sum_slot(const StepShape& shape, int block);
int n_sum_slots(const StepShape& shape, int block);
inline int loss_slot(const StepShape& shape, int micro, int part) {
  return sum_slot(shape, shape.n_blocks()) + micro * shape.n_losses() + part;
}
inline int64_t step_sums_bytes(const StepShape& shape) {
  return loss_slot(shape, shape.n_micro_max, 0) * static_cast<int64_t>(sizeof(double));
}

Layout make_layout(const StepShape& shape);

/** The offset in the host's reservation where its pinned part ends, if at most `pinned_bytes_max`
 * are pinned. Copies of the bytes from there to the end of copied_on_host go through the ring. */
int64_t pinned_end(const Layout& layout, int64_t pinned_bytes_max);
/** True where some of these bytes are not pinned. */
bool needs_ring(const Layout& layout, int64_t pinned_bytes_max);
/** The bytes of a move that go through the ring. */
int64_t ring_bytes_of(const Layout& layout, const Action& action, int64_t pinned_end);

/** The bytes that a layout would take. */
struct LayoutBytes {
  PerPlace<int64_t> n_bytes{};    ///< as Layout's
  int64_t save_buffer_bytes = 0;  ///< the part of these for a checkpoint's bytes on their way
};
/** The bytes of make_layout(), without its regions: a search asks for thousands. Where the blocks
 * are split over ranks, each is the most that a rank has. */
LayoutBytes layout_bytes(const StepShape& shape);
/** The same of the shape's rank alone. */
LayoutBytes layout_bytes_of_rank(const StepShape& shape);

}  // namespace ferry
