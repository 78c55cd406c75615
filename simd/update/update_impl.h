#pragma once
// Private to simd/: updates on vectors, over every rule and every choice of states and master.
// Included by kernels_impl.h, under its rules.

#include <type_traits>

#include "simd/lanes.h"
#include "simd/update/pairs.h"
#include "simd/update/update_loops.h"

namespace ferry::simd {

/** How far ahead of the loop an update asks for its inputs. */
inline constexpr int64_t kPrefetch_bytes = 1024;
inline constexpr int64_t kLine_bytes = 64;

template <class Arch>
struct UpdateFor {
  using L = Lanes<Arch>;
  using Value = typename L::Value;
  using Words = typename L::Words;
  using Halves = typename L::Halves;
  static constexpr int64_t kWidth = L::kWidth;
  static constexpr int64_t kPair = 2 * kWidth;
  /** One turn's elements: a whole line of the 16-bit arrays, so that streaming stores always fill
   * lines. */
  static constexpr int64_t kTurn = 32;

  template <int64_t kElements = kTurn, class T>
  static FERRY_INLINE void prefetch_turn(const T* from) {
    const char* ahead = reinterpret_cast<const char*>(from) + kPrefetch_bytes;
    for (int64_t at = 0; at < kElements * static_cast<int64_t>(sizeof(T)); at += kLine_bytes)
      _mm_prefetch(ahead + at, _MM_HINT_T0);
  }

  /** The order of the pairs of vectors that the loops go by. Beside fp32 states most arrays are of
   * 32 bits, whose even and odd elements would have to be sorted out and put together again. */
  template <class State>
  static constexpr PairOrder kOrder =
      std::is_same_v<State, float> ? PairOrder::halves : PairOrder::parity;

  /** The arrays of an update but the states. kStream: the new weights go past the caches, which
   * saves reading their lines first. The states and a split master were just read, so their lines
   * are at hand: ordinary stores. */
  template <class Grad, class Weight, class P, bool kStream>
  struct Arrays {
    const Grad* grad;
    float* master;
    uint16_t *high, *low;  // of a split master
    Weight* weights;

    explicit FERRY_INLINE Arrays(const UpdateArgs& args)
        : grad(static_cast<const Grad*>(args.grad)),
          master(static_cast<float*>(args.master)),
          high(static_cast<uint16_t*>(args.weights)),
          low(static_cast<uint16_t*>(args.master)),
          weights(static_cast<Weight*>(args.weights)) {}

    template <int64_t kElements = kTurn>
    FERRY_INLINE void prefetch(int64_t i) const {
      prefetch_turn<kElements>(grad + i);
      if constexpr (is_split<Weight>) {
        prefetch_turn<kElements>(high + i);
        prefetch_turn<kElements>(low + i);
      } else {
        prefetch_turn<kElements>(master + i);
      }
    }
    FERRY_INLINE void load(int64_t i, Value (&p)[2]) const {
      if constexpr (is_split<Weight>) {
        const Halves lower = L::load_halves(low + i);
        P::join(split_upper(L::load_halves(high + i), lower), lower, p);
      } else {
        P::load(master + i, p);
      }
    }
    FERRY_INLINE void store(int64_t i, const Value (&p)[2]) const {
      if constexpr (is_split<Weight>) {
        const Words first = L::bits(p[0]), second = L::bits(p[1]);
        const Halves lower = P::lower_halves(first, second);
        L::store_halves(low + i, lower);
        L::store_halves(high + i, split_high(P::upper_halves(first, second), lower));
      } else {
        P::store(master + i, p);
        if constexpr (!is_none<Weight>) P::template store<kStream>(weights + i, p);
      }
    }
  };

