// The row kernels, compiled once per instruction set: FERRY_ROWS names the table this file defines.
// Nothing but raw pointers and lanes.h here, so no code for AVX2 can leak into the portable build.

#include "models/ops/cpu/lanes.h"
#include "models/ops/cpu/row_kernels.h"

namespace ferry::ops {
namespace {

using lanes::all;
using lanes::each;
using lanes::Floats;
using lanes::Ints;

/** x * scale where kept, else zero. */
FERRY_LANES_INLINE Floats dropped_out(Floats x, Ints keep, float scale) {
  return lanes::floats_of(lanes::bits_of(x * all(scale)) & keep);
}

void combine(float* z,
             const float* a,
             const float* bias,
             const float* residual,
             const uint8_t* keep,
             float keep_scale,
             int64_t n) {
  each(n, [&](auto access, int64_t i) {
    Floats x = access.load(a + i);
    if (bias != nullptr) x += access.load(bias + i);
    if (keep != nullptr) x = dropped_out(x, access.load_keep(keep + i), keep_scale);
    if (residual != nullptr) x += access.load(residual + i);
    access.store(z + i, x);
  });
}

void moments(const float* z, int64_t n, float eps, float* mean, float* rstd) {
  float sum[1];
  lanes::sums(n, sum,
              [&](auto access, int64_t i, Floats(&value)[1]) { value[0] = access.load(z + i); });
  const float m = sum[0] / static_cast<float>(n);
  lanes::sums(n, sum, [&](auto access, int64_t i, Floats(&value)[1]) {
    const Floats centred = access.or_else(access.load(z + i), m) - all(m);
    value[0] = centred * centred;
  });
  *mean = m;
  *rstd = 1.0f / __builtin_sqrtf(sum[0] / static_cast<float>(n) + eps);
}

void normalise(float* y,
               const float* z,
               float mean,
               float rstd,
               const float* gamma,
               const float* beta,
               const uint8_t* keep,
               float keep_scale,
               int64_t n) {
  each(n, [&](auto access, int64_t i) {
    const Floats unit = (access.load(z + i) - all(mean)) * all(rstd);
    Floats out = unit * access.load(gamma + i) + access.load(beta + i);
    if (keep != nullptr) out = dropped_out(out, access.load_keep(keep + i), keep_scale);
    access.store(y + i, out);
  });
}

void norm_backward(float* dz,
                   const float* dy,
                   const float* z,
                   float mean,
                   float rstd,
                   const float* gamma,
                   const float* d_sum,
                   const uint8_t* keep,
                   float keep_scale,
                   float* dgamma,
                   float* dbeta,
                   int64_t n) {
  float sum[2];  // sums of dy * gamma, and of that times the normalised value
  lanes::sums(n, sum, [&](auto access, int64_t i, Floats(&value)[2]) {
    Floats d = access.load(dy + i);
    if (keep != nullptr) d = dropped_out(d, access.load_keep(keep + i), keep_scale);
    const Floats unit = (access.load(z + i) - all(mean)) * all(rstd);
    access.store(dgamma + i, access.load(dgamma + i) + d * unit);
    access.store(dbeta + i, access.load(dbeta + i) + d);
    value[0] = d * access.load(gamma + i);
    value[1] = value[0] * unit;
  });
  const float shift = sum[0] / static_cast<float>(n), slope = sum[1] / static_cast<float>(n);
  each(n, [&](auto access, int64_t i) {
    Floats d = access.load(dy + i);
    if (keep != nullptr) d = dropped_out(d, access.load_keep(keep + i), keep_scale);
    const Floats unit = (access.load(z + i) - all(mean)) * all(rstd);
    Floats dx = (d * access.load(gamma + i) - all(shift) - unit * all(slope)) * all(rstd);
    if (d_sum != nullptr) dx += access.load(d_sum + i);
    access.store(dz + i, dx);
  });
}

void combine_backward(
    float* da, const float* dz, const uint8_t* keep, float keep_scale, float* dbias, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    Floats d = access.load(dz + i);
    if (keep != nullptr) d = dropped_out(d, access.load_keep(keep + i), keep_scale);
    if (dbias != nullptr) access.store(dbias + i, access.load(dbias + i) + d);
    access.store(da + i, d);
  });
}

