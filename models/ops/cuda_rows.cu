// Small row operations on CUDA: column sums (bias gradients of GEMMs), some rows of a matrix (what
// heads read) and their gradient.

#include "models/ops/cuda_common.h"
#include "models/ops/cuda_reduce.h"

namespace ferry::ops::cuda {
namespace {

template <typename T, int N>
struct LoadPack {
  const T* x;

  __device__ void operator()(int64_t, int64_t, int64_t pack, float (&out)[N]) const {
    load(x, pack, out);
  }
};

/** A pack of [dq dk dv], stored to dqkv on the way. */
template <typename T, int N>
struct JoinPacks {
  const T* dq;
  const T* dk;
  const T* dv;
  T* dqkv;
  int64_t q_packs;   ///< packs in a row of dq
  int64_t kv_packs;  ///< packs in a row of dk or dv

  __device__ void operator()(int64_t row, int64_t column, int64_t pack, float (&out)[N]) const {
    const T* from = dq;
    int64_t width = q_packs;
    if (column >= q_packs) {
      const bool is_v = column >= q_packs + kv_packs;
      from = is_v ? dv : dk;
      width = kv_packs;
      column -= q_packs + (is_v ? kv_packs : 0);
    }
    load(from, row * width + column, out);
    store(out, dqkv, pack);
  }
};

/** The joined row blockIdx.x, where no column sum is wanted. */
template <typename T, int N>
__global__ void __launch_bounds__(256) join_rows(JoinPacks<T, N> join, int64_t row_packs) {
  const int64_t row = blockIdx.x;
  for (int64_t column = threadIdx.x; column < row_packs; column += blockDim.x) {
    float x[N];
    join(row, column, row * row_packs + column, x);
  }
}

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

template <bool kGather>
void launch_copy(void* stream,
                 DType type,
                 int64_t n,
                 int64_t W,
                 const void* from,
                 const int32_t* rows,
                 void* to) {
  if (n == 0) return;
  with_packs(
      type, W,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        copy_rows<E, kPack, kGather><<<static_cast<unsigned>(n), 128, 0, as_stream(stream)>>>(
            W / kPack, static_cast<const E*>(from), rows, static_cast<E*>(to));
      },
      from, to);
  check_launch("copy_rows");
}

}  // namespace

void column_sum(
    void* stream, DType type, int64_t T, int64_t N, const void* x, void* out, void* scratch) {
  with_packs(
      type, N,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        sum_columns<E, kPack>(stream, T, N, LoadPack<E, kPack>{static_cast<const E*>(x)},
                              static_cast<E*>(out), static_cast<float*>(scratch));
      },
      x);
}

void join_qkv_gradients(void* stream,
                        DType type,
                        int64_t T,
                        int64_t q_width,
                        int64_t kv_width,
                        const void* dq,
                        const void* dk,
                        const void* dv,
                        void* dqkv,
                        void* dbias,
                        void* scratch) {
  expect(q_width % kv_width == 0, "queries' width a multiple of the keys'",
         static_cast<double>(q_width));
  with_packs(
      type, kv_width,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        const JoinPacks<E, kPack> source{static_cast<const E*>(dq), static_cast<const E*>(dk),
                                         static_cast<const E*>(dv), static_cast<E*>(dqkv),
                                         q_width / kPack,           kv_width / kPack};
        const int64_t width = q_width + 2 * kv_width;
        if (dbias != nullptr)
          return sum_columns<E, kPack>(stream, T, width, source, static_cast<E*>(dbias),
                                       static_cast<float*>(scratch));
        if (T == 0) return;
        join_rows<E, kPack>
            <<<static_cast<unsigned>(T), 256, 0, as_stream(stream)>>>(source, width / kPack);
        check_launch("join_rows");
      },
      dq, dk, dv, dqkv);
}

void gather_rows(
    void* stream, DType type, int64_t n, int64_t W, const void* x, const int32_t* rows, void* out) {
  launch_copy<true>(stream, type, n, W, x, rows, out);
}

void scatter_rows(void* stream,
                  DType type,
                  int64_t T,
                  int64_t n,
                  int64_t W,
                  const void* d_out,
                  const int32_t* rows,
                  void* dx) {
  zero(stream, dx, T * W * static_cast<int64_t>(size_of(type)));
  launch_copy<false>(stream, type, n, W, d_out, rows, dx);
}

void zero(void* stream, void* data, int64_t n_bytes) {
  if (n_bytes == 0) return;
  check_cuda(cudaMemsetAsync(data, 0, static_cast<size_t>(n_bytes), as_stream(stream)),
             "cudaMemsetAsync");
}

}  // namespace ferry::ops::cuda
