// The kernels' interface in a build without CUDA. Nothing reaches these functions: the operations
// ask a tensor's device first.

#include <fmt/format.h>

#include "models/ops/cuda_kernels.h"
#include "src/base/error.h"

namespace ferry::ops::cuda {
namespace {

[[noreturn]] void not_built() {
  FERRY_CHECK(false, "built without CUDA");
  __builtin_unreachable();
}

}  // namespace

void store_keys(void*, const uint64_t*, int, uint64_t*) {
  not_built();
}
void bias_gelu_forward(void*, DType, int64_t, int64_t, const void*, const void*, void*, void*) {
  not_built();
}
void gelu_backward(
    void*, DType, int64_t, int64_t, const void*, const void*, void*, void*, void*, void*) {
  not_built();
}
void column_sum(void*, DType, int64_t, int64_t, const void*, void*, void*) {
  not_built();
}
void dropout_residual_norm_forward(void*,
                                   DType,
                                   int64_t,
                                   int64_t,
                                   float,
                                   Dropout,
                                   const void*,
                                   const void*,
                                   const void*,
                                   const void*,
                                   const void*,
                                   void*,
                                   float*,
                                   float*,
                                   void*) {
  not_built();
}
void dropout_residual_norm_backward(void*,
                                    DType,
                                    int64_t,
                                    int64_t,
                                    Dropout,
                                    const void*,
                                    const void*,
                                    const float*,
                                    const float*,
                                    const void*,
                                    const void*,
                                    void*,
                                    void*,
                                    void*,
                                    void*,
                                    void*,
                                    void*) {
  not_built();
}
void norm_apply(void*,
                DType,
                int64_t,
                int64_t,
                const void*,
                const float*,
                const float*,
                const void*,
                const void*,
                void*) {
  not_built();
}
void norm_dropout_forward(void*,
                          DType,
                          int64_t,
                          int64_t,
                          float,
                          Dropout,
                          const void*,
                          const void*,
                          const void*,
                          float*,
                          float*,
                          void*) {
  not_built();
}
void norm_dropout_backward(void*,
                           DType,
                           int64_t,
                           int64_t,
                           Dropout,
                           const void*,
                           const void*,
                           const float*,
                           const float*,
                           const void*,
                           const void*,
                           void*,
                           void*,
                           void*,
                           void*) {
  not_built();
}
void residual_rms_norm_forward(void*,
                               DType,
                               int64_t,
                               int64_t,
                               float,
                               const void*,
                               const void*,
                               const void*,
                               void*,
                               float*,
                               void*) {
  not_built();
}
void rms_norm_apply(void*, DType, int64_t, int64_t, const void*, const float*, const void*, void*) {
  not_built();
}
void residual_rms_norm_backward(void*,
                                DType,
                                int64_t,
                                int64_t,
                                const void*,
                                const void*,
                                const float*,
                                const void*,
                                const void*,
                                void*,
                                void*,
                                void*) {
  not_built();
}
void dropout_residual_forward(
    void*, DType, int64_t, int64_t, Dropout, const void*, const void*, const void*, void*) {
  not_built();
}
void dropout_residual_backward(
    void*, DType, int64_t, int64_t, Dropout, const void*, void*, void*, void*) {
  not_built();
}
void rotate(
    void*, DType, int64_t, int64_t, int64_t, int64_t, bool, const int32_t*, const float*, void*) {
  not_built();
}
void silu_gate_forward(void*, DType, int64_t, int64_t, const void*, void*) {
  not_built();
}
void silu_gate_backward(void*, DType, int64_t, int64_t, const void*, const void*, void*, void*) {
  not_built();
}
void embedding_forward(void*,
                       DType,
                       int64_t,
                       int64_t,
                       const int32_t*,
                       const int32_t*,
                       const int32_t*,
                       const void*,
                       const void*,
                       const void*,
                       void*) {
  not_built();
}
void embedding_backward(
    void*, DType, int64_t, int64_t, const int32_t*, int64_t, const void*, void*, void*) {
  not_built();
}
void join_qkv_gradients(void*,
                        DType,
                        int64_t,
                        int64_t,
                        int64_t,
                        const void*,
                        const void*,
                        const void*,
                        void*,
                        void*,
                        void*) {
  not_built();
}
void gather_rows(void*, DType, int64_t, int64_t, const void*, const int32_t*, void*) {
  not_built();
}
void scatter_rows(void*, DType, int64_t, int64_t, int64_t, const void*, const int32_t*, void*) {
  not_built();
}
void span_loss_forward(void*,
                       int64_t,
                       int64_t,
                       const float*,
                       const int32_t*,
                       const int32_t*,
                       float,
                       float,
                       float*,
                       float*) {
  not_built();
}
void span_loss_backward(void*,
                        int64_t,
                        int64_t,
                        const float*,
                        const int32_t*,
                        const int32_t*,
                        const float*,
                        float,
                        float,
                        float*) {
  not_built();
}
void take_logits(void*,
                 DType,
                 int64_t,
                 int64_t,
                 int64_t,
                 const void*,
                 const int32_t*,
                 float*,
                 float*,
                 float*,
                 float*) {
  not_built();
}
void logits_backward(void*,
                     DType,
                     int64_t,
                     int64_t,
                     int64_t,
                     void*,
                     const int32_t*,
                     const float*,
                     float,
                     float,
                     float) {
  not_built();
}
void zero(void*, void*, int64_t) {
  not_built();
}

}  // namespace ferry::ops::cuda
