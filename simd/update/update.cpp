// The public entries of an update: checks, the factors of a step, parts of arrays.

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "simd/kernel_table.h"
#include "simd/random.h"
#include "simd/standard_arithmetic.h"
#include "simd/update/rules.h"
#include "src/base/error.h"

namespace ferry::simd {
namespace {

double power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

void set(float* to, std::initializer_list<double> scalars) {
  for (const double scalar : scalars)
    *to++ = static_cast<float>(scalar);
}

}  // namespace

// ---- The scalars of each rule, in its order

void Adamw::set_scalars(const UpdateHyper& hyper, int64_t t, float* to) {
  const double correction1 = 1.0 - power(hyper.beta1, t), correction2 = 1.0 - power(hyper.beta2, t);
  set(to, {1.0 - hyper.beta1, hyper.beta2, 1.0 - hyper.beta2, 1.0 / std::sqrt(correction2),
           hyper.eps, hyper.lr / correction1, hyper.lr * hyper.weight_decay});
}
void Adamw::set_neutral(float* to) {
  set(to, {0, 1, 0, 1, 1, 0, 0});
}

void Lion::set_scalars(const UpdateHyper& hyper, int64_t, float* to) {
  set(to, {1.0 - hyper.beta1, 1.0 - hyper.beta2, hyper.lr, hyper.lr * hyper.weight_decay});
}
void Lion::set_neutral(float*) {}

template <bool has_momentum>
void Sgd<has_momentum>::set_scalars(const UpdateHyper& hyper, int64_t, float* to) {
  const bool nesterov = hyper.nesterov;
  set(to, {-hyper.lr, hyper.weight_decay, hyper.momentum, nesterov ? hyper.momentum : 1.0,
           nesterov ? 1.0 : 0.0});
}
template <bool has_momentum>
void Sgd<has_momentum>::set_neutral(float* to) {
  to[momentum] = 1;
}

// ---- Entries

UpdateStep make_step(Optim optim, const UpdateHyper& hyper, int64_t t, float grad_multiplier) {
  FERRY_CHECK(t >= 1, "optimizers count steps from 1, this is step {}", t);
  const StandardArithmetic arithmetic;
  UpdateStep step = {.grad_multiplier = grad_multiplier};
  with_rule(optim, [&]<class Rule, class State>(Rule*, State*) {
    Rule::set_scalars(hyper, t, step.scalars);
  });
  return step;
}

UpdateStep neutral_step(Optim optim) {
  UpdateStep step = {.grad_multiplier = 0};
  with_rule(optim,
            [&]<class Rule, class State>(Rule*, State*) { Rule::set_neutral(step.scalars); });
  return step;
}

uint32_t noise_key(const UpdateStep& step, int block, int64_t offset) {
  const auto place = static_cast<uint64_t>(block) << 48 ^ static_cast<uint64_t>(offset);
  return static_cast<uint32_t>(splitmix64(step.noise ^ place) >> 32);
}

UpdateArgs part_of(const UpdateArgs& args, int64_t begin, int64_t n) {
  const auto at = []<class T>(T* base, int64_t n_bytes) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return base == nullptr ? base : static_cast<T*>(static_cast<Byte*>(base) + n_bytes);
  };
  const auto size = [](DType type) { return static_cast<int64_t>(size_of(type)); };
  UpdateArgs part = args;
  part.master = at(args.master, begin * (args.split_master ? 2 : 4));
  const OptimSpec& spec = spec_of(args.optim);
  FERRY_CHECK(begin % spec.unit == 0, "the arrays of {} cut at element {}", spec.name, begin);
  for (StateArray& state : part.states) {
    state.values = at(state.values, state_value_bytes(spec.type, begin));
    if (state.exponents) state.exponents += begin / kStateBlock;
  }
  part.grad = at(args.grad, begin * size(args.grad_type));
  part.weights = at(args.weights, begin * size(args.weights_type));
  part.first_element += begin;
  part.n = n;
  return part;
}

void check(const UpdateArgs& args) {
  FERRY_CHECK(is_float(args.grad_type), "gradients are {}", name_of(args.grad_type));
  FERRY_CHECK(args.weights == nullptr || is_float(args.weights_type), "weights are {}",
              name_of(args.weights_type));
  FERRY_CHECK(
      args.weights != args.master || args.weights == nullptr || args.weights_type == DType::f32,
      "weights that are the master must be fp32, not {}", name_of(args.weights_type));
  FERRY_CHECK(!args.split_master || (args.weights != nullptr && args.weights_type == DType::bf16),
              "the upper halves of a split master are bf16 weights");
  const OptimSpec& spec = spec_of(args.optim);
  FERRY_CHECK(args.first_element % spec.unit == 0, "{} from element {}, inside a block", spec.name,
              args.first_element);
}

void update(const UpdateArgs& args) {
  check(args);
  const StandardArithmetic arithmetic;
  kernels().update(args);
}

}  // namespace ferry::simd