void add_bias(float* h, const float* a, const float* bias, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    access.store(h + i, access.load(a + i) + access.load(bias + i));
  });
}

FERRY_LANES_INLINE Floats sigmoid(Floats x) {
  return all(1.0f) / (all(1.0f) + lanes::exp(all(0.0f) - x));
}

/** An activation function, and its derivative. */
struct Activated {
  Floats value, slope;
};

template <Activation kKind>
FERRY_LANES_INLINE Activated activated(Floats x) {
  const Floats zero = all(0.0f), one = all(1.0f);
  if constexpr (kKind == Activation::gelu) {
    const lanes::Normal at = lanes::normal(x);
    return {x * at.cdf, at.cdf + x * at.density};
  } else if constexpr (kKind == Activation::gelu_tanh) {
    // (1 + tanh u) / 2 is the sigmoid of 2u. Beyond 20 the function is x or 0, and the square of x
    // could overflow.
    const Floats most = all(400.0f), cubic = all(0.044715f), twice = all(1.5957691216057308f);
    const Floats square = lanes::select(x * x > most, most, x * x);
    const Floats s = sigmoid(twice * x * (one + cubic * square)), y = x * s;
    return {y, s + y * (one - s) * twice * (one + all(3 * 0.044715f) * square)};
  } else if constexpr (kKind == Activation::relu) {
    return {lanes::select(x < zero, zero, x), lanes::select(x > zero, one, zero)};
  } else if constexpr (kKind == Activation::silu) {
    const Floats s = sigmoid(x), y = x * s;
    return {y, s + y * (one - s)};
  } else {
    const Floats s = sigmoid(all(1.702f) * x), y = x * s;
    return {y, s + all(1.702f) * (y * (one - s))};
  }
}

template <Activation kKind>
void activate(float* g, const float* h, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    access.store(g + i, activated<kKind>(access.load(h + i)).value);
  });
}

template <Activation kKind>
void activate_backward(
    float* dh, float* g, const float* dg, const float* h, float* dbias, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    const Activated at = activated<kKind>(access.load(h + i));
    const Floats d = access.load(dg + i) * at.slope;
    if (dbias != nullptr) access.store(dbias + i, access.load(dbias + i) + d);
    access.store(dh + i, d);
    if (g != nullptr) access.store(g + i, at.value);
  });
}

template <Activation kKind>
void gate_forward(float* out, const float* gate, const float* up, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    access.store(out + i, activated<kKind>(access.load(gate + i)).value * access.load(up + i));
  });
}

template <Activation kKind>
void gate_backward(float* d_gate,
                   float* d_up,
                   float* out,
                   const float* d_out,
                   const float* gate,
                   const float* up,
                   int64_t n) {
  each(n, [&](auto access, int64_t i) {
    const Floats u = access.load(up + i), d = access.load(d_out + i);
    const Activated at = activated<kKind>(access.load(gate + i));
    access.store(d_gate + i, d * u * at.slope);
    access.store(d_up + i, d * at.value);
    if (out != nullptr) access.store(out + i, at.value * u);
  });
}

void add(float* sum, const float* x, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    access.store(sum + i, access.load(sum + i) + access.load(x + i));
  });
}

float largest_of(const float* x, int64_t n) {
  const float lowest = -__builtin_inff();
  Floats largest = all(lowest);
  each(n, [&](auto access, int64_t i) {
    largest = lanes::larger(largest, access.or_else(access.load(x + i), lowest));
  });
  float result = lowest;
  for (int64_t lane = 0; lane < lanes::kLanes; lane++)
    result = largest[lane] > result ? largest[lane] : result;
  return result;
}

void softmax(float* p,
             float* dropped,
             const float* s,
             float scale,
             const uint8_t* keep,
             float keep_scale,
             int64_t n) {
  const float largest = largest_of(s, n);
  float sum[1];
  lanes::sums(n, sum, [&](auto access, int64_t i, Floats(&value)[1]) {
    const Floats e = lanes::exp((access.load(s + i) - all(largest)) * all(scale));
    access.store(p + i, e);
    value[0] = access.or_else(e, 0.0f);
  });
  const float inverse = 1.0f / sum[0];
  each(n, [&](auto access, int64_t i) {
    const Floats x = access.load(p + i) * all(inverse);
    if (keep == nullptr) {
      access.store(p + i, x);
    } else {
      const Ints kept = access.load_keep(keep + i);
      access.store(dropped + i, dropped_out(x, kept, keep_scale));
      access.store(p + i, lanes::floats_of(lanes::bits_of(x) | (~kept & all(INT32_MIN))));
    }
  });
}

