#pragma once
// The fused element-wise, normalisation and embedding kernels of the layer operations on CUDA. The
// operations of models/ops call them with raw device pointers on the compute stream; GEMM and
// attention are ATen's. No torch and no CUDA header here: cuda_*.cu implements it, or
// no_cuda_kernels.cpp where there is no CUDA.
//
// Common to all: matrices are row-major and dense, of `type` (f32, f16, bf16) unless said; all
// arithmetic is fp32 and a value is rounded once (to nearest even) where it is stored. The same
// input at the same alignment gives the same bits on every run of a GPU: no float atomics, and sums
// are split by sizes alone. Rows of a multiple of 16 bytes at 16-byte aligned addresses, which a
// plan's tensors have, run vectorised; others are slower and may add up a row in another order.
// `stream` is a cudaStream_t; calls return when the work is queued and can be captured in a CUDA
// graph. Scratch is device memory of at least the bytes of cuda_scratch.h, free again in stream
// order. A refused launch throws Error(Fault::machine).

#include <cstdint>

#include "models/ops/cuda_scratch.h"
#include "models/ops/dropout.h"
#include "src/base/dtype.h"

namespace ferry::ops::cuda {

/** The most keys that a launch's arguments hold; store_keys() puts them into GPU memory. */
inline constexpr int kKeys_max = 8;
void store_keys(void* stream, const uint64_t* keys, int n, uint64_t* to);

/** h = a + bias (T, N), g = gelu(h) (T, N), the exact (erf) form; h may be a. */
void bias_gelu_forward(void* stream,
                       DType type,
                       int64_t T,
                       int64_t N,
                       const void* a,     // (T, N)
                       const void* bias,  // (N)
                       void* h,           // (T, N)
                       void* g);          // (T, N)

/** dh = dg * gelu'(h), dbias = column sum of dh; dh may be dg. g, if not null, receives gelu(h)
 * again (for the weight gradient when the forward did not keep it). */
void gelu_backward(void* stream,
                   DType type,
                   int64_t T,
                   int64_t N,
                   const void* dg,  // (T, N)
                   const void* h,   // (T, N)
                   void* dh,        // (T, N)
                   void* dbias,     // (N)
                   void* g,         // (T, N) or null
                   void* scratch);

/** out[n] = sum over t of x[t][n], in two fp32 stages. */
void column_sum(void* stream,
                DType type,
                int64_t T,
                int64_t N,
                const void* x,  // (T, N)
                void* out,      // (N)
                void* scratch);

/** z = dropout(a + bias) + residual, y = LayerNorm(z) * gamma + beta over the rounded z. z or y may
 * be a; z may be residual. W <= 8192 in f32, 16384 in 16 bits, 2048 where a row is not a
 * multiple of 16 bytes; so too below. */
void dropout_residual_norm_forward(void* stream,
                                   DType type,
                                   int64_t T,
                                   int64_t W,
                                   float eps,
                                   Dropout dropout,
                                   const void* a,         // (T, W)
                                   const void* bias,      // (W) or null
                                   const void* residual,  // (T, W) or null
                                   const void* gamma,     // (W)
                                   const void* beta,      // (W)
                                   void* z,               // (T, W)
                                   float* mean,           // (T)
                                   float* rstd,           // (T)
                                   void* y);              // (T, W)

/** Gradient of the above: dz (also the residual's gradient) with d_sum added, the gradient that
 * reaches z past the norm; da = dropout'(dz); and the column sums dgamma, dbeta, dbias (that of
 * da). da may be null when p == 0 (then da is dz). dz or da may be dy, dz may be d_sum. */
void dropout_residual_norm_backward(void* stream,
                                    DType type,
                                    int64_t T,
                                    int64_t W,
                                    Dropout dropout,
                                    const void* dy,     // (T, W)
                                    const void* z,      // (T, W)
                                    const float* mean,  // (T)
                                    const float* rstd,  // (T)
                                    const void* gamma,  // (W)
                                    const void* d_sum,  // (T, W) or null
                                    void* dz,           // (T, W)
                                    void* da,           // (T, W) or null
                                    void* dgamma,       // (W)
                                    void* dbeta,        // (W)
                                    void* dbias,        // (W) or null
                                    void* scratch);     // norm_backward_scratch_bytes

/** y = LayerNorm(z) * gamma + beta again, from the moments the forward kept: the same bits. */
void norm_apply(void* stream,
                DType type,
                int64_t T,
                int64_t W,
                const void* z,      // (T, W)
                const float* mean,  // (T)
                const float* rstd,  // (T)
                const void* gamma,  // (W)
                const void* beta,   // (W)
                void* y);           // (T, W)

/** y = dropout(LayerNorm(z) * gamma + beta): the embeddings' order. y may be z if z is not needed
 * again. */
void norm_dropout_forward(void* stream,
                          DType type,
                          int64_t T,
                          int64_t W,
                          float eps,
                          Dropout dropout,
                          const void* z,      // (T, W)
                          const void* gamma,  // (W)
                          const void* beta,   // (W)
                          float* mean,        // (T)
                          float* rstd,        // (T)
                          void* y);           // (T, W)
/** dz with d_sum added, dgamma, dbeta of the above; dz may be dy or d_sum. */
void norm_dropout_backward(void* stream,
                           DType type,
                           int64_t T,
                           int64_t W,
                           Dropout dropout,
                           const void* dy,     // (T, W)
                           const void* z,      // (T, W)
                           const float* mean,  // (T)
                           const float* rstd,  // (T)
                           const void* gamma,  // (W)
                           const void* d_sum,  // (T, W) or null
                           void* dz,           // (T, W)
                           void* dgamma,       // (W)
                           void* dbeta,        // (W)
                           void* scratch);     // norm_backward_scratch_bytes

/** z = a + residual, y = z * rstd * weight with rstd = 1 / sqrt(mean(z^2) + eps), over the rounded
 * z. z or y may be a, z may be residual. Widths as above. */
void residual_rms_norm_forward(void* stream,
                               DType type,
                               int64_t T,
                               int64_t W,
                               float eps,
                               const void* a,         // (T, W)
                               const void* residual,  // (T, W) or null
                               const void* weight,    // (W)
                               void* z,               // (T, W), or null without residual
                               float* rstd,           // (T)
                               void* y);              // (T, W)
/** y again, from the rstd the forward kept: the same bits. */
void rms_norm_apply(void* stream,
                    DType type,
                    int64_t T,
                    int64_t W,
                    const void* z,       // (T, W)
                    const float* rstd,   // (T)
                    const void* weight,  // (W)
                    void* y);            // (T, W)
/** dz (also the residual's gradient) with d_sum added, and the column sum dweight. dz may be dy or
 * d_sum. */
void residual_rms_norm_backward(void* stream,
                                DType type,
                                int64_t T,
                                int64_t W,
                                const void* dy,      // (T, W)
                                const void* z,       // (T, W)
                                const float* rstd,   // (T)
                                const void* weight,  // (W)
                                const void* d_sum,   // (T, W) or null
                                void* dz,            // (T, W)
                                void* dweight,       // (W)
                                void* scratch);      // rms_norm_backward_scratch_bytes

/** y = dropout(a + bias) + residual; y may be a or residual. Without both it is dropout alone. */
void dropout_residual_forward(void* stream,
                              DType type,
                              int64_t T,
                              int64_t W,
                              Dropout dropout,
                              const void* a,         // (T, W)
                              const void* bias,      // (W) or null
                              const void* residual,  // (T, W) or null
                              void* y);              // (T, W)
/** da = dropout'(dy) and its column sum dbias. da may be dy, or null when p == 0. */
void dropout_residual_backward(void* stream,
                               DType type,
                               int64_t T,
                               int64_t W,
                               Dropout dropout,
                               const void* dy,  // (T, W)
                               void* da,        // (T, W) or null
                               void* dbias,     // (W)
                               void* scratch);  // column_sum_scratch_bytes

/** Half the widest head that `rotate` takes. */
inline constexpr int64_t kRotaryPairs_max = 256;
/** Rotates in place the first n_rotated of each token's n_heads rows of head_width elements by
 * position * frequencies[i], pairs (i, i + head_width / 2); or back. */
void rotate(void* stream,
            DType type,
            int64_t T,
            int64_t n_heads,
            int64_t n_rotated,
            int64_t head_width,
            bool back,
            const int32_t* position_ids,  // (T)
            const float* frequencies,  // (head_width / 2), in host memory, read before the return
            void* x);                  // (T, n_heads, head_width)

/** out = silu(gate) * up, silu(x) = x / (1 + exp(-x)). */
void silu_gate_forward(void* stream,
                       DType type,
                       int64_t T,
                       int64_t F,
                       const void* gate_up,  // (T, 2 F): gate, up
                       void* out);           // (T, F)
/** d_gate_up, and out again unless null; out may be d_out. */
void silu_gate_backward(void* stream,
                        DType type,
                        int64_t T,
                        int64_t F,
                        const void* d_out,    // (T, F)
                        const void* gate_up,  // (T, 2 F)
                        void* d_gate_up,      // (T, 2 F)
                        void* out);           // (T, F) or null

/** sum[t] = word[ids[t]] + position[position_ids[t]] + type[type_ids[t]]; the last two tables may
 * be null. Ids are not checked here: the caller's batch has valid ones. */
void embedding_forward(void* stream,
                       DType type,
                       int64_t T,
                       int64_t W,
                       const int32_t* ids,           // (T)
                       const int32_t* type_ids,      // (T)
                       const int32_t* position_ids,  // (T)
                       const void* word_table,       // (n_words, W)
                       const void* type_table,       // (n_types, W)
                       const void* position_table,   // (n_positions, W)
                       void* sum);                   // (T, W)

/** d_table[r] = sum of dx[t] over the t with ids[t] == r, added in ascending t; rows without one
 * become zero. One call a table. O(T^2) integer comparisons (T = 65,536: under
 * 1 ms) in place of a library's sort, whose scratch could not be planned without a GPU. */
void embedding_backward(void* stream,
                        DType type,
                        int64_t T,
                        int64_t W,
                        const int32_t* ids,  // (T)
                        int64_t n_rows,
                        const void* dx,  // (T, W)
                        void* d_table,   // (n_rows, W)
                        void* scratch);

/** The gradients of attention's three inputs side by side, dqkv = [dq dk dv], and dbias (unless
 * null), its column sum: what the backward of the fused q, k, v matrix reads. q_width is a multiple
 * of kv_width. Scratch: column_sum of dqkv. */
void join_qkv_gradients(void* stream,
                        DType type,
                        int64_t T,
                        int64_t q_width,
                        int64_t kv_width,
                        const void* dq,  // (T, q_width)
                        const void* dk,  // (T, kv_width)
                        const void* dv,  // (T, kv_width)
                        void* dqkv,      // (T, q_width + 2 kv_width)
                        void* dbias,     // (q_width + 2 kv_width) or null
                        void* scratch);

/** out[i] = x[rows[i]]. */
void gather_rows(void* stream,
                 DType type,
                 int64_t n,
                 int64_t W,
                 const void* x,        // (T, W)
                 const int32_t* rows,  // (n)
                 void* out);           // (n, W)
/** dx = 0 but dx[rows[i]] = d_out[i]; no row comes twice. */
void scatter_rows(void* stream,
                  DType type,
                  int64_t T,
                  int64_t n,
                  int64_t W,
                  const void* d_out,    // (n, W)
                  const int32_t* rows,  // (n)
                  void* dx);            // (T, W)

/** Question answering over sequences laid end to end, of which the first n_seqs have labels: the
 * log of the sum of exponentials over a sequence's own tokens, and weight * (that - the label's
 * logit). Labels count from their sequence's first token; below 0 is 0, past the end is no item. */
void span_loss_forward(void* stream,
                       int64_t T,
                       int64_t n_seqs,
                       const float* logits,        // (2, T): starts, ends
                       const int32_t* cu_seqlens,  // (at least n_seqs + 1)
                       const int32_t* labels,      // (n_seqs, 2)
                       float start_weight,
                       float end_weight,
                       float* lse,      // (n_seqs, 2)
                       float* losses);  // (n_seqs, 2), 0 for no item
/** d_logits = factor * (softmax - [token is label]), 0 where there is no item. */
void span_loss_backward(void* stream,
                        int64_t T,
                        int64_t n_seqs,
                        const float* logits,
                        const int32_t* cu_seqlens,
                        const int32_t* labels,
                        const float* lse,
                        float start_factor,
                        float end_factor,
                        float* d_logits);  // (2, T)

/** Takes a piece of each row's logits, classes [first_class, first_class + n_classes), into what is
 * known of the row: the largest, the sum of exp(logit - largest), the sum, and the label's, which
 * changes only where the piece holds it. */
void take_logits(void* stream,
                 DType type,
                 int64_t n_rows,
                 int64_t n_classes,
                 int64_t first_class,
                 const void* logits,     // (n_rows, n_classes)
                 const int32_t* labels,  // (n_rows), below 0: none
                 float* largest,         // (n_rows), as the next three
                 float* sum_exp,
                 float* sum,
                 float* label_logit);
/** logits = factor * (exp(logits - lse) - uniform - on_label * [class is label]), 0 in rows without
 * a label. */
void logits_backward(void* stream,
                     DType type,
                     int64_t n_rows,
                     int64_t n_classes,
                     int64_t first_class,
                     void* logits,
                     const int32_t* labels,
                     const float* lse,  // (n_rows)
                     float uniform,
                     float on_label,
                     float factor);

/** Zero bytes. */
void zero(void* stream, void* data, int64_t n_bytes);

}  // namespace ferry::ops::cuda
