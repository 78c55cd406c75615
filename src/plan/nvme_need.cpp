#include "src/plan/nvme_need.h"

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

NvmeNeed nvme_need_of(const StepShape& shape, int n_copies) {
  NvmeNeed need;
  for (int b = 0; b < shape.n_blocks(); ++b) {
    const int n_pieces = n_drive_pieces(shape, b);
    const int n_reads = n_reads_of_weights(shape, b);
    need.n_blocks += n_pieces > 0;
    need.n_pieces += n_pieces;
    for (int piece = 0; piece < n_pieces; ++piece) {
      const StateRecord record = state_record(shape, b, piece);
      need.read_bytes += n_reads * (record.n_bytes - record.states_bytes);
      if (record.n_elements == 0) continue;  // frozen: written once
      need.read_bytes += record.update_bytes;
      need.written_bytes += record.n_bytes;
    }
  }
  if (need.n_pieces == 0) return need;
  const int n_kept = n_copies - kNvmeCopies_least;
  const std::vector<StoredSegment> segments = StateStore::segments_of(shape);
  need.store_bytes = StoreLayout::fault_in(segments, n_kept) ? 2 * kStore_bytes_max
                                                             : store_bytes(segments, n_kept);
  need.window_bytes = (shape.n_state_slots + 1) * state_slot_bytes(shape);
  return need;
}

}  // namespace ferry
