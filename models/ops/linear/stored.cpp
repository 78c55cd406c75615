#include "models/ops/linear/stored.h"

#include "models/ops/dispatch.h"

namespace ferry::ops {

void read_tile(const StoredParts& parts,
               const at::Tensor& w,
               int64_t first_row,
               int64_t first_column,
               at::Tensor& tile) {
  if (!is_quantised(parts.front().storage)) {
    const Extent extent = extent_of(tile);
    tile.copy_(w.narrow(0, first_row, extent.T).narrow(1, first_column, extent.W));
    return;
  }
  const int64_t end_row = first_row + tile.size(0);
  for (const StoredMatrix& matrix : parts) {
    const int64_t begin = std::max(first_row, matrix.first_row),
                  end = std::min(end_row, matrix.first_row + matrix.rows);
    if (begin >= end) continue;
    at::Tensor rows = tile.narrow(0, begin - first_row, end - begin);
    const ReadTile its = {.extent = extent_of(rows),
                          .matrix = matrix,
                          .first_row = begin - matrix.first_row,
                          .first_column = first_column,
                          .stored = data_of(w),
                          .out = data_of(rows)};
    kernels_for(rows, kCpuStored, kCudaStored).read_tile(its, launch_on(rows));
  }
}

}  // namespace ferry::ops
