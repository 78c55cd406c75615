// Rotary positions on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/rotary/rotary.h"

namespace ferry::ops::cpu {
namespace {

void rotate(const Rotate& its, const Launch&) {
  const RowKernels& kernels = row_kernels();
  const int64_t half = its.head_width / 2;
  for_row_blocks(its.T, its.n_rotated * its.head_width, [&](int64_t, int64_t begin, int64_t end) {
    Rows heads(its.type, its.head_width, its.x);
    std::vector<float> cos(static_cast<size_t>(half)), sin(cos.size());
    for (int64_t t = begin; t < end; t++) {
      kernels.angles(cos.data(), sin.data(), its.frequencies,
                     static_cast<float>(its.position_ids[t]), half);
      for (int64_t row = t * its.n_heads; row < t * its.n_heads + its.n_rotated; row++) {
        heads.read(row);
        kernels.rotate(heads.write(row), cos.data(), sin.data(), its.back, half);
        heads.wrote(row);
      }
    }
  });
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::RotaryKernels ferry::ops::kCpuRotary = {.rotate = cpu::rotate};
