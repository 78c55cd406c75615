// The public entries of kernels.h: check types, set the floating-point environment, call the
// level's table.

#include "simd/kernels.h"

#include <fmt/format.h>
#include <cmath>
#include <cstring>

#include "simd/kernel_table.h"
#include "simd/philox.h"
#include "simd/standard_arithmetic.h"
#include "simd/update/reduced_states.h"
#include "src/base/error.h"

namespace ferry::simd {
namespace {}  // namespace

void f32_to_f16(uint16_t* to, const float* from, int64_t n) {
  const StandardArithmetic arithmetic;
  kernels().f32_to_f16(to, from, n);
}
void f32_to_bf16(uint16_t* to, const float* from, int64_t n) {
  const StandardArithmetic arithmetic;
  kernels().f32_to_bf16(to, from, n);
}
void f16_to_f32(float* to, const uint16_t* from, int64_t n) {
  const StandardArithmetic arithmetic;
  kernels().f16_to_f32(to, from, n);
}
void bf16_to_f32(float* to, const uint16_t* from, int64_t n) {
  const StandardArithmetic arithmetic;
  kernels().bf16_to_f32(to, from, n);
}

void split_f32(uint16_t* high, uint16_t* low, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    split_bits(bits_of(ScalarMath::canonical(from[i])), high + i, low + i);
  }
}
void join_f32(float* to, const uint16_t* high, const uint16_t* low, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = float_of(join_halves(high[i], low[i]));
}

void convert(void* to, DType to_type, const void* from, DType from_type, int64_t n) {
  if (to_type == from_type) {
    if (n > 0) std::memcpy(to, from, static_cast<size_t>(n) * size_of(to_type));
  } else if (from_type == DType::f32 && to_type == DType::f16) {
    f32_to_f16(static_cast<uint16_t*>(to), static_cast<const float*>(from), n);
  } else if (from_type == DType::f32 && to_type == DType::bf16) {
    f32_to_bf16(static_cast<uint16_t*>(to), static_cast<const float*>(from), n);
  } else if (from_type == DType::f16 && to_type == DType::f32) {
    f16_to_f32(static_cast<float*>(to), static_cast<const uint16_t*>(from), n);
  } else if (from_type == DType::bf16 && to_type == DType::f32) {
    bf16_to_f32(static_cast<float*>(to), static_cast<const uint16_t*>(from), n);
  } else {
    FERRY_CHECK(false, "no conversion from {} to {}", name_of(from_type), name_of(to_type));
  }
}

void accumulate(float* sum, const void* grad, DType grad_type, int64_t n) {
  FERRY_CHECK(is_float(grad_type), "gradients are {}", name_of(grad_type));
  const StandardArithmetic arithmetic;
  kernels().accumulate(sum, grad, grad_type, n);
}
void accumulate_first(float* sum, const void* grad, DType grad_type, int64_t n) {
  convert(sum, DType::f32, grad, grad_type, n);
}

void square_sum_chunks(const void* grad, DType grad_type, int64_t n, double* chunk_sums) {
  FERRY_CHECK(is_float(grad_type), "gradients are {}", name_of(grad_type));
  const StandardArithmetic arithmetic;
  kernels().square_sum_chunks(grad, grad_type, n, chunk_sums);
}

double sum_in_order(const double* values, int64_t n) {
  const StandardArithmetic arithmetic;
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i)
    sum += values[i];
  return std::isnan(sum) ? std::nan("") : sum;
}

double square_sum(const void* grad, DType grad_type, int64_t n) {
  FERRY_CHECK(is_float(grad_type), "gradients are {}", name_of(grad_type));
  const StandardArithmetic arithmetic;
  constexpr int64_t kAtOnce = 64;
  double chunk_sums[kAtOnce];
  double sum = 0.0;
  for (int64_t begin = 0; begin < n; begin += kAtOnce * kNormChunk) {
    const int64_t now = n - begin < kAtOnce * kNormChunk ? n - begin : kAtOnce * kNormChunk;
    const auto* from =
        static_cast<const char*>(grad) + static_cast<size_t>(begin) * size_of(grad_type);
    kernels().square_sum_chunks(from, grad_type, now, chunk_sums);
    for (int64_t i = 0; i < norm_chunks(now); ++i)
      sum += chunk_sums[i];
  }
  return std::isnan(sum) ? std::nan("") : sum;
}

void dropout_mask(uint8_t* keep, int64_t n, uint64_t first_element, uint64_t key, float p) {
  FERRY_CHECK(p >= 0.0f && p < 1.0f, "dropout probability {}, expected 0 <= p < 1", p);
  kernels().dropout_mask(keep, n, first_element, key, dropout_threshold(p));
}

void dropout_apply(void* out, const void* in, DType type, const uint8_t* keep, int64_t n, float p) {
  FERRY_CHECK(is_float(type), "dropout of {}", name_of(type));
  FERRY_CHECK(p >= 0.0f && p < 1.0f, "dropout probability {}, expected 0 <= p < 1", p);
  const StandardArithmetic arithmetic;
  kernels().dropout_apply(out, in, type, keep, n, dropout_scale(p));
}

}  // namespace ferry::simd
