// Rotary positions on the CPU.

#include "models/core/long_position.h"
#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/rotary/rotary.h"

namespace ferry::ops::cpu {
namespace {

void rotate(const Rotate& its, const Launch&) {
  const RowKernels& kernels = row_kernels();
  const int64_t n_pairs = its.n_pairs;
  const auto turn = its.interleaved ? kernels.rotate_neighbours : kernels.rotate;
  for_row_blocks(its.T, its.n_rotated * its.head_width, [&](int64_t, int64_t begin, int64_t end) {
    Rows heads(its.type, its.head_width, its.x);
    std::vector<float> cos(static_cast<size_t>(n_pairs)), sin(cos.size());
    for (int64_t t = begin; t < end; t++) {
      const int32_t id = its.position_ids[t];
      const bool is_long = its.long_frequencies && (id & kLongPosition);
      kernels.angles(cos.data(), sin.data(), is_long ? its.long_frequencies : its.frequencies,
                     static_cast<float>(is_long ? id - kLongPosition : id), n_pairs);
      if (its.factor != 1) {
        for (std::vector<float>* x : {&cos, &sin})
          for (float& value : *x)
            value *= its.factor;
      }
      for (int64_t row = t * its.n_heads; row < t * its.n_heads + its.n_rotated; row++) {
        heads.read(row);
        turn(heads.write(row), cos.data(), sin.data(), its.back, n_pairs);
        heads.wrote(row);
      }
    }
  });
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::RotaryKernels ferry::ops::kCpuRotary = {.rotate = cpu::rotate};
