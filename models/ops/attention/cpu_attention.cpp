// Attention on the CPU. Threads take (sequence, head) pairs from a counter; which thread computes a
// pair changes no bit. A pair runs in blocks of rows whose scores fit a core's cache, its products
// through LibTorch's own BLAS.

#include "models/ops/attention/cpu_attention.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "models/ops/cpu/row_kernels.h"
#include "models/ops/scratch_sizes.h"
#include "simd/kernels.h"
#include "simd/philox.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

// BLAS's single-precision product, column-major, which LibTorch exports. ATen's own entries cannot
// write a strided head of a matrix without a tensor object for each product.
extern "C" void sgemm_(const char* trans_a,
                       const char* trans_b,
                       const int* m,
                       const int* n,
                       const int* k,
                       const float* alpha,
                       const float* a,
                       const int* lda,
                       const float* b,
                       const int* ldb,
                       const float* beta,
                       float* c,
                       const int* ldc);

namespace ferry::ops::cpu {
namespace {

/** Scores that one block of rows may hold, one row at least: 64 KiB on the stack. */
constexpr int64_t kBlockElements = kCpuSequenceTokens_max;

/** A row-major matrix with a distance between rows; transposed when it is read so. */
struct Matrix {
  const float* data;
  int64_t stride;
  bool transposed = false;
};

/** c (m, n) = a (m, k) b (k, n) + beta c, all row-major: BLAS sees c^T = b^T a^T. */
void multiply(
    int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float beta, float* c, int64_t ldc) {
  const int bm = static_cast<int>(n), bn = static_cast<int>(m), bk = static_cast<int>(k);
  const int lda = static_cast<int>(b.stride), ldb = static_cast<int>(a.stride);
  const int ld = static_cast<int>(ldc);
  const float alpha = 1;
  sgemm_(b.transposed ? "T" : "N", a.transposed ? "T" : "N", &bm, &bn, &bk, &alpha, b.data, &lda,
         a.data, &ldb, &beta, c, &ld);
}

/** One head of one sequence. */
struct Pair {
  int64_t length;
  int64_t first_token;
  int64_t head;
  int64_t first_prob;  ///< of the sequence's heads: elements from the start of `probs`
  int64_t first_mask;  ///< the same in the mask of all heads
  int64_t block_rows;
};

/** Rows [row, row + rows) of a head's scores, which see the tokens [first, first + columns). */
struct RowBlock {
  int64_t row;
  int64_t rows;
  int64_t first;
  int64_t columns;
};

/** The first token that a row sees. */
int64_t first_seen(const AttentionShape& shape, int64_t row) {
  return shape.window > 0 ? std::max<int64_t>(0, row + 1 - shape.window) : 0;
}

/** Calls work(block) for a pair's rows in order. */
template <typename Work>
void for_blocks(const AttentionShape& shape, const Pair& pair, const Work& work) {
  for (int64_t row = 0; row < pair.length; row += pair.block_rows) {
    const int64_t rows = std::min(pair.block_rows, pair.length - row);
    const int64_t first = first_seen(shape, row);
    work(RowBlock{row, rows, first, (shape.causal ? row + rows : pair.length) - first});
  }
}

/** Calls work(pair) for each sequence and each of n_heads, spread over threads. */
template <typename Work>
void for_pairs(const AttentionShape& shape, int64_t n_heads, const Work& work) {
  const int64_t n_seqs = shape.n_seqs();
  std::vector<int64_t> first_prob(static_cast<size_t>(n_seqs) + 1, 0);
  std::vector<int64_t> first_mask(first_prob);
  const int64_t n_all_heads = shape.n_all_heads > 0 ? shape.n_all_heads : shape.n_heads;
  for (int64_t s = 0; s < n_seqs; s++) {
    const int64_t length = shape.cu_seqlens[s + 1] - shape.cu_seqlens[s];
    FERRY_CHECK(length <= kBlockElements, "a sequence of {} tokens", length);
    first_prob[s + 1] =
        first_prob[s] + round_up(shape.n_heads * length * length, kProbsAlignment_elements);
    first_mask[s + 1] =
        first_mask[s] + round_up(n_all_heads * length * length, kProbsAlignment_elements);
  }
  // A small micro-batch is done before a second thread has woken up.
  const int64_t n_threads = first_prob[n_seqs] < kBlockElements ? 1 : at::get_num_threads();
  std::atomic<int64_t> next{0};
  at::parallel_for(0, n_threads, 1, [&](int64_t, int64_t) {
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_seqs * n_heads) return;
      const int64_t s = i / n_heads;
      const int64_t first_token = shape.cu_seqlens[s];
      const int64_t length = shape.cu_seqlens[s + 1] - first_token;
      if (length == 0) continue;
      work(Pair{length, first_token, i % n_heads, first_prob[s], first_mask[s],
                std::min(length, kBlockElements / length)});
    }
  });
}