  /** Two vectors of new values, NaNs as the contract wants them. `states` of one value each. */
  template <class Rule, int n>
  static FERRY_INLINE void update_pair(Value (&p)[2],
                                       Value (&states)[n][2],
                                       const Value (&g)[2],
                                       const Factors<L>& factors) {
    Value now[2][n];
    for (int k = 0; k < 2; ++k) {
      for (int s = 0; s < n; ++s)
        now[k][s] = states[s][k];
      Rule::template apply<L>(p[k], now[k], L::mul(g[k], factors.grad_multiplier), factors);
    }
    if (L::any_nan(p[0], p[1])) {
      for (int k = 0; k < 2; ++k)
        make_canonical<L>(p[k], now[k]);
    }
    for (int k = 0; k < 2; ++k)
      for (int s = 0; s < n; ++s)
        states[s][k] = now[k][s];
  }

  /** Whole turns from `i` on; returns where it stopped. State: float or Bfloat. */
  template <class Rule, class State, class Grad, class Weight, bool kStream>
  static FERRY_INLINE int64_t turns(const UpdateArgs& args, int64_t i) {
    using P = Pairs<Arch, kOrder<State>>;
    constexpr int kStates = Rule::kStates;
    const Arrays<Grad, Weight, P, kStream> arrays(args);
    State* all_states[kStateRoom<Rule>];
    for (int s = 0; s < kStates; ++s)
      all_states[s] = static_cast<State*>(args.states[s].values);
    const Factors<L> factors(args.step);
    Words counters[2];
    for (int k = 0; k < 2; ++k)
      counters[k] = Words(noise_counter(args.first_element + i, args.noise_key)) +
                    P::offsets(k) * Words(kNoiseStride);
    for (; i + kTurn <= args.n; i += kTurn) {
      arrays.prefetch(i);
      for (int s = 0; s < kStates; ++s)
        prefetch_turn(all_states[s] + i);
      for (int64_t j = i; j < i + kTurn; j += kPair) {
        Value p[2], g[2], states[kStateRoom<Rule>][2];
        arrays.load(j, p);
        for (int s = 0; s < kStates; ++s)
          P::load(all_states[s] + j, states[s]);
        P::load(arrays.grad + j, g);
        update_pair<Rule>(p, states, g, factors);
        arrays.store(j, p);
        if constexpr (std::is_same_v<State, float>) {
          for (int s = 0; s < kStates; ++s)
            P::store(all_states[s] + j, states[s]);
        } else {
          Words rounded[kStateRoom<Rule>][2];
          for (int k = 0; k < 2; ++k) {
            const Words word = noise_word<L>(counters[k]);
            counters[k] = counters[k] + Words(static_cast<uint32_t>(kPair) * kNoiseStride);
            for (int s = 0; s < kStates; ++s)
              rounded[s][k] = bf16_state<L>(L::bits(states[s][k]), word, s);
          }
          for (int s = 0; s < kStates; ++s)
            L::store_halves(&all_states[s][j].bits, P::upper_halves(rounded[s][0], rounded[s][1]));
        }
      }
    }
    return i;
  }

  /** For block8 states only. */
  using P8 = Pairs<Arch, PairOrder::parity>;
  /** The upper halves of a block of block8 states, kept until it is encoded. */
  struct Rounded {
    alignas(64) uint16_t m[kStateBlock], magnitude_m[kStateBlock], root[kStateBlock];
  };
  /** Elements that are encoded at once. */
  static constexpr int64_t kBlockTurn = 2 * kPair;
  struct Bases {
    Halves m, root;
    FERRY_INLINE Bases(const UpdateArgs& args, int64_t i)
        : m(L::half(block_base(args.states[0].exponents[i / kStateBlock]))),
          root(L::half(block_base(args.states[1].exponents[i / kStateBlock]))) {}
  };

  /** The noise added to a block's states before they are rounded, in the order of the pairs. */
  struct BlockNoise {
    alignas(64) uint32_t m[kStateBlock], root[kStateBlock];

