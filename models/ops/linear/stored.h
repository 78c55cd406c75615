#pragma once
// A tile of a stored matrix (models/core/storage.h) as values that products take.

#include "models/core/storage.h"
#include "models/ops/operation.h"

namespace ferry::ops {

/** out = rows and columns of a part of a matrix, whose values are rounded once. CPU and GPU give
 * the same bits. */
struct ReadTile {
  Extent extent;                            ///< the tile's
  StoredMatrix matrix;                      ///< quantised
  int64_t first_row = 0, first_column = 0;  ///< the row is the part's
  const void* stored = nullptr;             // the bytes of the matrix of which it is a part
  void* out = nullptr;                      // (T, W)
};

struct StoredKernels {
  Kernel<ReadTile> read_tile;
};
extern const StoredKernels kCpuStored, kCudaStored;

/** The same on tensors, of rows of all parts. `w` has the bytes of a quantised matrix; else it is
 * the matrix. */
void read_tile(const StoredParts& parts,
               const at::Tensor& w,
               int64_t first_row,
               int64_t first_column,
               at::Tensor& tile);

}  // namespace ferry::ops
