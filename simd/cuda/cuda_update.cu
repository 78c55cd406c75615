// Updates on a GPU, over every rule and every choice of states and master. States in blocks: a warp
// takes a block.

#include "simd/cuda/cuda_kernels.h"
#include "simd/cuda/cuda_packs.h"
#include "simd/update/rules.h"

namespace ferry::simd::cuda {
namespace {

/** The master and what is written with it. */
template <class Grad, class Weight>
struct Arrays {
  float* master;
  const Grad* grad;
  Weight* weights;

  template <int kPack>
  __device__ Pack<float, kPack> load(int64_t i) const {
    return load_pack<kPack>(master + i);
  }
  template <int kPack>
  __device__ void store(int64_t i, const Pack<float, kPack>& p) const {
    store_pack<kPack>(master + i, p);
    if constexpr (!is_none<Weight>) {
      Pack<Weight, kPack> rounded;
#pragma unroll
      for (int k = 0; k < kPack; ++k)
        from_float(p.x[k], &rounded.x[k]);
      store_pack<kPack>(weights + i, rounded);
    }
  }
  bool fits() const {
    return fits_packs(master) && fits_packs(grad) && fits_packs(weights);
  }
};

template <class Grad>
struct Arrays<Grad, Split> {
  uint16_t* low;
  const Grad* grad;
  uint16_t* high;

  template <int kPack>
  __device__ Pack<float, kPack> load(int64_t i) const {
    const auto highs = load_pack<kPack>(high + i), lows = load_pack<kPack>(low + i);
    Pack<float, kPack> p;
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      p.x[k] = float_of(join_halves(highs.x[k], lows.x[k]));
    return p;
  }
  template <int kPack>
  __device__ void store(int64_t i, const Pack<float, kPack>& p) const {
    Pack<uint16_t, kPack> highs, lows;
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      split_bits(bits_of(p.x[k]), &highs.x[k], &lows.x[k]);
    store_pack<kPack>(high + i, highs);
    store_pack<kPack>(low + i, lows);
  }
  bool fits() const {
    return fits_packs(low) && fits_packs(grad) && fits_packs(high);
  }
};

template <class Grad, class Weight>
Arrays<Grad, Weight> arrays_of(const UpdateArgs& args) {
  const auto* grad = static_cast<const Grad*>(args.grad);
  if constexpr (is_split<Weight>)
    return {static_cast<uint16_t*>(args.master), grad, static_cast<uint16_t*>(args.weights)};
  else
    return {static_cast<float*>(args.master), grad, static_cast<Weight*>(args.weights)};
}

struct Noise {
  int64_t first_element;
  uint32_t key;

  __device__ uint32_t at(int64_t i) const {
    return noise_word<ScalarMath>(noise_counter(first_element + i, key));
  }
  __device__ uint32_t in_block_at(int64_t i) const {
    return block_noise_word(first_element + i, key);
  }
};

/** State: float or Bfloat. */
template <class Rule, class State, class Grad, class Weight>
struct UpdateOp {
  static constexpr int kStates = Rule::kStates;
  Arrays<Grad, Weight> arrays;
  State* states[kStateRoom<Rule>];
  UpdateStep step;
  Noise noise;