    /** Fills in the noise of the block that begins at this element of the tensor. Its neighbours
     * have the same. */
    FERRY_INLINE void fill(int64_t element, uint32_t key) {
      static_assert(kPair % kNoiseLanes == 0);
      constexpr auto kLane = static_cast<uint32_t>(kNoiseLanes - 1);
      for (int k = 0; k < 2; ++k) {
        const Words offsets = P8::offsets(k);
        Words words = noise_word<L>(Words(noise_counter(noise_start(element), key)) +
                                    (offsets & Words(kLane)) * Words(kNoiseStride)) +
                      (offsets >> kNoiseLaneBits) * Words(kNoiseStep);
        for (int64_t j = k * kWidth; j < kStateBlock; j += kPair) {
          block_noise_for_m<L>(words).store_aligned(m + j);
          block_noise_for_root<L>(words).store_aligned(root + j);
          words = words + Words(static_cast<uint32_t>(kPair / kNoiseLanes) * kNoiseStep);
        }
      }
    }
  };

  /** The codes of a turn, from element i of the arrays and j of its block on. */
  static FERRY_INLINE void encode_turn(
      const UpdateArgs& args, int64_t i, const Rounded& rounded, int64_t j, const Bases& bases) {
    const auto at = [&](const uint16_t* halves, int64_t k) {
      return L::load_halves(halves + j + k * kPair);
    };
    L::store_signed_bytes(static_cast<uint8_t*>(args.states[0].values) + i,
                          encode_magnitude<L>(at(rounded.magnitude_m, 0), bases.m),
                          encode_magnitude<L>(at(rounded.magnitude_m, 1), bases.m),
                          at(rounded.m, 0), at(rounded.m, 1));
    L::store_bytes(static_cast<uint8_t*>(args.states[1].values) + i,
                   encode_root<L>(at(rounded.root, 0), bases.root),
                   encode_root<L>(at(rounded.root, 1), bases.root));
  }

  /** Updates the block from `i` on but for its codes, which `now` is to become; meanwhile encodes
   * `before`, the block before, if there is one. */
  template <class Arrays>
  static FERRY_INLINE void update_block(const UpdateArgs& args,
                                        const Arrays& arrays,
                                        const Factors<L>& factors,
                                        const BlockNoise& noise,
                                        int64_t i,
                                        Rounded& now,
                                        const Rounded* before) {
    const auto* codes_m = static_cast<uint8_t*>(args.states[0].values);
    const auto* codes_r = static_cast<uint8_t*>(args.states[1].values);
    const int64_t i_before = before != nullptr ? i - kStateBlock : i;
    const Bases bases(args, i), bases_before(args, i_before);
    Halves largest_m = L::half(0), largest_r = L::half(0);
    for (int64_t turn = 0; turn < kStateBlock; turn += kBlockTurn) {
      arrays.template prefetch<kBlockTurn>(i + turn);
      prefetch_turn<kBlockTurn>(codes_m + i + turn);
      prefetch_turn<kBlockTurn>(codes_r + i + turn);
      for (int64_t j = turn; j < turn + kBlockTurn; j += kPair) {
        Value p[2], g[2], states[2][2];  // m, r
        arrays.load(i + j, p);
        P8::widen(decode_m<L>(L::load_signed_halves(codes_m + i + j), bases.m), states[0]);
        P8::widen(decode_root<L>(L::load_halves(codes_r + i + j), bases.root), states[1]);
        P8::load(arrays.grad + i + j, g);
        update_pair<AdamwRoots>(p, states, g, factors);
        arrays.store(i + j, p);
        Words new_m[2], new_r[2];
        for (int k = 0; k < 2; ++k) {
          new_m[k] = L::bits(states[0][k]) + Words::load_aligned(noise.m + j + k * kWidth);
          new_r[k] = L::bits(states[1][k]) + Words::load_aligned(noise.root + j + k * kWidth);
        }
        const Halves halves_m = P8::upper_halves(new_m[0], new_m[1]);
        const Halves halves_r = P8::upper_halves(new_r[0], new_r[1]);
        const Halves magnitude_m = magnitude<L>(halves_m);
        L::store_halves(now.m + j, halves_m);
        L::store_halves(now.magnitude_m + j, magnitude_m);
        L::store_halves(now.root + j, halves_r);
        largest_m = L::max(largest_m, magnitude_m);
        largest_r = L::max(largest_r, halves_r);
      }
      if (before != nullptr) encode_turn(args, i_before + turn, *before, turn, bases_before);
    }
    args.states[0].exponents[i / kStateBlock] =
        static_cast<uint8_t>(block_exponent_m(L::largest(largest_m)));
    args.states[1].exponents[i / kStateBlock] =
        static_cast<uint8_t>(block_exponent_root(L::largest(largest_r)));
  }

