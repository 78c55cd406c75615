// Small row operations on CUDA: column sums (bias gradients of GEMMs), some rows of a matrix (what
// heads read) and their gradient.

#include "models/ops/cuda/cuda_reduce.h"
#include "models/ops/rows/rows.h"

namespace ferry::ops::cuda {
namespace {

template <typename T, int N>
struct LoadPack {
  const T* x;

  __device__ void operator()(int64_t, int64_t, int64_t pack, float (&out)[N]) const {
    load(x, pack, out);
  }
};

/** Copies row blockIdx.x of `from` (gather: row rows[i]) to `to` (scatter: row rows[i]). */
template <typename T, int N, bool kGather>
__global__ void __launch_bounds__(128)
    copy_rows(int64_t row_packs, const T* from, const int32_t* rows, T* to) {
  const int64_t mine = blockIdx.x;
  const int64_t theirs = rows[blockIdx.x];
  const auto* source = reinterpret_cast<const Pack<T, N>*>(from);
  auto* target = reinterpret_cast<Pack<T, N>*>(to);
  for (int64_t column = threadIdx.x; column < row_packs; column += blockDim.x) {
    target[(kGather ? mine : theirs) * row_packs + column] =
        source[(kGather ? theirs : mine) * row_packs + column];
  }
}

/** n of the rows. */
template <bool kGather>
void launch_copy(
    Extent extent, int64_t n, const void* from, const int32_t* rows, void* to, const Launch& on) {
  if (n == 0) return;
  with_packs(
      extent.type, extent.W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        copy_rows<E, kPack, kGather><<<static_cast<unsigned>(n), 128, 0, as_stream(on.stream)>>>(
            extent.W / kPack, as<E>(from), rows, as<E>(to));
      },
      from, to);
  check_launch("copy_rows");
}

void column_sum(const ColumnSum& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        sum_columns<E, kPack>(on, T, W, LoadPack<E, kPack>{as<E>(its.x)}, as<E>(its.out));
      },
      its.x);
}

void gather_rows(const GatherRows& its, const Launch& on) {
  launch_copy<true>(its.extent, its.extent.T, its.x, its.rows, its.out, on);
}

void put_rows(const PutRows& its, const Launch& on) {
  launch_copy<false>(its.extent, its.extent.T, its.from, its.rows, its.x, on);
}

void scatter_rows(const ScatterRows& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  zero(on, its.dx, T * W * static_cast<int64_t>(size_of(type)));
  put_rows({{type, its.n, W}, its.d_out, its.rows, its.dx}, on);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::RowsKernels ferry::ops::kCudaRows = {.column_sum = cuda::column_sum,
                                                       .gather_rows = cuda::gather_rows,
                                                       .scatter_rows = cuda::scatter_rows,
                                                       .put_rows = cuda::put_rows};