float score_scale(const AttentionShape& shape) {
  if (shape.scale != 0) return shape.scale;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_width)));
}

std::byte* element(const void* base, DType type, int64_t index) {
  return static_cast<std::byte*>(const_cast<void*>(base)) +
         index * static_cast<int64_t>(size_of(type));
}

}  // namespace

void attention_forward(const AttentionShape& shape,
                       Dropout dropout,
                       const float* qkv,
                       DType probs_type,
                       void* probs,
                       float* context) {
  const RowKernels& kernels = row_kernels();
  const int64_t W = shape.width(), Q = shape.qkv_width(), d = shape.head_width;
  const float scale = score_scale(shape), kept = simd::dropout_scale(dropout.p);
  const float cap = shape.soft_cap, softmax_scale = cap > 0 ? 1 : scale;
  for_pairs(shape, shape.n_heads, [&](const Pair& pair) {
    const float* token = qkv + pair.first_token * Q;
    const float* q = token + pair.head * d;
    const float* k = token + W + pair.head / shape.group() * d;
    const float* v = k + shape.n_kv_heads * d;
    float* out = context + pair.first_token * W + pair.head * d;
    const int64_t n = pair.length, first_prob = pair.first_prob + pair.head * n * n;
    const int64_t first_mask = pair.first_mask + (shape.first_head + pair.head) * n * n;
    alignas(64) std::array<float, kBlockElements> dropped;
    alignas(64) std::array<float, kBlockElements> rounded;
    std::vector<uint8_t> keep(dropout.p > 0 ? static_cast<size_t>(n) : 0);
    for_blocks(shape, pair, [&](const RowBlock& block) {
      const auto [row, rows, begin, columns] = block;
      const int64_t first = first_prob + row * n;
      auto* p = probs_type == DType::f32 ? static_cast<float*>(probs) + first : rounded.data();
      multiply(rows, columns, d, {q + row * Q, Q}, {k + begin * Q, Q, true}, 0, p, columns);
      for (int64_t i = 0; i < rows; i++) {
        // The row sees the block's columns [from, from + seen).
        const int64_t from = first_seen(shape, row + i) - begin;
        const int64_t seen = (shape.causal ? row + i + 1 - begin : columns) - from;
        float *p_row = p + i * columns, *dropped_row = dropped.data() + i * columns;
        if (dropout.p > 0) {
          const int64_t in_mask = first_mask + (row + i) * n + begin + from;
          simd::dropout_mask(keep.data(), seen, static_cast<uint64_t>(in_mask), dropout.key,
                             dropout.p);
        }
        if (cap > 0) kernels.soft_cap(p_row + from, scale, cap, seen);
        kernels.softmax(p_row + from, dropped_row + from, p_row + from, softmax_scale,
                        dropout.p > 0 ? keep.data() : nullptr, kept, seen);
        for (float* x : {p_row, dropped_row}) {
          std::fill(x, x + from, 0.0f);
          std::fill(x + from + seen, x + columns, 0.0f);
        }
      }
      if (probs_type != DType::f32)
        simd::convert(element(probs, probs_type, first), probs_type, p, DType::f32, rows * columns);
      multiply(rows, d, columns, {dropout.p > 0 ? dropped.data() : p, columns}, {v + begin * Q, Q},
               0, out + row * W, W);
    });
  });
}

