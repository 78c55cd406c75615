#pragma once
// Private to simd/: updates as plain loops over elements. kernels_scalar.cpp is made of these (the
// reference of the tests); the vector files finish their heads and tails with them.

#include "simd/scalar_loops.h"
#include "simd/update/rules.h"

namespace ferry::simd {

/** Calls f with a null pointer to the type of the new weights: NoWeights, float, Half, Bfloat or
 * Split. */
template <class F>
FERRY_INLINE void with_weight_type(const UpdateArgs& args, F f) {
  if (args.split_master) {
    f(static_cast<Split*>(nullptr));
  } else if (args.weights == nullptr || args.weights == args.master) {
    f(static_cast<NoWeights*>(nullptr));
  } else {
    with_element_type(args.weights_type, f);
  }
}

template <class Weight>
FERRY_INLINE float master_at(const UpdateArgs& args, int64_t i) {
  return static_cast<const float*>(args.master)[i];
}
template <>
FERRY_INLINE float master_at<Split>(const UpdateArgs& args, int64_t i) {
  return float_of(join_halves(static_cast<const uint16_t*>(args.weights)[i],
                              static_cast<const uint16_t*>(args.master)[i]));
}

/** The new master, and the weights that come with it. */
template <class Weight>
FERRY_INLINE void set_master(const UpdateArgs& args, int64_t i, float p) {
  static_cast<float*>(args.master)[i] = p;
  if constexpr (!is_none<Weight>) from_float(p, static_cast<Weight*>(args.weights) + i);
}
template <>
FERRY_INLINE void set_master<Split>(const UpdateArgs& args, int64_t i, float p) {
  split_bits(bits_of(p), static_cast<uint16_t*>(args.weights) + i,
             static_cast<uint16_t*>(args.master) + i);
}

/** States of type State: float or Bfloat. */
template <class Rule, class State, class Grad, class Weight>
FERRY_INLINE void update_loop(const UpdateArgs& args, int64_t begin, int64_t end) {
  const auto* grad = static_cast<const Grad*>(args.grad);
  const Factors<ScalarMath> factors(args.step);
  for (int64_t i = begin; i < end; ++i) {
    float p = master_at<Weight>(args, i), states[kStateRoom<Rule>] = {};
    for (int s = 0; s < Rule::kStates; ++s)
      states[s] = to_float(static_cast<const State*>(args.states[s].values)[i]);
    update_element<Rule, ScalarMath>(p, states, to_float(grad[i]), factors);
    set_master<Weight>(args, i, p);
    if constexpr (sizeof(State) == sizeof(float)) {
      for (int s = 0; s < Rule::kStates; ++s)
        static_cast<State*>(args.states[s].values)[i] = states[s];
    } else {
      const uint32_t word =
          noise_word<ScalarMath>(noise_counter(args.first_element + i, args.noise_key));
      for (int s = 0; s < Rule::kStates; ++s)
        static_cast<State*>(args.states[s].values)[i].bits =
            static_cast<uint16_t>(bf16_state<ScalarMath>(bits_of(states[s]), word, s) >> 16);
    }
  }
}

/** Block8 states; whole blocks, but the last, from `begin` on. */
template <class Grad, class Weight>
FERRY_INLINE void update_block_loop(const UpdateArgs& args, int64_t begin, int64_t end) {
  const auto* grad = static_cast<const Grad*>(args.grad);
  const StateArray &m_array = args.states[0], &v_array = args.states[1];
  auto* codes_m = static_cast<uint8_t*>(m_array.values);
  auto* codes_r = static_cast<uint8_t*>(v_array.values);
  const Factors<ScalarMath> factors(args.step);
  uint32_t new_m[kStateBlock], new_root[kStateBlock];  // rounded
  for (; begin < end; begin += kStateBlock) {
    const int64_t n = end - begin < kStateBlock ? end - begin : kStateBlock;
    uint8_t& exponent_m = m_array.exponents[begin / kStateBlock];
    uint8_t& exponent_r = v_array.exponents[begin / kStateBlock];
    uint32_t base_m = block_base(exponent_m), base_r = block_base(exponent_r);
    uint32_t largest_m = 0, largest_r = 0;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t i = begin + j;
      const uint32_t code_m = static_cast<uint32_t>(static_cast<int8_t>(codes_m[i]));
      float p = master_at<Weight>(args, i);
      float states[2] = {float_of(decode_m<ScalarMath>(code_m, base_m) << 16),
                         float_of(decode_root<ScalarMath>(uint32_t{codes_r[i]}, base_r) << 16)};
      update_element<AdamwRoots, ScalarMath>(p, states, to_float(grad[i]), factors);
      set_master<Weight>(args, i, p);
      const uint32_t word = block_noise_word(args.first_element + i, args.noise_key);
      new_m[j] = (bits_of(states[0]) + block_noise_for_m<ScalarMath>(word)) >> 16;
      new_root[j] = (bits_of(states[1]) + block_noise_for_root<ScalarMath>(word)) >> 16;
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

/** Elements [begin, end) by the rule and the kind of states of the optimizer. */
template <class Rule, class State, class Grad, class Weight>
FERRY_INLINE void any_update_loop(const UpdateArgs& args, int64_t begin, int64_t end) {
  if constexpr (is_block8<State>)
    update_block_loop<Grad, Weight>(args, begin, end);
  else
    update_loop<Rule, State, Grad, Weight>(args, begin, end);
}

/** Calls f with null pointers to the types of rule, states, gradients and weights. */
template <class F>
FERRY_INLINE void with_update_types(const UpdateArgs& args, F f) {
  with_rule(args.optim, [&]<class Rule, class State>(Rule* rule, State* state) {
    with_element_type(args.grad_type, [&]<class Grad>(Grad* grad) {
      with_weight_type(args, [&]<class Weight>(Weight* weight) { f(rule, state, grad, weight); });
    });
  });
}

}  // namespace ferry::simd
