#include "src/plan/search/move_states.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "offload/store/store_layout.h"
#include "src/base/bytes.h"
#include "src/plan/nvme_need.h"

namespace ferry {
namespace {

/** A store has no more segments, and a piece up to two of them, or three with gradients. */
constexpr int64_t kPieces_max = 700, kPiecesWithGrads_max = 480;
static_assert(2 * kPieces_max <= kSegments_max && 3 * kPiecesWithGrads_max <= kSegments_max);
/** Elements of a piece: in these steps, no larger than the store asks for beyond the last. */
constexpr int64_t kPiece_elements_least = 1 << 20, kPiece_elements_enough = 16 << 20;
/** The bytes that a drive could move while a piece begins: smaller pieces take longer. */
constexpr int64_t kPieceStart_bytes = 512 << 10;
/** Slots for pieces, and the number where there is no room for so many. */
constexpr int kStateSlots = 4, kStateSlots_least = 2;

/** 0 to n - 1 in an order whose first ones are spread evenly, however many one takes of them. */
std::vector<size_t> spread_order(size_t n) {
  const int n_bits = std::bit_width(n);
  std::vector<size_t> order;
  for (size_t i = 0; i < size_t{1} << n_bits; ++i) {
    size_t reversed = 0;
    for (int bit = 0; bit < n_bits; ++bit)
      reversed |= (i >> bit & 1) << (n_bits - 1 - bit);
    if (reversed < n) order.push_back(reversed);
  }
  return order;
}

using Group = std::vector<int>;

/** Groups of blocks whose states, or in a model that is not trained whose weights, are in host
 * memory, in the order in which they move: the last first, which the next forward needs last. */
std::vector<Group> movable_groups(const PlanRequest& request, const StepShape& shape) {
  // A CPU that updates states of a drive has all else in its one memory, the device's.
  const Place updated_on = request.has_gpu ? Place::host : Place::device;
  std::vector<Group> groups;
  for (Group group : groups_of(shape)) {
    std::erase_if(group, [&](int b) {
      const BlockPlacement& place = shape.blocks[b].place;
      return (request.trains && !shape.is_trained(b)) || place.updates() != updated_on;
    });
    if (!group.empty()) groups.push_back(std::move(group));
  }
  std::ranges::reverse(groups);
  std::vector<Group> ordered;
  int64_t n_blocks = 0;  // each has a piece at least
  for (size_t g : spread_order(groups.size())) {
    n_blocks += std::ssize(groups[g]);
    if (n_blocks > kPieces_max) break;
    ordered.push_back(std::move(groups[g]));
  }
  return ordered;
}

/** The memory through which states pass. */
struct Window {
  int64_t piece_elements = 0;
  int n_slots = 0;
};

/** The largest first. With each of them all groups may move, in so many pieces at most. */
std::vector<Window> windows_of(const StepShape& shape,
                               const std::vector<Group>& groups,
                               int64_t n_pieces_max) {
  const auto n_pieces = [&](int64_t piece_elements) {
    int64_t n = 0;
    for (const Group& group : groups)
      for (int b : group)
        n += (shape.blocks[b].n_elements + piece_elements - 1) / piece_elements;
    return n;
  };
  int64_t least = kPiece_elements_least;
  while (n_pieces(least) > n_pieces_max)
    least += round_up(least / 16, kPiece_elements_least);
  std::vector<Window> windows = {{least, kStateSlots_least}, {least, kStateSlots}};
  for (int64_t elements = 2 * least; elements <= kPiece_elements_enough; elements *= 2)
    windows.push_back({elements, kStateSlots});
  std::ranges::reverse(windows);
  return windows;
}

/** By block: it shares tensors with another, trained or not. */
std::vector<bool> sharers(const StepShape& shape) {
  std::vector<bool> shares(shape.blocks.size(), false);
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (const BorrowedExtent& borrowed : shape.blocks[b].borrowed)
      shares[static_cast<size_t>(b)] = shares[static_cast<size_t>(borrowed.block)] = true;
  return shares;
}

/** Bytes that the drive moves in a step, and could move in the meantime. */
int64_t traffic_of(const StepShape& shape) {
  const NvmeNeed need = nvme_need_of(shape, kNvmeCopies_least);
  return need.read_bytes + need.written_bytes + 2 * kPieceStart_bytes * need.n_pieces;
}

/** Tries what moves. */
class Mover {
 public:
  Mover(const PlanRequest& request, Plan& plan, Search& search)
      : request_(request),
        plan_(plan),
        search_(search),
        groups_(movable_groups(request, plan.shape)),
        memory_(request.has_gpu ? Place::host : Place::device),
        n_grad_slots_(plan.shape.n_grad_slots) {
    if (plan.shape.cuts_blocks()) return;  // their weights and gradients stay in memory
    const std::vector<bool> shares = sharers(plan.shape);
    int64_t n_blocks = 0;
    for (const Group& group : groups_)
      for (int b : group) {
        ++n_blocks;
        if (shares[static_cast<size_t>(b)]) continue;
        // Passes read weights of a drive in slots.
        if (const Place weights = block(b).place.weights;
            !request.has_gpu || weights != Place::device) {
          weights_.push_back(b);
          weights_stay_.push_back(weights);
        }
        if (plan.shape.is_trained(b) && plan.shape.may_write_grads(b)) grads_.push_back(b);
      }
    if (n_blocks > kPiecesWithGrads_max) grads_.clear();
    // A CPU has a slot as large as the largest of them: the small ones first.
    if (!request.has_gpu)
      std::ranges::stable_sort(grads_, {}, [&](int b) { return block(b).n_trained_elements; });
  }

