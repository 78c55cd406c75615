#pragma once
// Private to simd/: AdamW on vectors, over every choice of states and master. Included by
// kernels_impl.h, under its rules.

#include "simd/adamw_loops.h"
#include "simd/lanes.h"

namespace ferry::simd {

/** How far ahead of the loop AdamW asks for its inputs. */
inline constexpr int64_t kPrefetch_bytes = 1024;
inline constexpr int64_t kLine_bytes = 64;

template <class Arch>
struct AdamwFor {
  using L = Lanes<Arch>;
  using Value = typename L::Value;
  using Words = typename L::Words;
  static constexpr int64_t kWidth = L::kWidth;
  /** One turn's elements: a whole line of the 16-bit arrays, so that streaming stores always fill
   * lines. */
  static constexpr int64_t kTurn = 32;

  template <class T>
  static FERRY_INLINE void prefetch_turn(const T* from) {
    const char* ahead = reinterpret_cast<const char*>(from) + kPrefetch_bytes;
    for (int64_t at = 0; at < kTurn * static_cast<int64_t>(sizeof(T)); at += kLine_bytes)
      _mm_prefetch(ahead + at, _MM_HINT_T0);
  }

  /** The arrays of an update but the states. kStream: the new weights go past the caches, which
   * saves reading their lines first. The states and a split master were just read, so their lines
   * are at hand: ordinary stores. */
  template <class Grad, class Weight, bool kStream>
  struct Arrays {
    const Grad* grad;
    float* master;
    uint16_t *high, *low;  // of a split master
    Weight* weights;

    explicit FERRY_INLINE Arrays(const AdamwArgs& args)
        : grad(static_cast<const Grad*>(args.grad)),
          master(static_cast<float*>(args.master)),
          high(static_cast<uint16_t*>(args.weights)),
          low(static_cast<uint16_t*>(args.master)),
          weights(static_cast<Weight*>(args.weights)) {}

    FERRY_INLINE void prefetch(int64_t i) const {
      prefetch_turn(grad + i);
      if constexpr (is_split<Weight>) {
        prefetch_turn(high + i);
        prefetch_turn(low + i);
      } else {
        prefetch_turn(master + i);
      }
    }
    FERRY_INLINE Value load(int64_t i) const {
      if constexpr (is_split<Weight>) {
        return L::from_bits(join_halves<L>(L::load_words(high + i), L::load_words(low + i)));
      } else {
        return L::load(master + i);
      }
    }
    FERRY_INLINE void store(int64_t i, Value p) const {
      if constexpr (is_split<Weight>) {
        L::store_words(high + i, split_high<L>(L::bits(p)));
        L::store_words(low + i, split_low<L>(L::bits(p)));
      } else {
        L::store(master + i, p);
        if constexpr (kStream) {
          L::stream(weights + i, p);
        } else if constexpr (!is_none<Weight>) {
          L::store(weights + i, p);
        }
      }
    }
  };

  /** The counters of the vector from element i of the arrays on. */
  static FERRY_INLINE Words noise_counters(const AdamwArgs& args, int64_t i) {
    return Words(noise_counter(args.first_element + i, args.noise_key)) +
           L::iota() * Words(kNoiseStride);
  }
  static constexpr uint32_t kVectorStride = static_cast<uint32_t>(kWidth) * kNoiseStride;

  /** Whole turns from `i` on; returns where it stopped. State: float or Bfloat. */
  template <class Grad, class Weight, class State, bool kStream>
  static FERRY_INLINE int64_t turns(const AdamwArgs& args, int64_t i) {
    const Arrays<Grad, Weight, kStream> arrays(args);
    auto *states_m = static_cast<State*>(args.m), *states_v = static_cast<State*>(args.v);
    const auto factors = adamw_factors<L>(args.step);
    Words counters = noise_counters(args, i);
    for (; i + kTurn <= args.n; i += kTurn) {
      arrays.prefetch(i);
      prefetch_turn(states_m + i);
      prefetch_turn(states_v + i);
      for (int64_t j = i; j < i + kTurn; j += kWidth) {
        Value p = arrays.load(j), m = L::load(states_m + j), v = L::load(states_v + j), root;
        adamw_element<L>(p, m, v, root, L::load(arrays.grad + j), factors);
        arrays.store(j, p);
        if constexpr (sizeof(State) == sizeof(float)) {
          L::store(states_m + j, m);
          L::store(states_v + j, v);
        } else {
          const Words word = noise_word<L>(counters);
          counters = counters + Words(kVectorStride);
          L::store_words(&states_m[j].bits, stochastic_bf16(L::bits(m), noise_for_m<L, 16>(word)));
          L::store_words(&states_v[j].bits, stochastic_bf16(L::bits(v), noise_for_v<L, 16>(word)));
        }
      }
    }
    return i;
  }

