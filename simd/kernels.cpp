// The public entries of kernels.h: check types, set the floating-point environment, call the
// level's table.

#include "simd/kernels.h"

#include <fmt/format.h>
#include <xmmintrin.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "simd/adamw/reduced_states.h"
#include "simd/kernel_table.h"
#include "simd/philox.h"
#include "simd/random.h"
#include "src/base/error.h"

namespace ferry::simd {
namespace {

/** Round to nearest, keep subnormals, for the life of the object: libraries switch these per
 * thread. */
class StandardArithmetic {
 public:
  StandardArithmetic() : saved_(_mm_getcsr()) {
    if ((saved_ & kControlBits) != kStandard) _mm_setcsr((saved_ & ~kControlBits) | kStandard);
  }
  ~StandardArithmetic() {
    if ((saved_ & kControlBits) != kStandard) _mm_setcsr(saved_);
  }
  StandardArithmetic(const StandardArithmetic&) = delete;
  StandardArithmetic& operator=(const StandardArithmetic&) = delete;

 private:
  // Flush to zero, rounding, exception masks, denormals are zero; the standard masks all
  // exceptions.
  static constexpr unsigned kControlBits = 0xffc0, kStandard = 0x1f80;
  unsigned saved_;
};

bool is_float_type(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

double power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

}  // namespace

AdamwStep make_adamw_step(const AdamwHyper& hyper, int64_t t, float grad_multiplier) {
  FERRY_CHECK(t >= 1, "AdamW counts steps from 1, this is step {}", t);
  const StandardArithmetic arithmetic;
  const double correction1 = 1.0 - power(hyper.beta1, t), correction2 = 1.0 - power(hyper.beta2, t);
  return {.grad_multiplier = grad_multiplier,
          .one_minus_beta1 = static_cast<float>(1.0 - hyper.beta1),
          .beta2 = static_cast<float>(hyper.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - hyper.beta2),
          .correction2 = static_cast<float>(1.0 / std::sqrt(correction2)),
          .eps = static_cast<float>(hyper.eps),
          .step_size = static_cast<float>(hyper.lr / correction1),
          .decay = static_cast<float>(hyper.lr * hyper.weight_decay),
          .noise = 0};
}

uint32_t noise_key(const AdamwStep& step, int block, int64_t offset) {
  const auto place = static_cast<uint64_t>(block) << 48 ^ static_cast<uint64_t>(offset);
  return static_cast<uint32_t>(splitmix64(step.noise ^ place) >> 32);
}

AdamwArgs part_of(const AdamwArgs& args, int64_t begin, int64_t n) {
  const auto at = []<class T>(T* base, int64_t n_bytes) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return base == nullptr ? base : static_cast<T*>(static_cast<Byte*>(base) + n_bytes);
  };
  const auto size = [](DType type) { return static_cast<int64_t>(size_of(type)); };
  AdamwArgs part = args;
  part.master = at(args.master, begin * (args.split_master ? 2 : 4));
  part.m = at(args.m, state_value_bytes(args.states, begin));
  part.v = at(args.v, state_value_bytes(args.states, begin));
  part.grad = at(args.grad, begin * size(args.grad_type));
  part.weights = at(args.weights, begin * size(args.weights_type));
  if (args.states == StateType::block8) {
    FERRY_CHECK(begin % kStateBlock == 0, "8-bit states cut at element {}", begin);
    part.m_exponents += begin / kStateBlock;
    part.v_exponents += begin / kStateBlock;
  }
  part.first_element += begin;
  part.n = n;
  return part;
}

void check(const AdamwArgs& args) {
  FERRY_CHECK(is_float_type(args.grad_type), "gradients are {}", name_of(args.grad_type));
  FERRY_CHECK(args.weights == nullptr || is_float_type(args.weights_type), "weights are {}",
              name_of(args.weights_type));
  FERRY_CHECK(
      args.weights != args.master || args.weights == nullptr || args.weights_type == DType::f32,
      "weights that are the master must be fp32, not {}", name_of(args.weights_type));
  FERRY_CHECK(!args.split_master || (args.weights != nullptr && args.weights_type == DType::bf16),
              "the upper halves of a split master are bf16 weights");
  FERRY_CHECK(args.states != StateType::block8 || args.first_element % kStateBlock == 0,
              "8-bit states from element {}, inside a block", args.first_element);
}

void adamw(const AdamwArgs& args) {
  check(args);
  const StandardArithmetic arithmetic;
  kernels().adamw(args);
}

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
  FERRY_CHECK(is_float_type(grad_type), "gradients are {}", name_of(grad_type));
  const StandardArithmetic arithmetic;
  kernels().accumulate(sum, grad, grad_type, n);
}
void accumulate_first(float* sum, const void* grad, DType grad_type, int64_t n) {
  convert(sum, DType::f32, grad, grad_type, n);
}

void square_sum_chunks(const void* grad, DType grad_type, int64_t n, double* chunk_sums) {
  FERRY_CHECK(is_float_type(grad_type), "gradients are {}", name_of(grad_type));
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
  FERRY_CHECK(is_float_type(grad_type), "gradients are {}", name_of(grad_type));
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
  FERRY_CHECK(is_float_type(type), "dropout of {}", name_of(type));
  FERRY_CHECK(p >= 0.0f && p < 1.0f, "dropout probability {}, expected 0 <= p < 1", p);
  const StandardArithmetic arithmetic;
  kernels().dropout_apply(out, in, type, keep, n, dropout_scale(p));
}

}  // namespace ferry::simd
