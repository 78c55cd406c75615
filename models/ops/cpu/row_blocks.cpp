#include "models/ops/cpu/row_blocks.h"

#include <cstring>

#include "models/ops/cpu/row_kernels.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops::cpu {

static_assert(kBlockRows == kSumChunkRows, "scratch_sizes.h counts one partial sum per block");

void add_partials(
    DType type, int64_t n_blocks, int n_sums, int64_t N, const float* partial, void* const* out) {
  constexpr int64_t kColumns = 256;
  const RowKernels& rows = row_kernels();
  const int64_t n_pieces = (N + kColumns - 1) / kColumns;
  at::parallel_for(0, n_sums * n_pieces, 4, [&](int64_t begin, int64_t end) {
    float sum[kColumns];
    for (int64_t i = begin; i < end; i++) {
      const int64_t which = i / n_pieces, first = i % n_pieces * kColumns;
      const int64_t n = std::min(kColumns, N - first);
      if (out[which] == nullptr) continue;
      std::fill_n(sum, n, 0.0f);
      for (int64_t block = 0; block < n_blocks; block++)
        rows.add(sum, partial + (block * n_sums + which) * N + first, n);
      auto* to = static_cast<std::byte*>(out[which]) + first * static_cast<int64_t>(size_of(type));
      simd::convert(to, type, sum, DType::f32, n);
    }
  });
}

void set_zero(DType type, int64_t n_rows, int64_t W, void* data) {
  const int64_t row_bytes = W * static_cast<int64_t>(size_of(type));
  for_row_blocks(n_rows, W, [&](int64_t, int64_t begin, int64_t end) {
    memset(static_cast<std::byte*>(data) + begin * row_bytes, 0,
           static_cast<size_t>((end - begin) * row_bytes));
  });
}

}  // namespace ferry::ops::cpu
