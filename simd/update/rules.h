#pragma once
// Private to simd/: the rules of the optimizers. A rule is the arithmetic of one element, in a
// stated order that every ISA, the GPU and the scalar reference share, and the factors of a step
// that it reads. kStates is the number of its states.

#include "simd/update/adamw.h"
#include "simd/update/lion.h"
#include "simd/update/reduced_states.h"
#include "simd/update/sgd.h"

namespace ferry::simd {

/** In place of an element's type: 8-bit codes and exponents, of AdamW alone. */
struct Block8 {};
template <class State>
inline constexpr bool is_block8 = false;
template <>
inline constexpr bool is_block8<Block8> = true;

/** Calls f with null pointers to the rule and to the type that its states have. */
template <class F>
FERRY_INLINE void with_rule(Optim optim, F f) {
  switch (optim) {
    case Optim::adamw:
      return f(static_cast<Adamw*>(nullptr), static_cast<float*>(nullptr));
    case Optim::adamw_bf16:
      return f(static_cast<Adamw*>(nullptr), static_cast<Bfloat*>(nullptr));
    case Optim::adamw_8bit:
      return f(static_cast<AdamwRoots*>(nullptr), static_cast<Block8*>(nullptr));
    case Optim::lion:
      return f(static_cast<Lion*>(nullptr), static_cast<float*>(nullptr));
    case Optim::sgd:
      return f(static_cast<Sgd<false>*>(nullptr), static_cast<float*>(nullptr));
    case Optim::sgd_momentum:
      return f(static_cast<Sgd<true>*>(nullptr), static_cast<float*>(nullptr));
  }
}

/** Room for a rule's states: C++ has no array of none. */
template <class Rule>
inline constexpr int kStateRoom = Rule::kStates > 0 ? Rule::kStates : 1;

/** To be called where p has a NaN, which one in a state has reached: machines differ in sign and
 * payload of NaNs, so all become the same one. */
template <class Math, int n, class Value>
FERRY_INLINE void make_canonical(Value& p, Value (&states)[n]) {
  p = Math::canonical(p);
  for (int s = 0; s < n; ++s)
    states[s] = Math::canonical(states[s]);
}

/** One element's step, or that of one vector of them. */
template <class Rule, class Math, class Value>
FERRY_INLINE void update_element(Value& p,
                                 Value (&states)[kStateRoom<Rule>],
                                 Value g,
                                 const Factors<Math>& f) {
  Rule::template apply<Math>(p, states, Math::mul(g, f.grad_multiplier), f);
  if (Math::any_nan(p)) make_canonical<Math>(p, states);
}

}  // namespace ferry::simd