  Shortfall go() {
    const bool moves_all = request_.placement == Place::nvme;
    const std::vector<Window> windows = windows_of(plan_.shape, groups_, kPieces_max);
    Moved moved = {.window = windows.back(), .n_states = groups_.size()};
    if (const auto best = best_of(windows, moved, &Moved::n_states, groups_.size(), moves_all))
      return lacking_with(*best);
    if (move_fewest(moved, &Moved::n_weights, weights_.size()) || grads_.empty())
      return lacking_with(moved);
    // Weights that moved take slots of a CPU: it may have more room with them in its memory.
    const std::vector<Window> with_grads = windows_of(plan_.shape, groups_, kPiecesWithGrads_max);
    for (const size_t n_weights : {weights_.size(), size_t{0}})
      if (const auto best =
              best_of(with_grads, {.n_states = groups_.size(), .n_weights = n_weights},
                      &Moved::n_grads, grads_.size(), /*moves_all=*/false))
        return lacking_with(*best);
    return lacking_with(moved);
  }

 private:
  /** A window, and the numbers of what passes through it. */
  struct Moved {
    Window window;
    size_t n_states = 0;   ///< groups
    size_t n_weights = 0;  ///< blocks
    size_t n_grads = 0;    ///< blocks
  };

  BlockShape& block(int b) { return plan_.shape.blocks[b]; }

  Shortfall lacking_with(const Moved& moved) {
    StepShape& shape = plan_.shape;
    shape.state_piece_elements = moved.window.piece_elements;
    shape.n_state_slots = moved.window.n_slots;
    plan_.n_on_nvme = 0;
    for (size_t g = 0; g < groups_.size(); ++g)
      for (int b : groups_[g]) {
        block(b).place.states = g < moved.n_states ? Place::nvme : memory_;
        plan_.n_on_nvme += g < moved.n_states && shape.is_trained(b);
      }
    for (size_t i = 0; i < weights_.size(); ++i)
      block(weights_[i]).place.weights = i < moved.n_weights ? Place::nvme : weights_stay_[i];
    plan_.n_weights_on_nvme = static_cast<int>(moved.n_weights);
    for (size_t i = 0; i < grads_.size(); ++i)
      block(grads_[i]).place.grads = i < moved.n_grads ? Place::nvme : memory_;
    plan_.n_grads_on_nvme = static_cast<int>(moved.n_grads);
    // A CPU waits for its drive: a second slot would gain nothing.
    shape.n_grad_slots = moved.n_grads > 0 && !request_.has_gpu ? 1 : n_grad_slots_;
    return fit(request_, shape, search_);
  }
  bool fits(const Moved& moved) { return lacking_with(moved).host_bytes == 0; }

  /** Makes the count the fewest of `most` with which the rest fits; false, and all of them, where
   * even these are too few. */
  bool move_fewest(Moved& moved, size_t Moved::*count, size_t most) {
    moved.*count = most;
    if (!fits(moved)) return false;
    moved.*count = most - most_possible(0, most, [&](size_t n_kept) {
                     Moved fewer = moved;
                     fewer.*count = most - n_kept;
                     return fits(fewer);
                   });
    return true;
  }

  /** The window with which the drive has least to do, and the fewest of `most` with it, or all of
   * them; nothing where none fits. */
  std::optional<Moved> best_of(const std::vector<Window>& windows,
                               Moved moved,
                               size_t Moved::*count,
                               size_t most,
                               bool moves_all) {
    std::optional<Moved> best;
    int64_t least_traffic = INT64_MAX;
    for (const Window& window : windows) {
      moved.window = window;
      if (!move_fewest(moved, count, most)) continue;
      if (moves_all) moved.*count = most;
      lacking_with(moved);
      const int64_t traffic = traffic_of(plan_.shape);
      // The one with two slots comes last: it is for where there is no room for more.
      if (traffic >= least_traffic || (window.n_slots < kStateSlots && best)) continue;
      best = moved;
      least_traffic = traffic;
    }
    return best;
  }

  const PlanRequest& request_;
  Plan& plan_;
  Search& search_;
  const std::vector<Group> groups_;
  const Place memory_;  ///< where what does not move is updated
  const int n_grad_slots_;
  /** Blocks that may move theirs, in the order in which they do. */
  std::vector<int> weights_, grads_;
  std::vector<Place> weights_stay_;  ///< by these: where weights are that do not move
};

}  // namespace

bool may_use_nvme(const PlanRequest& request) {
  const int n_kept = request.n_nvme_copies - kNvmeCopies_least;
  return request.has_nvme && n_kept >= 0 && n_kept <= kKept_max &&
         request.placement.value_or(Place::nvme) == Place::nvme;
}

Shortfall move_states(const PlanRequest& request, Plan& plan, Search& search) {
  return Mover(request, plan, search).go();
}

}  // namespace ferry
