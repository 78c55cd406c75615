// The embeddings' sum of three tables on CUDA, and a table's gradient without atomics: tokens are
// ranked by (id, place), chunks of the ranked order add their runs of equal ids in order, and a run
// that crosses chunks is closed by the chunk where it begins.

#include "models/ops/cuda/cuda_common.h"
#include "models/ops/cuda_scratch.h"
#include "models/ops/embedding/embedding.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRankThreads = 128;
constexpr int kChunkRows = kEmbeddingChunkRows;

/** A factor of one changes no bit. */
template <int N>
__device__ inline void multiply(float (&x)[N], float factor) {
#pragma unroll
  for (int i = 0; i < N; i++)
    x[i] *= factor;
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) embed(int64_t row_packs,
                                                  int64_t first_word,
                                                  int64_t n_words,
                                                  const int32_t* ids,
                                                  const int32_t* type_ids,
                                                  const int32_t* position_ids,
                                                  const T* word_table,
                                                  const T* type_table,
                                                  const T* position_table,
                                                  float word_scale,
                                                  T* sum) {
  const int64_t t = blockIdx.x;
  const int64_t row = ids == nullptr ? t : ids[t] - first_word;
  if (ids != nullptr && (row < 0 || row >= n_words)) return;
  const T* word = word_table + row * row_packs * N;
  const T* rows[] = {
      position_table == nullptr ? nullptr : position_table + position_ids[t] * row_packs * N,
      type_table == nullptr ? nullptr : type_table + type_ids[t] * row_packs * N};
  for (int64_t column = threadIdx.x; column < row_packs; column += blockDim.x) {
    float x[N], more[N];
    load(word, column, x);
    multiply(x, word_scale);
#pragma unroll
    for (const T* row : rows) {
      if (row == nullptr) continue;
      load(row, column, more);
#pragma unroll
      for (int i = 0; i < N; i++)
        x[i] += more[i];
    }
    store(x, sum, t * row_packs + column);
  }
}

/** order[rank of t] = t, where tokens are ranked by id, equal ids by place. */
__global__ void __launch_bounds__(kRankThreads)
    rank_tokens(int n_tokens, const int32_t* ids, int32_t* order) {
  __shared__ int32_t tile[kRankThreads];
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int32_t mine = t < n_tokens ? ids[t] : 0;
  int rank = 0;
  for (int begin = 0; begin < n_tokens; begin += kRankThreads) {
    __syncthreads();
    const int other = begin + static_cast<int>(threadIdx.x);
    if (other < n_tokens) tile[threadIdx.x] = ids[other];
    __syncthreads();
    const int n_here = min(kRankThreads, n_tokens - begin);
    const int own = static_cast<int>(blockIdx.x * blockDim.x);
    if (begin < own) {  // wholly before: equal ids rank lower
#pragma unroll 16
      for (int i = 0; i < kRankThreads; i++)
        rank += tile[i] <= mine;
    } else if (begin > own) {
      for (int i = 0; i < n_here; i++)
        rank += tile[i] < mine;
    } else {
      for (int i = 0; i < n_here; i++) {
        rank += tile[i] < mine || (tile[i] == mine && i < static_cast<int>(threadIdx.x));
      }
    }
  }
  if (t < n_tokens) order[rank] = t;
}

/** Adds the runs of one chunk (blockIdx.x) of the ranked tokens. A run that lies in the chunk goes
 * to d_table; the part of one that came from before to partial[chunk][0], of one that begins here
 * and goes on to partial[chunk][1]. partial (chunks, 2, W). Ids without a row in the table have
 * their runs added, too, but nowhere to go. */
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) add_runs(int n_tokens,
                                                     int64_t row_packs,
                                                     int64_t first_row,
                                                     int64_t n_rows,
                                                     const int32_t* ids,
                                                     const int32_t* order,
                                                     const T* dx,
                                                     float scale,
                                                     T* d_table,
                                                     float* partial) {
  __shared__ int32_t tokens[kChunkRows];
  __shared__ int32_t row_ids[kChunkRows + 2];  // with the neighbours' ids, -1 past the ends
  const int begin = static_cast<int>(blockIdx.x) * kChunkRows;
  const int n_here = min(kChunkRows, n_tokens - begin);
  if (threadIdx.x < n_here + 2) {
    const int at = begin + static_cast<int>(threadIdx.x) - 1;
    const bool is_token = at >= 0 && at < n_tokens;
    const int32_t token = is_token ? order[at] : 0;
    row_ids[threadIdx.x] = is_token ? ids[token] : -1;
    if (threadIdx.x >= 1 && threadIdx.x <= n_here) tokens[threadIdx.x - 1] = token;
  }
  __syncthreads();
  const bool from_before = row_ids[0] == row_ids[1];
  for (int64_t column = blockIdx.y * kThreads + threadIdx.x; column < row_packs;
       column += gridDim.y * kThreads) {
    float sum[N] = {};
    bool is_first_run = true;
#pragma unroll 4
    for (int row = 0; row < n_here; row++) {
      float x[N];
      load(dx, tokens[row] * row_packs + column, x);
#pragma unroll
      for (int i = 0; i < N; i++)
        sum[i] += x[i];
      const int32_t id = row_ids[row + 1];
      const bool is_last_here = row + 1 == n_here;
      const bool goes_on = row_ids[row + 2] == id;
      if (goes_on && !is_last_here) continue;
      if (is_first_run && from_before) {
        store(sum, partial + (2 * blockIdx.x) * row_packs * N, column);
      } else if (goes_on) {
        store(sum, partial + (2 * blockIdx.x + 1) * row_packs * N, column);
      } else if (const int64_t at = id - first_row; at >= 0 && at < n_rows) {
        multiply(sum, scale);
        store(sum, d_table, at * row_packs + column);
      }
      is_first_run = false;
#pragma unroll
      for (int i = 0; i < N; i++)
        sum[i] = 0;
    }
  }
}

