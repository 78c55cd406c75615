#pragma once
// The parts of micro-batches, for ranks that share these.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "src/engine/host_batch.h"

namespace ferry {

class MicroBatchParts {
 public:
  /** The parts of each micro-batch for the ranks that share it, one micro-batch after the other; of
   * one rank, the micro-batches themselves. They are cut by tokens, or where ranks share layers all
   * the same. All show memory of these and of this object. In a step the first part
   * counts the label items of its micro-batch. In an evaluation each part counts all of them, so
   * that the losses of the parts add up to the micro-batch's. */
  MicroBatchParts(std::span<const HostBatch> micro_batches, const Sharing& sharing, bool evaluates);
  std::span<const HostBatch> batches() const { return batches_; }

 private:
  HostBatch part_of(const HostBatch& whole, int64_t first_token, int sp_size);
  std::span<const int32_t> keep(std::vector<int32_t> values);

  std::vector<HostBatch> own_;
  std::deque<std::vector<int32_t>> kept_;
  std::span<const HostBatch> batches_;
};

}  // namespace ferry
