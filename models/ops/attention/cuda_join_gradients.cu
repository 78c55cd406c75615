// The gradients of attention's queries, keys and values into one row on CUDA, with the bias's
// gradient, which is its column sum.

#include "models/ops/attention/join_gradients.h"
#include "models/ops/cuda/cuda_reduce.h"

namespace ferry::ops::cuda {
namespace {

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

void join_qkv_gradients(const JoinQkvGradients& its, const Launch& on) {
  expect(its.q_width % its.kv_width == 0, "queries' width a multiple of the keys'",
         static_cast<double>(its.q_width));
  with_packs(
      its.type, its.kv_width,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const JoinPacks<E, kPack> source{as<E>(its.dq),       as<E>(its.dk),
                                         as<E>(its.dv),       as<E>(its.dqkv),
                                         its.q_width / kPack, its.kv_width / kPack};
        const int64_t width = its.q_width + 2 * its.kv_width;
        if (its.dbias != nullptr)
          return sum_columns<E, kPack>(on, its.T, width, source, as<E>(its.dbias));
        if (its.T == 0) return;
        join_rows<E, kPack>
            <<<static_cast<unsigned>(its.T), 256, 0, as_stream(on.stream)>>>(source, width / kPack);
        check_launch("join_rows");
      },
      its.dq, its.dk, its.dv, its.dqkv);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::AttentionKernels ferry::ops::kCudaAttention = {.join_qkv_gradients =
                                                                     cuda::join_qkv_gradients};