/** Closes the run that begins in chunk blockIdx.x and goes on past it, if there is one: its parts
 * in order into d_table. */
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) close_runs(int n_tokens,
                                                       int64_t row_packs,
                                                       int64_t first_row,
                                                       int64_t n_rows,
                                                       const int32_t* ids,
                                                       const int32_t* order,
                                                       const float* partial,
                                                       float scale,
                                                       T* d_table) {
  const int begin = static_cast<int>(blockIdx.x) * kChunkRows;
  const int end = begin + kChunkRows;
  if (end >= n_tokens) return;
  const int32_t id = ids[order[end - 1]];
  const bool goes_on = ids[order[end]] == id;
  const bool began_before = begin > 0 && ids[order[begin - 1]] == id;
  const int64_t at = id - first_row;
  if (!goes_on || began_before || at < 0 || at >= n_rows) return;
  // The last chunk that begins with this id, by bisection: ids ascend, and a run of a table of two
  // rows goes through a thousand chunks, of which a walk would wait for each.
  int last = static_cast<int>(blockIdx.x) + 1;
  for (int past = (n_tokens + kChunkRows - 1) / kChunkRows; past - last > 1;) {
    const int middle = (last + past) / 2;
    (ids[order[middle * kChunkRows]] == id ? last : past) = middle;
  }
  for (int64_t column = blockIdx.y * kThreads + threadIdx.x; column < row_packs;
       column += gridDim.y * kThreads) {
    float sum[N], more[N];
    load(partial + (2 * blockIdx.x + 1) * row_packs * N, column, sum);
#pragma unroll 8
    for (int chunk = static_cast<int>(blockIdx.x) + 1; chunk <= last; chunk++) {
      load(partial + static_cast<int64_t>(2 * chunk) * row_packs * N, column, more);
#pragma unroll
      for (int i = 0; i < N; i++)
        sum[i] += more[i];
    }
    multiply(sum, scale);
    store(sum, d_table, at * row_packs + column);
  }
}

void embedding_forward(const EmbeddingForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        embed<E, kPack><<<static_cast<unsigned>(T), kThreads, 0, as_stream(on.stream)>>>(
            W / kPack, its.first_word, its.n_words, its.ids, its.type_ids, its.position_ids,
            as<E>(its.word_table), as<E>(its.type_table), as<E>(its.position_table), its.word_scale,
            as<E>(its.sum));
      },
      its.word_table, its.type_table, its.position_table, its.sum);
  check_launch("embed");
}

void embedding_backward(const EmbeddingBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  zero(on, its.d_table, its.n_rows * W * static_cast<int64_t>(size_of(type)));
  if (T == 0) return;
  expect(T < (int64_t{1} << 30), "fewer tokens", static_cast<double>(T));
  auto* order = as<int32_t>(on.scratch);
  auto* partial = as<float>(as<char>(on.scratch) + embedding_order_bytes(T));
  const int n_tokens = static_cast<int>(T);
  rank_tokens<<<static_cast<unsigned>(ceil_div(T, kRankThreads)), kRankThreads, 0,
                as_stream(on.stream)>>>(n_tokens, its.ids, order);
  check_launch("rank_tokens");
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t row_packs = W / kPack;
        const dim3 grid(static_cast<unsigned>(n_embedding_chunks(T)),
                        static_cast<unsigned>(ceil_div(row_packs, kThreads)));
        add_runs<E, kPack><<<grid, kThreads, 0, as_stream(on.stream)>>>(
            n_tokens, row_packs, its.first_row, its.n_rows, its.ids, order, as<E>(its.dx),
            its.scale, as<E>(its.d_table), partial);
        check_launch("add_runs");
        close_runs<E, kPack><<<grid, kThreads, 0, as_stream(on.stream)>>>(
            n_tokens, row_packs, its.first_row, its.n_rows, its.ids, order, partial, its.scale,
            as<E>(its.d_table));
        check_launch("close_runs");
      },
      its.dx, its.d_table, on.scratch);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::EmbeddingKernels ferry::ops::kCudaEmbedding = {
    .embedding_forward = cuda::embedding_forward, .embedding_backward = cuda::embedding_backward};