  template <int kPack>
  __device__ void run(int64_t i) const {
    const Factors<ScalarMath> factors(step);
    auto p_pack = arrays.template load<kPack>(i);
    Pack<State, kPack> packs[kStateRoom<Rule>];
#pragma unroll
    for (int s = 0; s < kStates; ++s)
      packs[s] = load_pack<kPack>(states[s] + i);
    const auto g_pack = load_pack<kPack>(arrays.grad + i);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      float now[kStateRoom<Rule>] = {};
#pragma unroll
      for (int s = 0; s < kStates; ++s)
        now[s] = to_float(packs[s].x[k]);
      update_element<Rule, ScalarMath>(p_pack.x[k], now, to_float(g_pack.x[k]), factors);
#pragma unroll
      for (int s = 0; s < kStates; ++s) {
        if constexpr (sizeof(State) == sizeof(float))
          packs[s].x[k] = now[s];
        else
          packs[s].x[k].bits = static_cast<uint16_t>(
              bf16_state<ScalarMath>(bits_of(now[s]), noise.at(i + k), s) >> 16);
      }
    }
    arrays.template store<kPack>(i, p_pack);
#pragma unroll
    for (int s = 0; s < kStates; ++s)
      store_pack<kPack>(states[s] + i, packs[s]);
  }
  bool fits() const {
    bool all_fit = arrays.fits();
    for (int s = 0; s < kStates; ++s)
      all_fit = all_fit && fits_packs(states[s]);
    return all_fit;
  }
};

constexpr int kWarp = 32;
constexpr int kLaneElements = static_cast<int>(kStateBlock) / kWarp;

__device__ uint32_t warp_largest(uint32_t x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x = ScalarMath::max(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}

template <class Grad, class Weight>
struct UpdateBlocks {
  Arrays<Grad, Weight> arrays;
  uint8_t *m, *v, *m_exponents, *v_exponents;
  int64_t n;
  UpdateStep step;
  Noise noise;

  /** One block by one warp: turn t of a lane is the pack of kPack elements (t * 32 + lane) * kPack
   * of the block. A lane keeps what it computed until the block's largest values are known. */
  template <int kPack>
  __device__ void run(int64_t block, int lane) const {
    constexpr int kTurns = kLaneElements / kPack;
    const Factors<ScalarMath> factors(step);
    uint32_t base_m = block_base(m_exponents[block]), base_r = block_base(v_exponents[block]);
    uint32_t largest_m = 0, largest_r = 0;
    uint32_t new_m[kLaneElements], new_root[kLaneElements];  // rounded
#pragma unroll
    for (int t = 0; t < kTurns; ++t) {
      const int64_t i = block * kStateBlock + (t * kWarp + lane) * kPack;
      if (i >= n) continue;
      auto p_pack = arrays.template load<kPack>(i);
      const auto m_pack = load_pack<kPack>(m + i), r_pack = load_pack<kPack>(v + i);
      const auto g_pack = load_pack<kPack>(arrays.grad + i);
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        uint32_t &m_kept = new_m[t * kPack + k], &root_kept = new_root[t * kPack + k];
        const uint32_t code_m = static_cast<uint32_t>(static_cast<int8_t>(m_pack.x[k]));
        const uint32_t code_r = r_pack.x[k];
        float now[2] = {float_of(decode_m<ScalarMath>(code_m, base_m) << 16),
                        float_of(decode_root<ScalarMath>(code_r, base_r) << 16)};
        update_element<AdamwRoots, ScalarMath>(p_pack.x[k], now, to_float(g_pack.x[k]), factors);
        const uint32_t word = noise.in_block_at(i + k);
        m_kept = (bits_of(now[0]) + block_noise_for_m<ScalarMath>(word)) >> 16;
        root_kept = (bits_of(now[1]) + block_noise_for_root<ScalarMath>(word)) >> 16;
        largest_m = ScalarMath::max(largest_m, magnitude<ScalarMath>(m_kept));
        largest_r = ScalarMath::max(largest_r, root_kept);
      }
      arrays.template store<kPack>(i, p_pack);
    }
    // The exchange is after every lane's reading of the exponents, so one lane may write them.
    const uint32_t exponent_m = block_exponent_m(warp_largest(largest_m));
    const uint32_t exponent_r = block_exponent_root(warp_largest(largest_r));
    if (lane == 0) {
      m_exponents[block] = static_cast<uint8_t>(exponent_m);
      v_exponents[block] = static_cast<uint8_t>(exponent_r);
    }
    base_m = block_base(exponent_m), base_r = block_base(exponent_r);
#pragma unroll
    for (int t = 0; t < kTurns; ++t) {
      const int64_t i = block * kStateBlock + (t * kWarp + lane) * kPack;
      if (i >= n) continue;
      Pack<uint8_t, kPack> m_pack, r_pack;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        m_pack.x[k] = encode_m(new_m[t * kPack + k], base_m);
        r_pack.x[k] =
            static_cast<uint8_t>(encode_root<ScalarMath>(new_root[t * kPack + k], base_r));
      }
      store_pack<kPack>(m + i, m_pack);
      store_pack<kPack>(v + i, r_pack);
    }
  }
};

