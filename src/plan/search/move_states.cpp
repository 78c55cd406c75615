#include "src/plan/search/move_states.h"

#include <algorithm>
#include <bit>

#include "offload/store/store_layout.h"
#include "src/base/bytes.h"
#include "src/plan/nvme_need.h"

namespace ferry {
namespace {

/** A store has no more segments, and a piece up to two of them. */
constexpr int64_t kPieces_max = 700;
static_assert(2 * kPieces_max <= kSegments_max);
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
      const BlockPlacement& place = shape.blocks[static_cast<size_t>(b)].place;
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

/** The largest first. With each of them all groups may move. */
std::vector<Window> windows_of(const StepShape& shape, const std::vector<Group>& groups) {
  const auto n_pieces = [&](int64_t piece_elements) {
    int64_t n = 0;
    for (const Group& group : groups)
      for (int b : group)
        n +=
            (shape.blocks[static_cast<size_t>(b)].n_elements + piece_elements - 1) / piece_elements;
    return n;
  };
  int64_t least = kPiece_elements_least;
  while (n_pieces(least) > kPieces_max)
    least += round_up(least / 16, kPiece_elements_least);
  std::vector<Window> windows = {{least, kStateSlots_least}, {least, kStateSlots}};
  for (int64_t elements = 2 * least; elements <= kPiece_elements_enough; elements *= 2)
    windows.push_back({elements, kStateSlots});
  std::ranges::reverse(windows);
  return windows;
}

/** True where the block's weights may lie on a drive: another has none of its tensors, and passes
 * read them in slots. */
bool may_move_weights(const PlanRequest& request, const StepShape& shape, const Group& group) {
  const Place weights = shape.blocks[static_cast<size_t>(group.front())].place.weights;
  return group.size() == 1 && (!request.has_gpu || weights != Place::device);
}

/** Bytes that the drive moves in a step, and could move in the meantime. */
int64_t traffic_of(const StepShape& shape) {
  const NvmeNeed need = nvme_need_of(shape, kNvmeCopies_least);
  return need.read_bytes + need.written_bytes + 2 * kPieceStart_bytes * need.n_pieces;
}

}  // namespace

bool may_use_nvme(const PlanRequest& request) {
  const int n_kept = request.n_nvme_copies - kNvmeCopies_least;
  return request.has_nvme && n_kept >= 0 && n_kept <= kKept_max &&
         request.placement.value_or(Place::nvme) == Place::nvme;
}

Shortfall move_states(const PlanRequest& request, Plan& plan, Search& search) {
  StepShape& shape = plan.shape;
  const std::vector<Group> groups = movable_groups(request, shape);
  const auto lacking_with = [&](const Window& window, size_t n_moved) {
    shape.state_piece_elements = window.piece_elements;
    shape.n_state_slots = window.n_slots;
    plan.n_on_nvme = 0;
    for (size_t g = 0; g < groups.size(); ++g)
      for (int b : groups[g]) {
        BlockPlacement& place = shape.blocks[static_cast<size_t>(b)].place;
        place.states = g < n_moved ? Place::nvme : place.grads;
        plan.n_on_nvme += g < n_moved && shape.is_trained(b);
      }
    return fit(request, shape, search);
  };
  /** Moves the weights of as few groups as needed, of those that may go. */
  const auto move_weights = [&] {
    std::vector<int> blocks;
    for (const Group& group : groups)
      if (may_move_weights(request, shape, group)) blocks.push_back(group.front());
    std::vector<Place> stay;
    for (int b : blocks)
      stay.push_back(shape.blocks[static_cast<size_t>(b)].place.weights);
    const auto lacking_without = [&](size_t n) {
      for (size_t i = 0; i < blocks.size(); ++i)
        shape.blocks[static_cast<size_t>(blocks[i])].place.weights = i < n ? Place::nvme : stay[i];
      return fit(request, shape, search);
    };
    const size_t n_kept = most_possible(0, blocks.size(), [&](size_t n) {
      return lacking_without(blocks.size() - n).host_bytes == 0;
    });
    plan.n_weights_on_nvme = static_cast<int>(blocks.size() - n_kept);
    return lacking_without(blocks.size() - n_kept);
  };
  const bool moves_all = request.placement == Place::nvme;
  Window best;
  size_t n_moved = groups.size();
  int64_t least_traffic = INT64_MAX;
  for (const Window& window : windows_of(shape, groups)) {
    best = least_traffic == INT64_MAX ? window : best;  // nothing fits: the smallest
    if (lacking_with(window, groups.size()).host_bytes > 0) continue;
    const size_t n_kept = moves_all ? 0 : most_possible(0, groups.size(), [&](size_t n) {
      return lacking_with(window, groups.size() - n).host_bytes == 0;
    });
    lacking_with(window, groups.size() - n_kept);
    const int64_t traffic = traffic_of(shape);
    // The one with two slots comes last: it is for where there is no room for more.
    if (traffic >= least_traffic || (window.n_slots < kStateSlots && least_traffic < INT64_MAX))
      continue;
    best = window;
    n_moved = groups.size() - n_kept;
    least_traffic = traffic;
  }
  const Shortfall lacking = lacking_with(best, n_moved);
  return lacking.host_bytes > 0 ? move_weights() : lacking;
}

}  // namespace ferry
