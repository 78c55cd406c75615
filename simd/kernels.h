#pragma once
// CPU kernels on raw pointers: AdamW, conversions, gradient sums, the norm tree, dropout. Called by
// offload/'s optimizer pipeline and by the CPU layer operations; cuda_kernels.h is the same on a
// GPU, with the same bits. Each result element depends only on the input elements of its index:
// alignment, chunking, threads, vector width and tails change no bit. Pointers need their element's
// natural alignment (4 bytes fp32, 2 bytes fp16 and bf16). The kernels set round-to-nearest and
// gradual underflow for themselves, whatever the calling thread has set. NaN: a NaN that arithmetic
// makes or passes on is always 0x7fc00000; conversions keep sign and leading payload bits.
//
//   const AdamwStep step = make_adamw_step({.lr = 2e-5}, /*step=*/1, /*grad_multiplier=*/1.0f);
//   adamw({master, m, v, grad, DType::bf16, weights, DType::bf16, n, step});

#include <cstdint>

#include "simd/adamw/adam_states.h"
#include "simd/level.h"
#include "src/base/dtype.h"

namespace ferry::simd {

/** Give a task at least this many elements when spreading a kernel over threads (a multiple of the
 * norm's chunk). */
inline constexpr int64_t kTask_elements = 64 * 1024;

struct AdamwHyper {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
};

/** The factors of one step, computed in double and each rounded once to fp32. */
struct AdamwStep {
  float grad_multiplier;  // clip factor x 1 / loss scale
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float correction2;  // 1 / sqrt(1 - beta2^t)
  float eps;
  float step_size;     // lr / (1 - beta1^t)
  float decay;         // lr * weight_decay
  uint64_t noise = 0;  // the step's random number: what reduced states round by
};

/** Factors of step t = 1, 2, ...; beta^t by repeated squaring, so every C library gives the same
 * bits. */
AdamwStep make_adamw_step(const AdamwHyper& hyper, int64_t t, float grad_multiplier);

/** Arrays of n elements that do not overlap (but weights == master is allowed for fp32: nothing
 * more is written). */
struct AdamwArgs {
  void* master;  // fp32; int16 where split_master
  void* m;       // of type `states`
  void* v;
  const void* grad;
  DType grad_type;  // f32, f16, bf16
  void* weights;    // new weights, or null
  DType weights_type;
  int64_t n;
  AdamwStep step;
  StateType states = StateType::fp32;
  /** The bf16 weights are the upper halves of the master, `master` the lower ones: fp32 bits =
   * (weights << 16) + master, exactly, and weights = (bits + 0x8000) >> 16: the nearest bf16, ties
   * away from zero. See split_f32(). */
  bool split_master = false;
  uint8_t* m_exponents = nullptr;  // block8: (state_blocks(n)) biased exponents, zero at the start
  uint8_t* v_exponents = nullptr;
  /** For reduced states only: random bits for this step and tensor, and where in the tensor the
   * arrays begin; with block8 a multiple of kStateBlock. */
  uint32_t noise_key = 0;
  int64_t first_element = 0;
};

/** The noise_key of the tensor at this offset of a block's segments, in one step. */
uint32_t noise_key(const AdamwStep& step, int block, int64_t offset);

/** Elements [begin, begin + n) of the arrays. Begin is a multiple of kStateBlock for block8. */
AdamwArgs part_of(const AdamwArgs& args, int64_t begin, int64_t n);

/** Checks that the arguments do not contradict each other. */
void check(const AdamwArgs& args);

/** One AdamW step (torch.optim.AdamW: decoupled decay, eps outside the corrected root). Order of
 * operations, all fp32, each rounded to nearest even; fma(a, b, c) = a * b + c rounded once:
 *
 *     g = float(grad) * grad_multiplier
 *     m = fma(one_minus_beta1, g - m, m)
 *     v = fma(one_minus_beta2 * g, g, beta2 * v)
 *     r = sqrt(v)
 *     d = fma(r, correction2, eps)
 *     u = fma(step_size, m / d, decay * master)
 *     master = master - u
 *     weights = round to nearest even of master
 *
 * The decay joins the update before the one rounding against master: master * (1 - lr *
 * weight_decay) with a factor rounded to fp32 would miss small decays by several percent.
 *
 * Reduced states change what m and v are when the next step reads them, nothing else: the step
 * itself uses the fp32 m and v above. They round stochastically, up with the probability that makes
 * the mean of what is kept exact (of r in block8, so that over a long run v's is some percent
 * above): rounded to nearest, a v that changes by 1 - beta2 = 0.1 % a step would never move
 * by half of a bf16 step (0.2 to 0.4 %). The random word of an element is a function of noise_key
 * and its index modulo 2^32 (noise_word() and block_noise_word() in simd/adamw/reduced_states.h);
 * in block8, 16 blocks in a row have the words of the first.
 *
 * bf16: |m' - m| < 2^-7 |m| and |v' - v| < 2^-7 v (below 2^-126: 2^-133).
 *
 * block8: m as a sign and 7 bits, r in place of v as 8 bits: codes c of
 *
 *     m' = sign * (1 + c % 8 / 8) * 2^(E - 15 + c / 8), or 0 for c = 0
 *     r' = (1 + c % 16 / 16) * 2^(E - 15 + c / 16)
 *
 * with integer division, and E the exponent of the block's largest value once that is rounded (of
 * m's no less than -111). |m' - m| < 2^-3 |m| and |r' - r| < 2^-4 r, but at the end of the range:
 * below 2^-14 of the largest, or 1.125 x 2^-126, an m may become zero; and an r, zero too, that is
 * less than code 0 stands for becomes that, at most 2^-14 of the largest. So |m'| / r' < 1.2 |m| /
 * r everywhere: no rounding makes an update blow up. A block whose r are all zero keeps them. An
 * infinite or NaN m, or r, takes the others of its block to zero, or to 2^113; runs skip a step
 * with such gradients.
 */
void adamw(const AdamwArgs& args);

/** Round to nearest even; beyond the range becomes infinity, NaN stays NaN, subnormals are kept. */
void f32_to_f16(uint16_t* to, const float* from, int64_t n);
void f32_to_bf16(uint16_t* to, const float* from, int64_t n);
/** Exact. */
void f16_to_f32(float* to, const uint16_t* from, int64_t n);
void bf16_to_f32(float* to, const uint16_t* from, int64_t n);
/** fp32 as a split master holds it (AdamwArgs::split_master), every NaN as the canonical one, and
 * back again, exactly. */
void split_f32(uint16_t* high, uint16_t* low, const float* from, int64_t n);
void join_f32(float* to, const uint16_t* high, const uint16_t* low, int64_t n);
/** Any of the first four above, or a copy when the types are equal; f16 <-> bf16 is not offered. */
void convert(void* to, DType to_type, const void* from, DType from_type, int64_t n);

/** sum += float(grad); grad f32, f16 or bf16. */
void accumulate(float* sum, const void* grad, DType grad_type, int64_t n);
/** sum = float(grad): the first micro-batch. */
void accumulate_first(float* sum, const void* grad, DType grad_type, int64_t n);

/** The norm tree (design 5): chunks of 4096 of a block's gradients, which are its trained prefix
 * with zeros between tensors; in each, 64 double lanes, lane i summing the squares of the elements
 * i, i + 64, ... of the chunk in order; then lane i += lane i + 32, i + 16, ... i + 1; then chunk
 * sums in order. Squares of floats are exact in double, so fused or not
 * is the same. No finite input overflows a double sum: a sum is finite exactly when every element
 * is, which is the overflow test. */
inline constexpr int64_t kNormChunk = 4096;
inline constexpr int64_t kNormLanes = 64;
constexpr int64_t norm_chunks(int64_t n) {
  return (n + kNormChunk - 1) / kNormChunk;
}
/** Sums of the norm_chunks(n) chunks of grad. A caller that spreads them over threads splits at
 * chunks. */
void square_sum_chunks(const void* grad, DType grad_type, int64_t n, double* chunk_sums);
/** ((0 + x[0]) + x[1]) + ...: chunks to a block, blocks to the model. */
double sum_in_order(const double* values, int64_t n);
/** Both at once, where spreading is not worth it. */
double square_sum(const void* grad, DType grad_type, int64_t n);

/** keep[i] = 1 where Philox (philox.h) of element first_element + i under key is >= round(p *
 * 2^32), else 0. 0 <= p < 1. */
void dropout_mask(uint8_t* keep, int64_t n, uint64_t first_element, uint64_t key, float p);
/** out = keep ? float(in) * dropout_scale(p) rounded to the type : +0; out may be in. Forward and
 * backward alike. */
void dropout_apply(void* out, const void* in, DType type, const uint8_t* keep, int64_t n, float p);

}  // namespace ferry::simd