  /** Whole blocks of block8 states from `i` on; returns where it stopped. */
  template <class Grad, class Weight, bool kStream>
  static FERRY_INLINE int64_t blocks(const AdamwArgs& args, int64_t i) {
    const Arrays<Grad, Weight, kStream> arrays(args);
    auto *codes_m = static_cast<uint8_t*>(args.m), *codes_r = static_cast<uint8_t*>(args.v);
    const auto factors = adamw_factors<L>(args.step);
    Words counters = noise_counters(args, i);
    alignas(64) float new_m[kStateBlock], new_root[kStateBlock];
    for (; i + kStateBlock <= args.n; i += kStateBlock) {
      uint8_t& exponent_m = args.m_exponents[i / kStateBlock];
      uint8_t& exponent_r = args.v_exponents[i / kStateBlock];
      Words base_m(block_base(exponent_m)), base_r(block_base(exponent_r));
      Words largest_m(0u), largest_r(0u);
      for (int64_t turn = i; turn < i + kStateBlock; turn += kTurn) {
        arrays.prefetch(turn);
        prefetch_turn(codes_m + turn);
        prefetch_turn(codes_r + turn);
        for (int64_t j = turn; j < turn + kTurn; j += kWidth) {
          Value p = arrays.load(j);
          Value m = L::from_bits(decode_m<L>(L::load_words(codes_m + j), base_m));
          Value root = L::from_bits(decode_root<L>(L::load_words(codes_r + j), base_r));
          Value v = L::mul(root, root);
          adamw_element<L>(p, m, v, root, L::load(arrays.grad + j), factors);
          arrays.store(j, p);
          L::store(new_m + (j - i), m);
          L::store(new_root + (j - i), root);
          largest_m = L::max(largest_m, L::bits(m) & Words(0x7fffffffu));
          largest_r = L::max(largest_r, L::bits(root));
        }
      }
      exponent_m = static_cast<uint8_t>(block_exponent<kFractionDropped_m>(L::largest(largest_m)));
      exponent_r = static_cast<uint8_t>(block_exponent<kFractionDropped_v>(L::largest(largest_r)));
      base_m = Words(block_base(exponent_m)), base_r = Words(block_base(exponent_r));
      for (int64_t j = 0; j < kStateBlock; j += kWidth) {
        const Words word = noise_word<L>(counters);
        counters = counters + Words(kVectorStride);
        const Words m = L::bits(L::load(new_m + j)), root = L::bits(L::load(new_root + j));
        L::store_words(codes_m + i + j, encode_m<L>(m, word, base_m));
        L::store_words(codes_r + i + j, encode_root<L>(root, word, base_r));
      }
    }
    return i;
  }

  template <class Grad, class Weight>
  static void blocks_typed(const AdamwArgs& args) {
    int64_t i = 0;
    // A tensor's start lies on a line, and every block after it.
    if constexpr (has_own_weights<Weight>) {
      if (reinterpret_cast<uintptr_t>(args.weights) % kLine_bytes == 0) {
        i = blocks<Grad, Weight, true>(args, i);
        _mm_sfence();  // the caller's next lock or flag must not overtake the streamed lines
      }
    }
    if (i == 0) i = blocks<Grad, Weight, false>(args, i);
    adamw_block_loop<Grad, Weight>(args, i, args.n);
  }

  template <class Grad, class Weight, class State>
  static void turns_typed(const AdamwArgs& args) {
    int64_t i = 0;
    if constexpr (!has_own_weights<Weight>) {
      i = turns<Grad, Weight, State, false>(args, i);
    } else {
      // Streaming needs the weights on a line: up to there one by one (never, for a tensor's
      // start).
      i = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(args.weights) % kLine_bytes /
                               sizeof(Weight));
      i = i < args.n ? i : args.n;
      adamw_loop<Grad, Weight, State>(args, 0, i);
      i = turns<Grad, Weight, State, true>(args, i);
      _mm_sfence();  // the caller's next lock or flag must not overtake the streamed lines
    }
    adamw_loop<Grad, Weight, State>(args, i, args.n);
  }

  static void adamw(const AdamwArgs& args) {
    with_element_type(args.grad_type, [&]<class Grad>(Grad*) {
      with_weight_type(args, [&]<class Weight>(Weight*) {
        switch (args.states) {
          case StateType::fp32:
            return turns_typed<Grad, Weight, float>(args);
          case StateType::bf16:
            return turns_typed<Grad, Weight, Bfloat>(args);
          case StateType::block8:
            return blocks_typed<Grad, Weight>(args);
        }
      });
    });
  }
};

}  // namespace ferry::simd
