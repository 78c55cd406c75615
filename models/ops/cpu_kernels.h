#pragma once
// The fused operations on the CPU: the same functions as cuda_kernels.h, on host memory and on
// LibTorch's intra-op threads. Values are rounded where they are stored, arithmetic is fp32. How
// rows fall into sums depends on the sizes alone, so the thread count changes no bit. Scratch
// sizes: scratch_sizes.h. Types: f32, f16, bf16.

#include <cstdint>

#include "models/ops/dropout.h"
#include "src/base/dtype.h"

namespace ferry::ops::cpu {

/** h = a + bias (T, N), g = gelu(h) (T, N), exact form. h may be a. */
void bias_gelu_forward(
    DType type, int64_t T, int64_t N, const void* a, const void* bias, void* h, void* g);

/** dh = dg * gelu'(h), dbias (N) its column sum, g = gelu(h) unless null. dh may be dg. */
void gelu_backward(DType type,
                   int64_t T,
                   int64_t N,
                   const void* dg,
                   const void* h,
                   void* dh,
                   void* dbias,
                   void* g,
                   void* scratch);  // column_sum_scratch_bytes

/** out (N) = sum of the rows of x (T, N). */
void column_sum(DType type, int64_t T, int64_t N, const void* x, void* out, void* scratch);

/** z = dropout(a + bias) + residual, y = LayerNorm(z) * gamma + beta over the rounded z. bias and
 * residual may be null; z or y may be a, z may be residual. */
void dropout_residual_norm_forward(DType type,
                                   int64_t T,
                                   int64_t W,
                                   float eps,
                                   Dropout dropout,
                                   const void* a,         // (T, W)
                                   const void* bias,      // (W) or null
                                   const void* residual,  // (T, W) or null
                                   const void* gamma,
                                   const void* beta,
                                   void* z,      // (T, W)
                                   float* mean,  // (T)
                                   float* rstd,  // (T)
                                   void* y);     // (T, W)

/** dz (also the residual's gradient) with d_sum added, the gradient that reaches z past the norm
 * (or null); da = dropout'(dz); and the column sums dgamma, dbeta, dbias (of da; may be null). da
 * may be null when p == 0. dz or da may be dy, dz may be d_sum. */
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
                                    void* scratch);  // norm_backward_scratch_bytes

/** y = LayerNorm(z) * gamma + beta from known moments. */
void norm_apply(DType type,
                int64_t T,
                int64_t W,
                const void* z,
                const void* gamma,
                const void* beta,
                const float* mean,
                const float* rstd,
                void* y);

/** y = dropout(LayerNorm(z) * gamma + beta): the embeddings' order. y may be z. */
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
                          void* y);
/** Adds d_sum (or null) to dz. dz may be dy or d_sum. */
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
                           void* scratch);  // norm_backward_scratch_bytes

/** z = a + residual, y = z * rstd * weight with rstd = 1 / sqrt(mean(z^2) + eps), over the rounded
 * z. residual may be null, z then too. z or y may be a, z may be residual. */
void residual_rms_norm_forward(DType type,
                               int64_t T,
                               int64_t W,
                               float eps,
                               const void* a,         // (T, W)
                               const void* residual,  // (T, W) or null
                               const void* weight,    // (W)
                               void* z,               // (T, W) or null
                               float* rstd,           // (T)
                               void* y);              // (T, W)
/** dz (also the residual's gradient) with d_sum (or null) added, and the column sum dweight. dz may
 * be dy or d_sum. */
void residual_rms_norm_backward(DType type,
                                int64_t T,
                                int64_t W,
                                const void* dy,
                                const void* z,
                                const float* rstd,
                                const void* weight,
                                const void* d_sum,
                                void* dz,
                                void* dweight,
                                void* scratch);  // rms_norm_backward_scratch_bytes
/** y again from the rstd that the forward kept: the same bits. */
void rms_norm_apply(DType type,
                    int64_t T,
                    int64_t W,
                    const void* z,
                    const void* weight,
                    const float* rstd,
                    void* y);

/** y = dropout(a + bias) + residual; bias may be null. y may be a or residual. */
void dropout_residual_forward(DType type,
                              int64_t T,
                              int64_t W,
                              Dropout dropout,
                              const void* a,
                              const void* bias,
                              const void* residual,
                              void* y);
/** da = dropout'(dy) and its column sum dbias. da may be null when p == 0, and may be dy. */
void dropout_residual_backward(DType type,
                               int64_t T,
                               int64_t W,
                               Dropout dropout,
                               const void* dy,
                               void* da,
                               void* dbias,
                               void* scratch);  // column_sum_scratch_bytes

/** Rotates in place the first n_rotated of each token's n_heads rows of head_width elements by
 * position * frequency[i], pairs (i, i + head_width / 2); or back. */
void rotate(DType type,
            int64_t T,
            int64_t n_heads,
            int64_t n_rotated,
            int64_t head_width,
            bool back,
            const int32_t* position_ids,  // (T)
            const float* frequencies,     // (head_width / 2)
            void* x);                     // (T, n_heads, head_width)

/** out (T, F) = silu(gate) * up of gate_up (T, 2F) = [gate up]. */
void silu_gate_forward(DType type, int64_t T, int64_t F, const void* gate_up, void* out);
/** d_gate_up (T, 2F), and out (T, F) again unless null. out may be d_out. */
void silu_gate_backward(DType type,
                        int64_t T,
                        int64_t F,
                        const void* d_out,
                        const void* gate_up,
                        void* d_gate_up,
                        void* out);

/** sum[t] = word[ids[t]] + position[position_ids[t]] + type[type_ids[t]]; the tables of positions
 * and types may be null. */
void embedding_forward(DType type,
                       int64_t T,
                       int64_t W,
                       const int32_t* ids,
                       const int32_t* type_ids,
                       const int32_t* position_ids,
                       const void* word_table,
                       const void* type_table,
                       const void* position_table,
                       void* sum);

/** d_table[r] = sum of dx[t] over the t with ids[t] == r, in ascending t; other rows become zero.
 */
void embedding_backward(DType type,
                        int64_t T,
                        int64_t W,
                        const int32_t* ids,
                        int64_t n_rows,
                        const void* dx,
                        void* d_table,
                        void* scratch);  // embedding_backward_scratch_bytes

/** out = dropout(x), and likewise backward; out may be x. */
void dropout(DType type, int64_t n_elements, Dropout dropout, const void* x, void* out);

/** out[i] = x[rows[i]], (n, W). */
void gather_rows(DType type, int64_t n, int64_t W, const void* x, const int32_t* rows, void* out);
/** dx (T, W) = 0 but dx[rows[i]] = d_out[i]; rows differ. */
void scatter_rows(
    DType type, int64_t T, int64_t n, int64_t W, const void* d_out, const int32_t* rows, void* dx);

}  // namespace ferry::ops::cpu
