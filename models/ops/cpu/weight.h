#pragma once
// A norm's weight as the CPU kernels read it (private to models/ops).

#include "models/ops/cpu/row_blocks.h"

namespace ferry::ops::cpu {

/** The weight with its offset, as fp32. */
class Weight {
 public:
  Weight(DType type, int64_t W, const void* weight, float offset)
      : rows_(type, W, weight), values_(rows_.read(0)) {
    if (offset == 0) return;
    with_offset_.assign(values_, values_ + W);
    for (float& x : with_offset_)
      x += offset;
    values_ = with_offset_.data();
  }
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;
  const float* values() const { return values_; }

 private:
  Rows rows_;
  std::vector<float> with_offset_;
  const float* values_;
};

}  // namespace ferry::ops::cpu
