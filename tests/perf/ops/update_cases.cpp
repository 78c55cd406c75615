// Operations of a step on gradients and states; on a CPU spread over LibTorch's threads, as
// LibTorch's own kernels are.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "models/ops/dispatch.h"
#include "simd/cuda/cuda_kernels.h"
#include "simd/kernels.h"
#include "tests/perf/ops/cases.h"

namespace ferry::ops_bench {
namespace {

/** work(begin, end) for parts of [0, n), each a whole number of tasks but the last. */
template <typename Work>
void on_threads(int64_t n, const Work& work) {
  const int64_t n_tasks = (n + simd::kTask_elements - 1) / simd::kTask_elements;
  at::parallel_for(0, n_tasks, 1, [&](int64_t first, int64_t last) {
    work(first * simd::kTask_elements, std::min(n, last * simd::kTask_elements));
  });
}

const std::byte* element(const at::Tensor& x, int64_t i) {
  return static_cast<const std::byte*>(ops::data_of(x)) + i * x.element_size();
}

/** Norm and overflow in one: the sum is finite where every gradient is. */
Operation square_sum(const Setup& s) {
  const int64_t n = s.sizes.n_params;
  const at::Tensor grad = s.random({n});
  const auto doubles = at::device(s.device).dtype(at::kDouble);
  const at::Tensor sum = at::empty({1}, doubles),
                   parts = at::empty({simd::norm_chunks(n)}, doubles);
  const DType type = ops::dtype_of(grad);
  const auto ferry = [=] {
    double *const out = sum.data_ptr<double>(), *const chunks = parts.data_ptr<double>();
    if (grad.is_cuda()) {
      simd::cuda::square_sum(ops::data_of(grad), type, n, out, chunks, ops::stream_of(grad));
    } else {
      on_threads(n, [&](int64_t begin, int64_t end) {
        simd::square_sum_chunks(element(grad, begin), type, end - begin,
                                chunks + begin / simd::kNormChunk);
      });
      *out = simd::sum_in_order(chunks, simd::norm_chunks(n));
    }
    return Tensors{sum};
  };
  // On a CPU LibTorch's sum of so many squares in fp32 would be off by up to a percent.
  const at::ScalarType sum_type = s.cuda() ? at::kFloat : at::kDouble;
  const auto libtorch = [=] {
    return Tensors{at::linalg_vector_norm(grad, 2, {}, /*keepdim=*/false, sum_type).view({1})};
  };
  const auto root = [](const Tensors& sums) { return Tensors{sums[0].sqrt()}; };
  return {"gradient norm, overflow", {{"update", bytes_of({grad}), ferry, libtorch, root}}};
}

Operation accumulate(const Setup& s) {
  const int64_t n = s.sizes.n_params;
  const at::Tensor grad = s.random({n}), sum = s.random({n}).to(at::kFloat).clone();
  const at::Tensor libtorch_sum = sum.clone();
  const DType type = ops::dtype_of(grad);
  const auto ferry = [=] {
    float* const out = ops::floats_of(sum);
    if (grad.is_cuda()) {
      simd::cuda::accumulate(out, ops::data_of(grad), type, n, ops::stream_of(grad));
    } else {
      on_threads(n, [&](int64_t begin, int64_t end) {
        simd::accumulate(out + begin, element(grad, begin), type, end - begin);
      });
    }
    return Tensors{sum};
  };
  const auto libtorch = [=] { return Tensors{libtorch_sum.add_(grad)}; };
  return {"fp32 accumulation", {{"update", bytes_of({sum, sum, grad}), ferry, libtorch, {}}}};
}

/** The master of a run: fp32, or what its bf16 weights lack of it, which are then filled in. */
at::Tensor master_of(const at::Tensor& values, bool is_split, const at::Tensor& weights) {
  if (!is_split) return values.clone();
  const int64_t n = values.numel();
  const at::Tensor from = values.cpu(), high = at::empty({n}, at::kBFloat16),
                   low = at::empty({n}, at::kShort);
  simd::split_f32(static_cast<uint16_t*>(ops::data_of(high)),
                  static_cast<uint16_t*>(ops::data_of(low)), ops::floats_of(from), n);
  weights.copy_(high);
  return low.to(values.device());
}

/** Gradients and weights of the compute type. LibTorch's fused kernel takes one type, so its
 * gradients are widened before and its weights rounded behind; its states are fp32. From states
 * that are zero the first update is the same with all. */
Operation adamw(const Setup& s, const char* name, simd::Optim optim, bool is_split) {
  if (is_split && s.type != at::kBFloat16) return {name, {}};
  const simd::UpdateHyper hyper = {.weight_decay = 0.01};
  const int64_t n = s.sizes.n_params;
  const bool is_f32 = s.type == at::kFloat;  // then the master is the weights
  at::manual_seed(9);
  const at::Tensor values = s.random({n}, 0.02).to(at::kFloat), grad = s.random({n}, 1e-3);
  const at::Tensor room = s.room({n});
  const at::Tensor master = master_of(values, is_split, room), weights = is_f32 ? master : room;
  const simd::StateType type = simd::spec_of(optim).type;
  const auto zeros = [&] {
    return at::zeros({simd::state_bytes(type, n)}, at::device(s.device).dtype(at::kByte));
  };
  const at::Tensor m = zeros(), v = zeros();
  const auto exponents = [&](const at::Tensor& state) {
    return state.data_ptr<uint8_t>() + simd::state_value_bytes(type, n);
  };
  const simd::UpdateArgs args = {
      .master = ops::data_of(master),
      .states = {{ops::data_of(m), exponents(m)}, {ops::data_of(v), exponents(v)}},
      .grad = ops::data_of(grad),
      .grad_type = ops::dtype_of(grad),
      .weights = ops::data_of(weights),
      .weights_type = ops::dtype_of(weights),
      .n = n,
      .step = simd::make_step(simd::Optim::adamw, hyper, 1, 1.0f),
      .optim = optim,
      .split_master = is_split};
  const auto ferry = [=, kept = Tensors{master, m, v}] {  // holds what args points to
    if (grad.is_cuda()) {
      simd::cuda::update(args, ops::stream_of(grad));
    } else {
      on_threads(n, [&](int64_t begin, int64_t end) {
        simd::update(simd::part_of(args, begin, end - begin));
      });
    }
    return Tensors{weights};
  };
  const at::Tensor their_master = values.clone(), their_m = at::zeros_like(values),
                   their_v = at::zeros_like(values);
  const at::Tensor their_weights = is_f32 ? their_master : s.room({n});
  const at::Tensor step = at::ones({}, at::device(s.device).dtype(at::kFloat));
  const auto libtorch = [=] {
    at::_fused_adamw_({their_master}, {grad.to(at::kFloat)}, {their_m}, {their_v}, {}, {step},
                      hyper.lr, hyper.beta1, hyper.beta2, hyper.weight_decay, hyper.eps,
                      /*amsgrad=*/false, /*maximize=*/false);
    if (!is_f32) their_weights.copy_(their_master);
    return Tensors{their_weights};
  };
  int64_t n_bytes = 2 * bytes_of({master, m, v}) + bytes_of({grad});
  if (!is_f32) n_bytes += (is_split ? 2 : 1) * bytes_of({weights});
  return {name, {{"update", n_bytes, ferry, libtorch, {}}}};
}

Operation adamw_fp32(const Setup& s) {
  return adamw(s, "AdamW", simd::Optim::adamw, false);
}
Operation adamw_bf16(const Setup& s) {
  return adamw(s, "AdamW, bf16 states", simd::Optim::adamw_bf16, false);
}
Operation adamw_8bit(const Setup& s) {
  return adamw(s, "AdamW, 8-bit states", simd::Optim::adamw_8bit, false);
}
Operation adamw_split(const Setup& s) {
  return adamw(s, "AdamW, split master", simd::Optim::adamw, true);
}
Operation adamw_8bit_split(const Setup& s) {
  return adamw(s, "AdamW, 8-bit states, split master", simd::Optim::adamw_8bit, true);
}

}  // namespace

std::vector<MakeOperation> update_operations() {
  return {square_sum, accumulate,  adamw_fp32,      adamw_bf16,
          adamw_8bit, adamw_split, adamw_8bit_split};
}

}  // namespace ferry::ops_bench
