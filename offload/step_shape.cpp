#include "offload/step_shape.h"

#include <algorithm>

#include "src/base/bytes.h"

namespace ferry {

namespace {
constexpr int64_t kExtentAlignment_elements = 256;
}

bool StepShape::tied(int block) const {
  if (!blocks[static_cast<size_t>(block)].borrowed.empty()) return true;
  return std::any_of(blocks.begin(), blocks.end(), [block](const BlockShape& other) {
    return std::any_of(other.borrowed.begin(), other.borrowed.end(),
                       [block](const BorrowedExtent& b) { return b.block == block; });
  });
}

bool StepShape::sums_on_host(int block) const {
  if (blocks[static_cast<size_t>(block)].place != Place::host) return false;
  if (order != AccumulationOrder::horizontal) return false;
  return n_micro_max > 1 || (tied(block) && compute != DType::f32);
}

bool StepShape::sums_on_gpu(int block) const {
  if (sums_on_host(block)) return false;
  return n_micro_max > 1 || (tied(block) && compute != DType::f32);
}

const TensorExtent& StepShape::borrowed_tensor(int block, int i) const {
  const BorrowedExtent& b = blocks[static_cast<size_t>(block)].borrowed[static_cast<size_t>(i)];
  return blocks[static_cast<size_t>(b.block)].tensors[static_cast<size_t>(b.tensor)];
}

int64_t StepShape::borrowed_offset(int block, int i) const {
  int64_t offset = blocks[static_cast<size_t>(block)].n_elements;
  for (int k = 0; k < i; ++k)
    offset += round_up(borrowed_tensor(block, k).n_elements, kExtentAlignment_elements);
  return offset;
}

int64_t StepShape::n_grad_elements(int block) const {
  return borrowed_offset(block,
                         static_cast<int>(blocks[static_cast<size_t>(block)].borrowed.size()));
}

}  // namespace ferry
