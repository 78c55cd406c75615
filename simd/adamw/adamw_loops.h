#pragma once
// Private to simd/: AdamW as plain loops over elements. kernels_scalar.cpp is made of these (the
// reference of the tests); the vector files finish their heads and tails with them.

#include "simd/adamw/reduced_states.h"
#include "simd/scalar_loops.h"

namespace ferry::simd {

/** Calls f with a null pointer to the type of the new weights: NoWeights, float, Half, Bfloat or
 * Split. */
template <class F>
FERRY_INLINE void with_weight_type(const AdamwArgs& args, F f) {
  if (args.split_master) {
    f(static_cast<Split*>(nullptr));
  } else if (args.weights == nullptr || args.weights == args.master) {
    f(static_cast<NoWeights*>(nullptr));
  } else {
    with_element_type(args.weights_type, f);
  }
}

template <class Weight>
FERRY_INLINE float master_at(const AdamwArgs& args, int64_t i) {
  return static_cast<const float*>(args.master)[i];
}
template <>
FERRY_INLINE float master_at<Split>(const AdamwArgs& args, int64_t i) {
  return float_of(join_halves(static_cast<const uint16_t*>(args.weights)[i],
                              static_cast<const uint16_t*>(args.master)[i]));
}

/** The new master, and the weights that come with it. */
template <class Weight>
FERRY_INLINE void set_master(const AdamwArgs& args, int64_t i, float p) {
  static_cast<float*>(args.master)[i] = p;
  if constexpr (!is_none<Weight>) from_float(p, static_cast<Weight*>(args.weights) + i);
}
template <>
FERRY_INLINE void set_master<Split>(const AdamwArgs& args, int64_t i, float p) {
  split_bits(bits_of(p), static_cast<uint16_t*>(args.weights) + i,
             static_cast<uint16_t*>(args.master) + i);
}

/** States of type State: float or Bfloat. */
template <class Grad, class Weight, class State>
FERRY_INLINE void adamw_loop(const AdamwArgs& args, int64_t begin, int64_t end) {
  const auto* grad = static_cast<const Grad*>(args.grad);
  auto *states_m = static_cast<State*>(args.m), *states_v = static_cast<State*>(args.v);
  const auto factors = adamw_factors<ScalarMath>(args.step);
  for (int64_t i = begin; i < end; ++i) {
    float p = master_at<Weight>(args, i), m = to_float(states_m[i]), v = to_float(states_v[i]);
    float root;
    adamw_element<ScalarMath>(p, m, v, root, to_float(grad[i]), factors);
    set_master<Weight>(args, i, p);
    if constexpr (sizeof(State) == sizeof(float)) {
      states_m[i] = m;
      states_v[i] = v;
    } else {
      const uint32_t word =
          noise_word<ScalarMath>(noise_counter(args.first_element + i, args.noise_key));
      states_m[i].bits = static_cast<uint16_t>(
          stochastic_bf16(bits_of(m), noise_for_m<ScalarMath, 16>(word)) >> 16);
      states_v[i].bits = static_cast<uint16_t>(
          stochastic_bf16(bits_of(v), noise_for_v<ScalarMath, 16>(word)) >> 16);
    }
  }
}

/** Block8 states; whole blocks, but the last, from `begin` on. */
template <class Grad, class Weight>
FERRY_INLINE void adamw_block_loop(const AdamwArgs& args, int64_t begin, int64_t end) {
  const auto* grad = static_cast<const Grad*>(args.grad);
  auto *codes_m = static_cast<uint8_t*>(args.m), *codes_r = static_cast<uint8_t*>(args.v);
  const auto factors = adamw_factors<ScalarMath>(args.step);
  uint32_t new_m[kStateBlock], new_root[kStateBlock];  // rounded
  for (; begin < end; begin += kStateBlock) {
    const int64_t n = end - begin < kStateBlock ? end - begin : kStateBlock;
    uint8_t& exponent_m = args.m_exponents[begin / kStateBlock];
    uint8_t& exponent_r = args.v_exponents[begin / kStateBlock];
    uint32_t base_m = block_base(exponent_m), base_r = block_base(exponent_r);
    uint32_t largest_m = 0, largest_r = 0;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t i = begin + j;
      float p = master_at<Weight>(args, i);
      const uint32_t code_m = static_cast<uint32_t>(static_cast<int8_t>(codes_m[i]));
      const uint32_t code_r = codes_r[i];
      float m = float_of(decode_m<ScalarMath>(code_m, base_m) << 16);
      float root = float_of(decode_root<ScalarMath>(code_r, base_r) << 16);
      float v = ScalarMath::mul(root, root);
      adamw_element<ScalarMath>(p, m, v, root, to_float(grad[i]), factors);
      set_master<Weight>(args, i, p);
      const uint32_t word = block_noise_word(args.first_element + i, args.noise_key);
      new_m[j] = (bits_of(m) + block_noise_for_m<ScalarMath>(word)) >> 16;
      new_root[j] = (bits_of(root) + block_noise_for_root<ScalarMath>(word)) >> 16;
      largest_m = ScalarMath::max(largest_m, magnitude<ScalarMath>(new_m[j]));
      largest_r = ScalarMath::max(largest_r, new_root[j]);
    }
    exponent_m = static_cast<uint8_t>(block_exponent_m(largest_m));
    exponent_r = static_cast<uint8_t>(block_exponent_root(largest_r));
    base_m = block_base(exponent_m), base_r = block_base(exponent_r);
    for (int64_t j = 0; j < n; ++j) {
      codes_m[begin + j] = encode_m(new_m[j], base_m);
      codes_r[begin + j] = static_cast<uint8_t>(encode_root<ScalarMath>(new_root[j], base_r));
    }
  }
}

}  // namespace ferry::simd
