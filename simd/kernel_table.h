#pragma once
// Private to simd/: the functions that each ISA's file provides. level.cpp picks a table,
// kernels.cpp calls it.

#include <cstdint>

#include "simd/kernels.h"

namespace ferry::simd {

/** Signatures as in kernels.h; the types were checked there. */
struct KernelTable {
  void (*update)(const UpdateArgs& args);
  void (*f32_to_f16)(uint16_t* to, const float* from, int64_t n);
  void (*f32_to_bf16)(uint16_t* to, const float* from, int64_t n);
  void (*f16_to_f32)(float* to, const uint16_t* from, int64_t n);
  void (*bf16_to_f32)(float* to, const uint16_t* from, int64_t n);
  void (*accumulate)(float* sum, const void* grad, DType grad_type, int64_t n);
  void (*square_sum_chunks)(const void* grad, DType grad_type, int64_t n, double* chunk_sums);
  void (*dropout_mask)(
      uint8_t* keep, int64_t n, uint64_t first_element, uint64_t key, uint32_t threshold);
  void (*dropout_apply)(
      void* out, const void* in, DType type, const uint8_t* keep, int64_t n, float scale);
};

extern const KernelTable kScalarKernels, kAvx2Kernels, kAvx512Kernels;

/** The table of the level in use; level() in level.h. */
const KernelTable& kernels();

}  // namespace ferry::simd
