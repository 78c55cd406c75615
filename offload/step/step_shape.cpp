#include "offload/step/step_shape.h"

#include <algorithm>

#include "src/base/bytes.h"

namespace ferry {

namespace {
constexpr int64_t kExtentAlignment_elements = 256;
}

bool StepShape::is_trained(int block) const {
  return trains && blocks[static_cast<size_t>(block)].n_trained_elements > 0;
}

bool StepShape::has_grads(int block) const {
  if (is_trained(block)) return true;
  const BlockShape& b = blocks[static_cast<size_t>(block)];
  for (int i = 0; i < static_cast<int>(b.borrowed.size()); ++i)
    if (trains && borrowed_tensor(block, i).trainable) return true;
  return false;
}

int StepShape::first_backward() const {
  int block = 0;
  while (block < n_blocks() && !has_grads(block))
    ++block;
  return block;
}

bool StepShape::layer_input_in_slots(int block) const {
  return layer_inputs_on_host && block < n_blocks() - 1 && block + 1 >= first_backward();
}

bool StepShape::layer_input_on_host(int block) const {
  // There must be room for all outputs of one block and an input before outputs of any block can
  // stay.
  const int n_staying = n_layer_input_slots > n_live() ? n_layer_input_slots / n_live() : 0;
  return layer_input_in_slots(block) && block < n_blocks() - 1 - n_staying;
}

bool StepShape::tied(int block) const {
  for (int user = 0; user < n_blocks(); ++user) {
    const auto n_borrowed = static_cast<int>(blocks[static_cast<size_t>(user)].borrowed.size());
    for (int i = 0; i < n_borrowed; ++i) {
      const int owner = blocks[static_cast<size_t>(user)].borrowed[static_cast<size_t>(i)].block;
      if ((user == block || owner == block) && borrowed_tensor(user, i).trainable) return true;
    }
  }
  return false;
}

bool StepShape::sums_on_host(int block) const {
  if (blocks[static_cast<size_t>(block)].place != Place::host) return false;
  if (order != AccumulationOrder::horizontal || !has_grads(block)) return false;
  return n_micro_max > 1 || (tied(block) && compute != DType::f32);
}

bool StepShape::sums_on_gpu(int block) const {
  if (sums_on_host(block) || !has_grads(block)) return false;
  return n_micro_max > 1 || (tied(block) && compute != DType::f32);
}

const TensorExtent& StepShape::borrowed_tensor(int block, int i) const {
  const BorrowedExtent& b = blocks[static_cast<size_t>(block)].borrowed[static_cast<size_t>(i)];
  return blocks[static_cast<size_t>(b.block)].tensors[static_cast<size_t>(b.tensor)];
}

int64_t StepShape::borrowed_in_slot(int block, int i) const {
  int64_t offset = blocks[static_cast<size_t>(block)].n_elements;
  for (int k = 0; k < i; ++k)
    offset += round_up(borrowed_tensor(block, k).n_elements, kExtentAlignment_elements);
  return offset;
}

int64_t StepShape::borrowed_in_grads(int block, int i) const {
  int64_t offset = blocks[static_cast<size_t>(block)].n_trained_elements;
  for (int k = 0; k < i; ++k)
    if (const TensorExtent& tensor = borrowed_tensor(block, k); tensor.trainable)
      offset += round_up(tensor.n_elements, kExtentAlignment_elements);
  return offset;
}

int64_t StepShape::n_slot_elements(int block) const {
  return borrowed_in_slot(block,
                          static_cast<int>(blocks[static_cast<size_t>(block)].borrowed.size()));
}

int64_t StepShape::n_grad_elements(int block) const {
  return borrowed_in_grads(block,
                           static_cast<int>(blocks[static_cast<size_t>(block)].borrowed.size()));
}

}  // namespace ferry
