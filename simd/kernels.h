#pragma once
// CPU kernels on raw pointers: updates, conversions, gradient sums, the norm tree, dropout. Called
// by offload/'s optimizer pipeline and by the CPU layer operations; cuda_kernels.h is the same on a
// GPU, with the same bits. Each result element depends only on the input elements of its index:
// alignment, chunking, threads, vector width and tails change no bit. Pointers need their element's
// natural alignment (4 bytes fp32, 2 bytes fp16 and bf16). The kernels set round-to-nearest and
// gradual underflow for themselves, whatever the calling thread has set. NaN: a NaN that arithmetic
// makes or passes on is always 0x7fc00000; conversions keep sign and leading payload bits.
//
//   const UpdateStep step = make_step(Optim::adamw, {.lr = 2e-5}, /*t=*/1, /*grad_multiplier=*/1);
//   update({master, {{m}, {v}}, grad, DType::bf16, weights, DType::bf16, n, step});

#include <cstdint>

#include "simd/level.h"
#include "simd/update/optim.h"
#include "src/base/dtype.h"

namespace ferry::simd {

/** Give a task at least this many elements when spreading a kernel over threads (a multiple of the
 * norm's chunk). */
inline constexpr int64_t kTask_elements = 64 * 1024;

/** The settings of all optimizers; each reads its own. */
struct UpdateHyper {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool nesterov = false;
};

/** The most numbers of a step that an optimizer reads. */
inline constexpr int kScalars_max = 8;

/** The factors of one step, computed in double and each rounded once to fp32. */
struct UpdateStep {
  float grad_multiplier = 1;         // clip factor x 1 / loss scale
  float scalars[kScalars_max] = {};  // by the Scalar of the optimizer's rule
  uint64_t noise = 0;                // the step's random number: what reduced states round by
};

/** Factors of step t = 1, 2, ... */
UpdateStep make_step(Optim optim, const UpdateHyper& hyper, int64_t t, float grad_multiplier);
/** A step that reads and writes all and changes no value. */
UpdateStep neutral_step(Optim optim);

/** One state of each element. */
struct StateArray {
  void* values = nullptr;        // of the optimizer's StateType
  uint8_t* exponents = nullptr;  // block8: (state_blocks(n)) biased exponents, zero at the start
};

/** Arrays of n elements that do not overlap (but weights == master is allowed for fp32: nothing
 * more is written). */
struct UpdateArgs {
  void* master;                    // fp32; int16 where split_master
  StateArray states[kStates_max];  // in the order of the optimizer's row
  const void* grad;
  DType grad_type;  // f32, f16, bf16
  void* weights;    // new weights, or null
  DType weights_type;
  int64_t n;
  UpdateStep step;
  Optim optim = Optim::adamw;
  /** The bf16 weights are the upper halves of the master, `master` the lower ones: fp32 bits =
   * (weights << 16) + master, exactly, and weights = (bits + 0x8000) >> 16: the nearest bf16, ties
   * away from zero. See split_f32(). */
  bool split_master = false;
  /** For reduced states only: random bits for this step and tensor, and where in the tensor the
   * arrays begin; a multiple of the optimizer's unit. */
  uint32_t noise_key = 0;
  int64_t first_element = 0;
};

/** The noise_key of the tensor at this offset of a block's segments, in one step. */
uint32_t noise_key(const UpdateStep& step, int block, int64_t offset);

/** Elements [begin, begin + n) of the arrays. Begin is a multiple of the optimizer's unit. */
UpdateArgs part_of(const UpdateArgs& args, int64_t begin, int64_t n);

/** Checks that the arguments do not contradict each other. */
void check(const UpdateArgs& args);

/** One step of the optimizer. Its header in simd/update states the order of operations. */
void update(const UpdateArgs& args);

/** Round to nearest even; beyond the range becomes infinity, NaN stays NaN, subnormals are kept. */
void f32_to_f16(uint16_t* to, const float* from, int64_t n);
void f32_to_bf16(uint16_t* to, const float* from, int64_t n);
/** Exact. */
void f16_to_f32(float* to, const uint16_t* from, int64_t n);
void bf16_to_f32(float* to, const uint16_t* from, int64_t n);
/** fp32 as a split master holds it (UpdateArgs::split_master), every NaN as the canonical one, and
 * back again, exactly. */
void split_f32(uint16_t* high, uint16_t* low, const float* from, int64_t n);
void join_f32(float* to, const uint16_t* high, const uint16_t* low, int64_t n);
/** Any of the first four above, or a copy when the types are equal; f16 <-> bf16 is not offered. */
void convert(void* to, DType to_type, const void* from, DType from_type, int64_t n);

/** sum += float(grad); grad f32, f16 or bf16. */
void accumulate(float* sum, const void* grad, DType grad_type, int64_t n);
/** sum = float(grad): the first micro-batch. */
void accumulate_first(float* sum, const void* grad, DType grad_type, int64_t n);

/** The norm tree: chunks of 4096 of a block's gradients, which are its trained prefix
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
