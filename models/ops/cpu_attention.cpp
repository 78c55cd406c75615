// Attention on the CPU. Threads take (sequence, head) pairs from a counter; which thread computes a
// pair changes no bit. A pair runs in blocks of rows whose scores fit a core's cache, its products
// through LibTorch's own BLAS.

#include "models/ops/cpu_attention.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "models/ops/row_kernels.h"
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

/** Scores that one block of rows may hold: 64 KiB on the stack. */
constexpr int64_t kBlockElements = 16 * 1024;

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
  int64_t first_prob;  ///< elements from the start of `probs`
  int64_t block_rows;
};

/** Calls work(pair) for each, spread over threads. */
template <typename Work>
void for_pairs(const AttentionShape& shape, const Work& work) {
  const int64_t n_seqs = shape.n_seqs();
  std::vector<int64_t> first_prob(static_cast<size_t>(n_seqs) + 1, 0);
  for (int64_t s = 0; s < n_seqs; s++) {
    const int64_t length = shape.cu_seqlens[s + 1] - shape.cu_seqlens[s];
    FERRY_CHECK(length <= kBlockElements, "a sequence of {} tokens", length);
    first_prob[s + 1] =
        first_prob[s] + round_up(shape.n_heads * length * length, kProbsAlignment_elements);
  }
  // A small micro-batch is done before a second thread has woken up.
  const int64_t n_threads = first_prob[n_seqs] < kBlockElements ? 1 : at::get_num_threads();
  std::atomic<int64_t> next{0};
  at::parallel_for(0, n_threads, 1, [&](int64_t, int64_t) {
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_seqs * shape.n_heads) return;
      const int64_t s = i / shape.n_heads, head = i % shape.n_heads;
      const int64_t first_token = shape.cu_seqlens[s];
      const int64_t length = shape.cu_seqlens[s + 1] - first_token;
      if (length == 0) continue;
      work(Pair{length, first_token, head, first_prob[s] + head * length * length,
                std::min(length, kBlockElements / length)});
    }
  });
}

float score_scale(const AttentionShape& shape) {
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
  const int64_t W = shape.width(), d = shape.head_width;
  const float scale = score_scale(shape), kept = simd::dropout_scale(dropout.p);
  for_pairs(shape, [&](const Pair& pair) {
    const float* q = qkv + pair.first_token * 3 * W + pair.head * d;
    const float *k = q + W, *v = k + W;
    float* out = context + pair.first_token * W + pair.head * d;
    const int64_t n = pair.length;
    alignas(64) std::array<float, kBlockElements> dropped;
    alignas(64) std::array<float, kBlockElements> rounded;
    std::vector<uint8_t> keep(dropout.p > 0 ? static_cast<size_t>(n) : 0);
    for (int64_t row = 0; row < n; row += pair.block_rows) {
      const int64_t rows = std::min(pair.block_rows, n - row);
      const int64_t first = pair.first_prob + row * n;
      auto* p = probs_type == DType::f32 ? static_cast<float*>(probs) + first : rounded.data();
      multiply(rows, n, d, {q + row * 3 * W, 3 * W}, {k, 3 * W, true}, 0, p, n);
      for (int64_t i = 0; i < rows; i++) {
        if (dropout.p > 0) {
          simd::dropout_mask(keep.data(), n, static_cast<uint64_t>(first + i * n), dropout.key,
                             dropout.p);
        }
        kernels.softmax(p + i * n, dropped.data() + i * n, p + i * n, scale,
                        dropout.p > 0 ? keep.data() : nullptr, kept, n);
      }
      if (probs_type != DType::f32)
        simd::convert(element(probs, probs_type, first), probs_type, p, DType::f32, rows * n);
      multiply(rows, d, n, {dropout.p > 0 ? dropped.data() : p, n}, {v, 3 * W}, 0, out + row * W,
               W);
    }
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
  const int64_t W = shape.width(), d = shape.head_width;
  const float scale = score_scale(shape), kept = simd::dropout_scale(dropout.p);
  for_pairs(shape, [&](const Pair& pair) {
    const int64_t at = pair.first_token * 3 * W + pair.head * d;
    const float *q = qkv + at, *k = q + W, *v = k + W;
    float *dq = d_qkv + at, *dk = dq + W, *dv = dk + W;
    const float* d_out = d_context + pair.first_token * W + pair.head * d;
    const int64_t n = pair.length;
    alignas(64) std::array<float, kBlockElements> d_scores;
    alignas(64) std::array<float, kBlockElements> dropped;
    alignas(64) std::array<float, kBlockElements> widened;
    for (int64_t row = 0; row < n; row += pair.block_rows) {
      const int64_t rows = std::min(pair.block_rows, n - row);
      const int64_t first = pair.first_prob + row * n;
      const float* p = static_cast<const float*>(probs) + first;
      if (probs_type != DType::f32) {
        simd::convert(widened.data(), DType::f32, element(probs, probs_type, first), probs_type,
                      rows * n);
        p = widened.data();
      }
      const float add = row == 0 ? 0 : 1;
      multiply(rows, n, d, {d_out + row * W, W}, {v, 3 * W, true}, 0, d_scores.data(), n);
      for (int64_t i = 0; i < rows; i++) {
        kernels.softmax_backward(d_scores.data() + i * n, dropped.data() + i * n, p + i * n,
                                 d_scores.data() + i * n, scale, kept, n);
      }
      multiply(n, d, rows, {dropped.data(), n, true}, {d_out + row * W, W}, add, dv, 3 * W);
      multiply(rows, d, n, {d_scores.data(), n}, {k, 3 * W}, 0, dq + row * 3 * W, 3 * W);
      multiply(n, d, rows, {d_scores.data(), n, true}, {q + row * 3 * W, 3 * W}, add, dk, 3 * W);
    }
  });
}

}  // namespace ferry::ops::cpu
