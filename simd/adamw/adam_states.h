#pragma once
// How Adam's states are kept (design 5): in fp32, or in fewer bytes by an explicit choice of the
// run. Sizes for the planner and the layout; what the bytes mean and how far they are off is said
// at adamw() in kernels.h.

#include <cstdint>

namespace ferry::simd {

/** The type of both m and v. */
enum class StateType : uint8_t {
  fp32,
  bf16,    ///< rounded stochastically
  block8,  ///< 8-bit floats whose exponents count from one exponent a block of elements
};

/** Elements with one exponent, counted from the tensor's start. Every tensor begins on a multiple
 * of it in its segment (models/tensor_table.h), so that a block never holds parts of two. */
inline constexpr int64_t kStateBlock = 256;
constexpr int64_t state_blocks(int64_t n_elements) {
  return (n_elements + kStateBlock - 1) / kStateBlock;
}

/** Bytes of m, or of v, of n elements without the exponents. */
constexpr int64_t state_value_bytes(StateType type, int64_t n_elements) {
  return n_elements * (type == StateType::fp32 ? 4 : type == StateType::bf16 ? 2 : 1);
}
/** The same with them: one byte a block behind the values. */
constexpr int64_t state_bytes(StateType type, int64_t n_elements) {
  return state_value_bytes(type, n_elements) +
         (type == StateType::block8 ? state_blocks(n_elements) : 0);
}

}  // namespace ferry::simd
