// The scalar level: the reference that every other level must equal bit for bit. Compiled for
// baseline x86-64, so it also serves CPUs without AVX2 (fused multiply-add is then the C library's,
// exact but slow).

#include <cstring>

#include "simd/kernel_table.h"
#include "simd/update/update_loops.h"

namespace ferry::simd {
namespace {

void update_scalar(const UpdateArgs& args) {
  with_update_types(
      args, [&]<class Rule, class State, class Grad, class Weight>(Rule*, State*, Grad*, Weight*) {
        any_update_loop<Rule, State, Grad, Weight>(args, 0, args.n);
      });
}

void f32_to_f16_scalar(uint16_t* to, const float* from, int64_t n) {
  convert_loop(reinterpret_cast<Half*>(to), from, 0, n);
}
void f32_to_bf16_scalar(uint16_t* to, const float* from, int64_t n) {
  convert_loop(reinterpret_cast<Bfloat*>(to), from, 0, n);
}
void f16_to_f32_scalar(float* to, const uint16_t* from, int64_t n) {
  convert_loop(to, reinterpret_cast<const Half*>(from), 0, n);
}
void bf16_to_f32_scalar(float* to, const uint16_t* from, int64_t n) {
  convert_loop(to, reinterpret_cast<const Bfloat*>(from), 0, n);
}

void accumulate_scalar(float* sum, const void* grad, DType grad_type, int64_t n) {
  with_element_type(grad_type, [&]<class Grad>(Grad*) {
    accumulate_loop(sum, static_cast<const Grad*>(grad), 0, n);
  });
}

void square_sum_chunks_scalar(const void* grad, DType grad_type, int64_t n, double* chunk_sums) {
  with_element_type(grad_type, [&]<class Grad>(Grad*) {
    for (int64_t begin = 0; begin < n; begin += kNormChunk) {
      double lanes[kNormLanes] = {};
      square_loop(lanes, static_cast<const Grad*>(grad) + begin, 0,
                  n - begin < kNormChunk ? n - begin : kNormChunk);
      *chunk_sums++ = fold_lanes(lanes);
    }
  });
}

void dropout_mask_scalar(
    uint8_t* keep, int64_t n, uint64_t first_element, uint64_t key, uint32_t threshold) {
  dropout_mask_loop(keep, 0, n, first_element, key, threshold);
}

void dropout_apply_scalar(
    void* out, const void* in, DType type, const uint8_t* keep, int64_t n, float scale) {
  with_element_type(type, [&]<class T>(T*) {
    dropout_apply_loop(static_cast<T*>(out), static_cast<const T*>(in), keep, 0, n, scale);
  });
}

}  // namespace

const KernelTable kScalarKernels = {
    update_scalar,       f32_to_f16_scalar, f32_to_bf16_scalar,       f16_to_f32_scalar,
    bf16_to_f32_scalar,  accumulate_scalar, square_sum_chunks_scalar, dropout_mask_scalar,
    dropout_apply_scalar};

}  // namespace ferry::simd