void softmax_backward(float* ds,
                      float* dropped,
                      const float* p,
                      const float* d_dropped,
                      float scale,
                      float keep_scale,
                      int64_t n) {
  float dot[1];
  lanes::sums(n, dot, [&](auto access, int64_t i, Floats(&value)[1]) {
    const Floats x = access.load(p + i);
    const Ints kept = lanes::bits_of(x) >= all(0);
    access.store(dropped + i, dropped_out(x, kept, keep_scale));
    value[0] = dropped_out(access.load(d_dropped + i), kept, keep_scale) * x;
  });
  each(n, [&](auto access, int64_t i) {
    const Floats x = access.load(p + i);
    const Ints kept = lanes::bits_of(x) >= all(0);
    const Floats probability = lanes::floats_of(lanes::bits_of(x) & all(INT32_MAX));
    const Floats d = dropped_out(access.load(d_dropped + i), kept, keep_scale);
    access.store(ds + i, probability * (d - all(dot[0])) * all(scale));
  });
}

void take_logits(const float* x, int64_t n, float* largest, float* sum_exp, float* sum) {
  const float here = largest_of(x, n);
  const float before = *largest;
  const float now = here > before ? here : before;
  // Exponentials add nothing where all logits so far are -inf, not exp(-inf + inf).
  const float from = now == -__builtin_inff() ? 0.0f : now;
  float added[2];
  lanes::sums(n, added, [&](auto access, int64_t i, Floats(&value)[2]) {
    value[1] = access.load(x + i);
    value[0] = access.or_else(lanes::exp(value[1] - all(from)), 0.0f);
  });
  // The first call finds -inf, and nothing to rescale.
  const float rescale = *sum_exp == 0.0f ? 0.0f : lanes::exp(all(before - from))[0];
  *sum_exp = *sum_exp * rescale + added[0];
  *sum += added[1];
  *largest = now;
}

void logits_backward(float* d, const float* x, float lse, float uniform, float factor, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    const Floats p = lanes::exp(access.load(x + i) - all(lse));
    access.store(d + i, (p - all(uniform)) * all(factor));
  });
}

FERRY_LANES_INLINE Floats tanh(Floats x) {
  // Near zero Taylor's series, since the other form would lose all bits there.
  const Floats size = lanes::floats_of(lanes::bits_of(x) & all(INT32_MAX)), z = x * x;
  Floats near = all(62.0f / 2835.0f);
  near = near * z - all(17.0f / 315.0f);
  near = near * z + all(2.0f / 15.0f);
  near = near * z - all(1.0f / 3.0f);
  near = near * z * x + x;
  const Floats e = lanes::exp(all(-2.0f) * size);
  const Floats far = (all(1.0f) - e) / (all(1.0f) + e);
  const Floats sign = lanes::floats_of(lanes::bits_of(x) & all(INT32_MIN));
  const Floats signed_far = lanes::floats_of(lanes::bits_of(far) | lanes::bits_of(sign));
  return lanes::select(size < all(0.25f), near, signed_far);
}

void soft_cap(float* x, float scale, float cap, int64_t n) {
  const float factor = scale / cap;
  each(n, [&](auto access, int64_t i) {
    access.store(x + i, all(cap) * tanh(access.load(x + i) * all(factor)));
  });
}

void soft_cap_backward(float* d, const float* capped, float scale, float cap, int64_t n) {
  const float inverse = 1.0f / cap;
  each(n, [&](auto access, int64_t i) {
    const Floats share = access.load(capped + i) * all(inverse);
    access.store(d + i, access.load(d + i) * (all(1.0f) - share * share) * all(scale));
  });
}

