#include "models/ops/linear/stored.h"

#include "models/ops/dispatch.h"

namespace ferry::ops {

void read_tile(const StoredMatrix& matrix,
               const at::Tensor& w,
               int64_t first_row,
               int64_t first_column,
               at::Tensor& tile) {
  const Extent extent = extent_of(tile);
  if (!is_quantised(matrix.storage)) {
    tile.copy_(w.narrow(0, first_row, extent.T).narrow(1, first_column, extent.W));
    return;
  }
  const ReadTile its = {.extent = extent,
                        .matrix = matrix,
                        .first_row = first_row,
                        .first_column = first_column,
                        .stored = data_of(w),
                        .out = data_of(tile)};
  kernels_for(tile, kCpuStored, kCudaStored).read_tile(its, launch_on(tile));
}

}  // namespace ferry::ops
