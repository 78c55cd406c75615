// Tiles of stored matrices on the CPU.

#include "models/core/nested_scales.h"
#include "models/ops/cpu/row_blocks.h"
#include "models/ops/linear/stored.h"

namespace ferry::ops::cpu {
namespace {

void read_tile(const ReadTile& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const StoredMatrix& matrix = its.matrix;
  const auto* bytes = static_cast<const std::byte*>(its.stored);
  const auto* scales = bytes + matrix.scales_begin;
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows out(type, W, its.out);
    std::vector<float> unnested(static_cast<size_t>(matrix.is_nested() ? matrix.row_scales : 0));
    for (int64_t t = begin; t < end; t++) {
      const int64_t row = its.first_row + t, first_scale = row * matrix.row_scales;
      const auto* of_row = reinterpret_cast<const float*>(scales) + first_scale;
      if (matrix.is_nested()) {
        unnest(scales + first_scale, reinterpret_cast<const float*>(bytes + matrix.nested_begin),
               first_scale, unnested);
        of_row = unnested.data();
      }
      dequantise(matrix, bytes + matrix.begin + row * matrix.row_bytes, of_row, its.first_column,
                 {out.write(t), static_cast<size_t>(W)});
      out.wrote(t);
    }
  });
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::StoredKernels ferry::ops::kCpuStored = {.read_tile = cpu::read_tile};