  /** Whole blocks of block8 states from `i` on; returns where it stopped. */
  template <class Grad, class Weight, bool kStream>
  static FERRY_INLINE int64_t blocks(const UpdateArgs& args, int64_t i) {
    const Arrays<Grad, Weight, P8, kStream> arrays(args);
    const Factors<L> factors(args.step);
    // A block's encoding must wait for its largest values. It is done between the turns of the next
    // block, whose divisions and roots leave room for it.
    Rounded rounded[2];
    const Rounded* before = nullptr;
    BlockNoise noise;
    for (; i + kStateBlock <= args.n; i += kStateBlock) {
      const int64_t element = args.first_element + i;
      if (before == nullptr || element == noise_start(element)) noise.fill(element, args.noise_key);
      Rounded& now = rounded[i / kStateBlock % 2];
      update_block(args, arrays, factors, noise, i, now, before);
      before = &now;
    }
    if (before != nullptr) {
      const Bases bases(args, i - kStateBlock);
      for (int64_t j = 0; j < kStateBlock; j += kBlockTurn)
        encode_turn(args, i - kStateBlock + j, *before, j, bases);
    }
    return i;
  }

  template <class Grad, class Weight>
  static void blocks_typed(const UpdateArgs& args) {
    int64_t i = 0;
    // A tensor's start lies on a line, and every block after it.
    if constexpr (has_own_weights<Weight>) {
      if (reinterpret_cast<uintptr_t>(args.weights) % kLine_bytes == 0) {
        i = blocks<Grad, Weight, true>(args, i);
        _mm_sfence();  // the caller's next lock or flag must not overtake the streamed lines
      }
    }
    if (i == 0) i = blocks<Grad, Weight, false>(args, i);
    update_block_loop<Grad, Weight>(args, i, args.n);
  }

  template <class Rule, class State, class Grad, class Weight>
  static void turns_typed(const UpdateArgs& args) {
    int64_t i = 0;
    if constexpr (!has_own_weights<Weight>) {
      i = turns<Rule, State, Grad, Weight, false>(args, i);
    } else {
      // Streaming needs the weights on a line: up to there one by one (never, for a tensor's
      // start).
      i = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(args.weights) % kLine_bytes /
                               sizeof(Weight));
      i = i < args.n ? i : args.n;
      update_loop<Rule, State, Grad, Weight>(args, 0, i);
      i = turns<Rule, State, Grad, Weight, true>(args, i);
      _mm_sfence();  // the caller's next lock or flag must not overtake the streamed lines
    }
    update_loop<Rule, State, Grad, Weight>(args, i, args.n);
  }

  static void update(const UpdateArgs& args) {
    with_update_types(args, [&]<class Rule, class State, class Grad, class Weight>(Rule*, State*,
                                                                                   Grad*, Weight*) {
      if constexpr (is_block8<State>)
        blocks_typed<Grad, Weight>(args);
      else
        turns_typed<Rule, State, Grad, Weight>(args);
    });
  }
};

}  // namespace ferry::simd