template <bool kPacks, class Blocks>
__global__ void __launch_bounds__(kBlockThreads) over_blocks(Blocks blocks, int64_t n_blocks) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t n_warps = static_cast<int64_t>(gridDim.x) * kBlockThreads / kWarp;
  int64_t block =
      (static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) / kWarp;  // of the states
  for (; block < n_blocks; block += n_warps) {
    // A last block may end inside a pack.
    const bool whole = (block + 1) * kStateBlock <= blocks.n;
    if (kPacks && whole)
      blocks.template run<4>(block, lane);
    else
      blocks.template run<1>(block, lane);
  }
}

template <class Blocks>
void launch_blocks(const Blocks& blocks, bool packs, void* stream) {
  if (blocks.n <= 0) return;
  constexpr int64_t kWarps = kBlockThreads / kWarp, kMaxBlocks = int64_t{1} << 20;
  const int64_t n_blocks = state_blocks(blocks.n), n_needed = (n_blocks + kWarps - 1) / kWarps;
  const auto grid = static_cast<unsigned>(n_needed < kMaxBlocks ? n_needed : kMaxBlocks);
  const auto queue = static_cast<cudaStream_t>(stream);
  if (packs)
    over_blocks<true><<<grid, kBlockThreads, 0, queue>>>(blocks, n_blocks);
  else
    over_blocks<false><<<grid, kBlockThreads, 0, queue>>>(blocks, n_blocks);
  check(cudaGetLastError(), "update");
}

template <class Rule, class State, class Grad, class Weight>
void run_elements(const UpdateArgs& args, void* stream) {
  UpdateOp<Rule, State, Grad, Weight> op{
      arrays_of<Grad, Weight>(args), {}, args.step, {args.first_element, args.noise_key}};
  for (int s = 0; s < Rule::kStates; ++s)
    op.states[s] = static_cast<State*>(args.states[s].values);
  launch(op, args.n, op.fits(), stream, "update");
}

template <class Grad, class Weight>
void run_blocks(const UpdateArgs& args, void* stream) {
  const StateArray &m = args.states[0], &v = args.states[1];
  const UpdateBlocks<Grad, Weight> blocks{arrays_of<Grad, Weight>(args),
                                          static_cast<uint8_t*>(m.values),
                                          static_cast<uint8_t*>(v.values),
                                          m.exponents,
                                          v.exponents,
                                          args.n,
                                          args.step,
                                          {args.first_element, args.noise_key}};
  launch_blocks(blocks, blocks.arrays.fits() && fits_packs(blocks.m) && fits_packs(blocks.v),
                stream);
}

template <class Rule, class State, class Grad, class Weight>
void run(const UpdateArgs& args, void* stream) {
  if constexpr (is_block8<State>)
    run_blocks<Grad, Weight>(args, stream);
  else
    run_elements<Rule, State, Grad, Weight>(args, stream);
}

}  // namespace

void update(const UpdateArgs& args, void* stream) {
  simd::check(args);
  with_rule(args.optim, [&]<class Rule, class State>(Rule*, State*) {
    with_type(args.grad_type, "gradients", [&]<class Grad>(Grad*) {
      if (args.split_master)
        run<Rule, State, Grad, Split>(args, stream);
      else if (args.weights == nullptr || args.weights == args.master)
        run<Rule, State, Grad, NoWeights>(args, stream);
      else
        with_type(args.weights_type, "weights",
                  [&]<class Weight>(Weight*) { run<Rule, State, Grad, Weight>(args, stream); });
    });
  });
}

}  // namespace ferry::simd::cuda
