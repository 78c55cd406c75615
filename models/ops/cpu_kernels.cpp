// Element-wise, norm and column-sum kernels on the CPU: rows spread over threads, each through the
// row kernels of the machine's instruction set.

#include "models/ops/cpu_kernels.h"

#include "models/ops/cpu_rows.h"
#include "models/ops/row_kernels.h"
#include "models/ops/scratch_sizes.h"
#include "simd/philox.h"

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

void bias_gelu_forward(
    DType type, int64_t T, int64_t N, const void* a, const void* bias, void* h, void* g) {
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, N, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, N, a), biases(type, N, bias), before(type, N, h), after(type, N, g);
    const float* b = biases.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.add_bias(before.write(t), in.read(t), b, N);
      before.wrote(t);
      kernels.gelu(after.write(t), before.read(t), N);
      after.wrote(t);
    }
  });
}

void gelu_backward(DType type,
                   int64_t T,
                   int64_t N,
                   const void* dg,
                   const void* h,
                   void* dh,
                   void* dbias,
                   void* g,
                   void* scratch) {
  const RowKernels& kernels = row_kernels();
  auto* partial = static_cast<float*>(scratch);
  for_row_blocks(T, N, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_after(type, N, dg), before(type, N, h), d_before(type, N, dh), after(type, N, g);
    float* sum = partial + block * N;
    std::fill_n(sum, N, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      kernels.gelu_backward(d_before.write(t), after.write(t), d_after.read(t), before.read(t), sum,
                            N);
      d_before.wrote(t);
      after.wrote(t);
    }
  });
  void* const out[] = {dbias};
  add_partials(type, n_blocks_of(T), 1, N, partial, out);
}

void column_sum(DType type, int64_t T, int64_t N, const void* x, void* out, void* scratch) {
  const RowKernels& kernels = row_kernels();
  auto* partial = static_cast<float*>(scratch);
  for_row_blocks(T, N, [&](int64_t block, int64_t begin, int64_t end) {
    Rows in(type, N, x);
    float* sum = partial + block * N;
    std::fill_n(sum, N, 0.0f);
    for (int64_t t = begin; t < end; t++)
      kernels.add(sum, in.read(t), N);
  });
  void* const outs[] = {out};
  add_partials(type, n_blocks_of(T), 1, N, partial, outs);
}

void dropout_residual_norm_forward(DType type,
                                   int64_t T,
                                   int64_t W,
                                   float eps,
                                   Dropout dropout,
                                   const void* a,
                                   const void* bias,
                                   const void* residual,
                                   const void* gamma,
                                   const void* beta,
                                   void* z,
                                   float* mean,
                                   float* rstd,
                                   void* y) {
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(dropout.p);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, a), biases(type, W, bias), residuals(type, W, residual), sums(type, W, z);
    Rows gammas(type, W, gamma), betas(type, W, beta), out(type, W, y);
    KeepRows keep(dropout, W);
    const float *b = biases.read(0), *g = gammas.read(0), *shift = betas.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.combine(sums.write(t), in.read(t), b, residuals.read(t), keep.row(t), scale, W);
      sums.wrote(t);
      const float* sum = sums.read(t);
      kernels.moments(sum, W, eps, mean + t, rstd + t);
      kernels.normalise(out.write(t), sum, mean[t], rstd[t], g, shift, nullptr, 1, W);
      out.wrote(t);
    }
  });
}

void dropout_residual_norm_backward(DType type,
                                    int64_t T,
                                    int64_t W,
                                    Dropout dropout,
                                    const void* dy,
                                    const void* z,
                                    const float* mean,
                                    const float* rstd,
                                    const void* gamma,
                                    const void* d_sum,
                                    void* dz,
                                    void* da,
                                    void* dgamma,
                                    void* dbeta,
                                    void* dbias,
                                    void* scratch) {
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(dropout.p);
  auto* partial = static_cast<float*>(scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, dy), sums(type, W, z), gammas(type, W, gamma), d_sums(type, W, dz);
    Rows d_in(type, W, da), d_others(type, W, d_sum);
    KeepRows keep(dropout, W);
    std::vector<float> without_da(da == nullptr ? static_cast<size_t>(W) : 0);
    const float* g = gammas.read(0);
    float* sum = partial + block * 3 * W;
    std::fill_n(sum, 3 * W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      float* d = d_sums.write(t);
      kernels.norm_backward(d, d_out.read(t), sums.read(t), mean[t], rstd[t], g, d_others.read(t),
                            nullptr, 1, sum, sum + W, W);
      d_sums.wrote(t);
      float* to = da == nullptr ? without_da.data() : d_in.write(t);
      kernels.combine_backward(to, d, keep.row(t), scale, sum + 2 * W, W);
      d_in.wrote(t);
    }
  });
  void* const out[] = {dgamma, dbeta, dbias};
  add_partials(type, n_blocks_of(T), 3, W, partial, out);
}

void norm_apply(DType type,
                int64_t T,
                int64_t W,
                const void* z,
                const void* gamma,
                const void* beta,
                const float* mean,
                const float* rstd,
                void* y) {
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows sums(type, W, z), gammas(type, W, gamma), betas(type, W, beta), out(type, W, y);
    const float *g = gammas.read(0), *shift = betas.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.normalise(out.write(t), sums.read(t), mean[t], rstd[t], g, shift, nullptr, 1, W);
      out.wrote(t);
    }
  });
}

void norm_dropout_forward(DType type,
                          int64_t T,
                          int64_t W,
                          float eps,
                          Dropout dropout,
                          const void* z,
                          const void* gamma,
                          const void* beta,
                          float* mean,
                          float* rstd,
                          void* y) {
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(dropout.p);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows sums(type, W, z), gammas(type, W, gamma), betas(type, W, beta), out(type, W, y);
    KeepRows keep(dropout, W);
    const float *g = gammas.read(0), *shift = betas.read(0);
    for (int64_t t = begin; t < end; t++) {
      const float* sum = sums.read(t);
      kernels.moments(sum, W, eps, mean + t, rstd + t);
      kernels.normalise(out.write(t), sum, mean[t], rstd[t], g, shift, keep.row(t), scale, W);
      out.wrote(t);
    }
  });
}

void norm_dropout_backward(DType type,
                           int64_t T,
                           int64_t W,
                           Dropout dropout,
                           const void* dy,
                           const void* z,
                           const float* mean,
                           const float* rstd,
                           const void* gamma,
                           const void* d_sum,
                           void* dz,
                           void* dgamma,
                           void* dbeta,
                           void* scratch) {
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(dropout.p);
  auto* partial = static_cast<float*>(scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, dy), sums(type, W, z), gammas(type, W, gamma), d_sums(type, W, dz);
    Rows d_others(type, W, d_sum);
    KeepRows keep(dropout, W);
    const float* g = gammas.read(0);
    float* sum = partial + block * 2 * W;
    std::fill_n(sum, 2 * W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      kernels.norm_backward(d_sums.write(t), d_out.read(t), sums.read(t), mean[t], rstd[t], g,
                            d_others.read(t), keep.row(t), scale, sum, sum + W, W);
      d_sums.wrote(t);
    }
  });
  void* const out[] = {dgamma, dbeta};
  add_partials(type, n_blocks_of(T), 2, W, partial, out);
}

}  // namespace ferry::ops::cpu