float root_mean_square(const float* z, int64_t n, float eps) {
  float sum[1];
  lanes::sums(n, sum, [&](auto access, int64_t i, Floats(&value)[1]) {
    const Floats x = access.load(z + i);
    value[0] = x * x;
  });
  return 1.0f / __builtin_sqrtf(sum[0] / static_cast<float>(n) + eps);
}

void rms_normalise(float* y, const float* z, float rstd, const float* weight, int64_t n) {
  each(n, [&](auto access, int64_t i) {
    access.store(y + i, access.load(z + i) * all(rstd) * access.load(weight + i));
  });
}

void rms_backward(float* dz,
                  const float* dy,
                  const float* z,
                  float rstd,
                  const float* weight,
                  const float* d_sum,
                  float* dweight,
                  int64_t n) {
  float sum[1];  // the sum of dy * weight times the normalised value
  lanes::sums(n, sum, [&](auto access, int64_t i, Floats(&value)[1]) {
    const Floats d = access.load(dy + i), unit = access.load(z + i) * all(rstd);
    access.store(dweight + i, access.load(dweight + i) + d * unit);
    value[0] = d * access.load(weight + i) * unit;
  });
  const float slope = sum[0] / static_cast<float>(n);
  each(n, [&](auto access, int64_t i) {
    const Floats unit = access.load(z + i) * all(rstd);
    Floats dx = (access.load(dy + i) * access.load(weight + i) - unit * all(slope)) * all(rstd);
    if (d_sum != nullptr) dx += access.load(d_sum + i);
    access.store(dz + i, dx);
  });
}

void angles(float* cos, float* sin, const float* frequency, float position, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    lanes::cos_sin(frequency[i] * position, cos + i, sin + i);
}

void rotate(float* x, const float* cos, const float* sin, bool back, int64_t n) {
  const float direction = back ? -1.0f : 1.0f;
  each(n, [&](auto access, int64_t i) {
    const Floats c = access.load(cos + i), s = access.load(sin + i) * all(direction);
    const Floats first = access.load(x + i), second = access.load(x + n + i);
    access.store(x + i, first * c - second * s);
    access.store(x + n + i, second * c + first * s);
  });
}

void rotate_neighbours(float* x, const float* cos, const float* sin, bool back, int64_t n) {
  const float direction = back ? -1.0f : 1.0f;
  for (int64_t i = 0; i < n; i++) {
    const float c = cos[i], s = sin[i] * direction, first = x[2 * i], second = x[2 * i + 1];
    x[2 * i] = first * c - second * s;
    x[2 * i + 1] = second * c + first * s;
  }
}

constexpr RowKernels kTable = {
    .combine = combine,
    .moments = moments,
    .normalise = normalise,
    .norm_backward = norm_backward,
    .combine_backward = combine_backward,
    .add_bias = add_bias,
    .activate = {activate<Activation::gelu>, activate<Activation::gelu_tanh>,
                 activate<Activation::relu>, activate<Activation::silu>,
                 activate<Activation::quick_gelu>},
    .activate_backward = {activate_backward<Activation::gelu>,
                          activate_backward<Activation::gelu_tanh>,
                          activate_backward<Activation::relu>, activate_backward<Activation::silu>,
                          activate_backward<Activation::quick_gelu>},
    .add = add,
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .take_logits = take_logits,
    .logits_backward = logits_backward,
    .soft_cap = soft_cap,
    .soft_cap_backward = soft_cap_backward,
    .root_mean_square = root_mean_square,
    .rms_normalise = rms_normalise,
    .rms_backward = rms_backward,
    .angles = angles,
    .rotate = rotate,
    .rotate_neighbours = rotate_neighbours,
    .gate = {gate_forward<Activation::gelu>, gate_forward<Activation::gelu_tanh>,
             gate_forward<Activation::relu>, gate_forward<Activation::silu>,
             gate_forward<Activation::quick_gelu>},
    .gate_backward = {gate_backward<Activation::gelu>, gate_backward<Activation::gelu_tanh>,
                      gate_backward<Activation::relu>, gate_backward<Activation::silu>,
                      gate_backward<Activation::quick_gelu>}};

}  // namespace

const RowKernels& FERRY_ROWS() {
  return kTable;
}

}  // namespace ferry::ops
