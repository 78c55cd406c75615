#include "src/plan/nvme_need.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "offload/store/state_store.h"

namespace ferry {
namespace {

/** Passes of a step that read the block's weights from a drive. */
int n_reads_of_weights(const StepShape& shape, int block) {
  if (shape.n_weight_pieces(block) == 0) return 0;
  const bool has_backward = shape.trains && block >= shape.first_backward();
  const int n_micro = shape.order == AccumulationOrder::vertical ? 1 : shape.n_micro_max;
  return (has_backward ? 2 : 1) * n_micro;
}

}  // namespace

std::string contents_text(const NvmeNeed& need, bool with_grads) {
  std::vector<std::string_view> kinds;
  if (need.has_states) kinds.push_back("states");
  if (need.has_weights) kinds.push_back("weights");
  if (need.grad_bytes > 0 && with_grads) kinds.push_back("gradients");
  if (kinds.empty()) return {};
  const std::string_view last = kinds.back();
  kinds.pop_back();
  return kinds.empty() ? std::string(last) : fmt::format("{} and {}", fmt::join(kinds, ", "), last);
}

NvmeNeed nvme_need_of(const StepShape& shape, int n_copies) {
  NvmeNeed need;
  for (int b = 0; b < shape.n_blocks(); ++b) {
    const int n_pieces = n_drive_pieces(shape, b);
    const int n_reads = n_reads_of_weights(shape, b);
    need.n_blocks += n_pieces > 0;
    need.has_states |= shape.n_state_pieces(b) > 0;
    need.has_weights |= shape.n_weight_pieces(b) > 0;
    need.n_pieces += n_pieces;
    for (int piece = 0; piece < n_pieces; ++piece) {
      const StateRecord record = state_record(shape, b, piece);
      need.read_bytes += n_reads * (record.n_bytes - record.states_bytes);
      if (record.n_elements == 0) continue;  // frozen: written once
      need.grad_bytes += record.grads_bytes();
      need.read_bytes += record.update_bytes;
      need.written_bytes += record.n_bytes;
    }
  }
  if (need.n_pieces == 0) return need;
  need.read_bytes += need.grad_bytes;
  need.written_bytes += need.grad_bytes;
  const int n_kept = n_copies - kNvmeCopies_least;
  const std::vector<StoredSegment> segments = StateStore::segments_of(shape);
  need.store_bytes = StoreLayout::fault_in(segments, n_kept) ? 2 * kStore_bytes_max
                                                             : store_bytes(segments, n_kept);
  need.window_bytes = shape.n_state_slots * state_slot_bytes(shape) + state_record_bytes(shape);
  if (!shape.computes_on_host) need.window_bytes += shape.n_grad_windows * grad_piece_bytes(shape);
  return need;
}

}  // namespace ferry
