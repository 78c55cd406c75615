// Parts of stored matrices on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/linear/stored.h"

namespace ferry::ops::cpu {
namespace {

void read_tile(const ReadTile& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const StoredMatrix& matrix = its.matrix;
  const auto* codes = static_cast<const std::byte*>(its.stored);
  const auto* scales = reinterpret_cast<const float*>(codes + matrix.scales_begin);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows out(type, W, its.out);
    for (int64_t t = begin; t < end; t++) {
      const int64_t row = its.first_row + t;
      dequantise(matrix, codes + row * matrix.row_bytes, scales + row * matrix.row_scales,
                 its.first_column, {out.write(t), static_cast<size_t>(W)});
      out.wrote(t);
    }
  });
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::StoredKernels ferry::ops::kCpuStored = {.read_tile = cpu::read_tile};