void attention_backward(const AttentionShape& shape,
                        Dropout dropout,
                        const float* d_context,
                        const float* qkv,
                        DType probs_type,
                        const void* probs,
                        float* d_qkv) {
  const RowKernels& kernels = row_kernels();
  const int64_t W = shape.width(), Q = shape.qkv_width(), d = shape.head_width;
  const float scale = score_scale(shape), kept = simd::dropout_scale(dropout.p);
  const float cap = shape.soft_cap, softmax_scale = cap > 0 ? 1 : scale;
  // A thread takes a head of keys with all of its queries, whose gradients add up in order.
  for_pairs(shape, shape.n_kv_heads, [&](const Pair& pair) {
    const int64_t n = pair.length, first_k = pair.first_token * Q + W + pair.head * d;
    const float *k = qkv + first_k, *v = k + shape.n_kv_heads * d;
    float *dk = d_qkv + first_k, *dv = dk + shape.n_kv_heads * d;
    for (int64_t t = 0; t < n; t++) {
      std::fill_n(dk + t * Q, d, 0.0f);
      std::fill_n(dv + t * Q, d, 0.0f);
    }
    alignas(64) std::array<float, kBlockElements> d_scores;
    alignas(64) std::array<float, kBlockElements> dropped;
    alignas(64) std::array<float, kBlockElements> widened;
    std::vector<float> capped;
    for (int64_t head = pair.head * shape.group(); head < (pair.head + 1) * shape.group(); head++) {
      const float* q = qkv + pair.first_token * Q + head * d;
      float* dq = d_qkv + pair.first_token * Q + head * d;
      const float* d_out = d_context + pair.first_token * W + head * d;
      const int64_t first_prob = pair.first_prob + head * n * n;
      for_blocks(shape, pair, [&](const RowBlock& block) {
        const auto [row, rows, begin, columns] = block;
        const int64_t first = first_prob + row * n;
        const float* p = static_cast<const float*>(probs) + first;
        if (probs_type != DType::f32) {
          simd::convert(widened.data(), DType::f32, element(probs, probs_type, first), probs_type,
                        rows * columns);
          p = widened.data();
        }
        multiply(rows, columns, d, {d_out + row * W, W}, {v + begin * Q, Q, true}, 0,
                 d_scores.data(), columns);
        for (int64_t i = 0; i < rows; i++) {
          // A position that a row does not see has probability 0, so gradient 0.
          kernels.softmax_backward(d_scores.data() + i * columns, dropped.data() + i * columns,
                                   p + i * columns, d_scores.data() + i * columns, softmax_scale,
                                   kept, columns);
        }
        if (cap > 0) {
          capped.resize(static_cast<size_t>(rows * columns));
          multiply(rows, columns, d, {q + row * Q, Q}, {k + begin * Q, Q, true}, 0, capped.data(),
                   columns);
          kernels.soft_cap(capped.data(), scale, cap, rows * columns);
          kernels.soft_cap_backward(d_scores.data(), capped.data(), scale, cap, rows * columns);
        }
        multiply(columns, d, rows, {dropped.data(), columns, true}, {d_out + row * W, W}, 1,
                 dv + begin * Q, Q);
        multiply(rows, d, columns, {d_scores.data(), columns}, {k + begin * Q, Q}, 0, dq + row * Q,
                 Q);
        multiply(columns, d, rows, {d_scores.data(), columns, true}, {q + row * Q, Q}, 1,
                 dk + begin * Q, Q);
      });
    }
  });
}

}  // namespace ferry::ops::cpu
