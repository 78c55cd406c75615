#pragma once
// Micro-batches cut by their tokens, for ranks that share these.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "src/engine/host_batch.h"

namespace ferry {

class TokenParts {
 public:
  /** The parts of each micro-batch for `sp_size` ranks, one micro-batch after the other; 1: the
   * micro-batches themselves. All show memory of these and of this object. In a step the first part
   * counts the label items of its micro-batch. In an evaluation each part counts all of them, so
   * that the losses of the parts add up to the micro-batch's. */
  TokenParts(std::span<const HostBatch> micro_batches, int sp_size, bool evaluates);
  std::span<const HostBatch> batches() const { return batches_; }

 private:
  HostBatch part_of(const HostBatch& whole, int64_t first_token, int sp_size);
  std::span<const int32_t> keep(std::vector<int32_t> values);

  std::vector<HostBatch> own_;
  std::deque<std::vector<int32_t>> kept_;
  std::span<const HostBatch> batches_;
};

}  // namespace ferry
