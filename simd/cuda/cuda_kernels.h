#pragma once
// The kernels of kernels.h on a GPU (but dropout, which is in the layers' own), with the same bits:
// same order of operations, same norm tree, same random words. Called by the optimizer of blocks
// that stay on the GPU and by the gradient path. All pointers are device memory (or host memory
// that the device can address) unless said otherwise; each call enqueues on `stream` (a
// cudaStream_t; null is the default stream) and returns; the caller keeps the memory until the
// stream has passed. Errors of launches throw Error(machine). A build without CUDA has the same
// functions, which throw. Pointers need natural alignment; when all arrays start on 16 bytes the
// wide loads are used, same bits.

#include <cstdint>

#include "simd/kernels.h"

namespace ferry::simd::cuda {

/** True if this build has the kernels and a GPU answers. */
bool is_available();

void update(const UpdateArgs& args, void* stream);
/** As simd::convert: f32 <-> f16, f32 <-> bf16, or a copy. */
void convert(void* to, DType to_type, const void* from, DType from_type, int64_t n, void* stream);
void accumulate(float* sum, const void* grad, DType grad_type, int64_t n, void* stream);
void accumulate_first(float* sum, const void* grad, DType grad_type, int64_t n, void* stream);

/** The norm tree's chunk sums of the gradients. */
void square_sum_chunks(
    const void* grad, DType grad_type, int64_t n, double* chunk_sums, void* stream);
/** *sum = the norm tree of the gradients; chunk_sums: scratch of square_sum_scratch_bytes(n). */
constexpr int64_t square_sum_scratch_bytes(int64_t n) {
  return norm_chunks(n) * static_cast<int64_t>(sizeof(double));
}
void square_sum(
    const void* grad, DType grad_type, int64_t n, double* sum, double* chunk_sums, void* stream);

/** *sum = ((0 + x[0]) + x[1]) + ... */
void sum_in_order(const double* values, int64_t n, double* sum, void* stream);

}  // namespace ferry::simd::cuda
