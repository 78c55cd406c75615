// Operations that take a matrix row by row.

#include <ATen/ATen.h>

#include "models/ops/activation/activation.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/gate/gate.h"
#include "models/ops/norm/norm.h"
#include "models/ops/norm/norm_params.h"
#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rotary/rope_frequencies.h"
#include "models/ops/rotary/rotary.h"
#include "models/ops/rows/rows.h"
#include "models/ops/scratch_sizes.h"
#include "tests/perf/ops/cases.h"

namespace ferry::ops_bench {
namespace {

constexpr float kEps = 1e-5f;
constexpr double kTheta = 10000;

Operation bias_gelu(const Setup& s) {
  const int64_t T = s.sizes.tokens, F = s.sizes.inner;
  const at::Tensor a = s.random({T, F}), bias = s.random({F}), dg = s.random({T, F});
  at::Tensor h = a + bias, g = s.room({T, F}), dh = s.room({T, F}), dbias = s.room({F});
  Workspace space(s, ops::column_sum_scratch_bytes(T, F));
  const auto formula = [](const Tensors& in) { return Tensors{at::gelu(in[0] + in[1])}; };
  const auto forward = [=]() mutable {
    ops::activation_forward(Activation::gelu, a, bias, h, g);
    return Tensors{g};
  };
  const auto backward = [=]() mutable {
    ops::activation_backward(Activation::gelu, dg, h, dh, dbias, {}, space.scratch);
    return Tensors{dh, dbias};
  };
  return operation_of({"bias + GELU",
                       {a, bias},
                       formula,
                       forward,
                       bytes_of({a, bias, h, g}),
                       {dg},
                       backward,
                       bytes_of({dg, h, dh, dbias})});
}

/** The bias's gradient of those products where no other operation sums it. */
Operation bias_gradient(const Setup& s) {
  const int64_t T = s.sizes.tokens, Q = s.sizes.qkv_width();
  const at::Tensor dy = s.random({T, Q}), sum = s.room({Q});
  Workspace space(s, ops::column_sum_scratch_bytes(T, Q));
  const auto ferry = [=]() mutable {
    ops::column_sum(dy, sum, space.scratch);
    return Tensors{sum};
  };
  const auto libtorch = [=] { return Tensors{dy.sum(0)}; };
  return {"bias of a product", {{"backward", bytes_of({dy, sum}), ferry, libtorch, {}}}};
}

Operation dropout_residual_norm(const Setup& s) {
  const int64_t T = s.sizes.tokens, W = s.sizes.width;
  const at::Tensor a = s.random({T, W}), bias = s.random({W}), x = s.random({T, W});
  const at::Tensor dy = s.random({T, W}), da = s.room({T, W}), dbias = s.room({W});
  const ops::NormParams norm = {s.random({W}), s.random({W})};
  ops::NormParams d_norm = {s.room({W}), s.room({W})};
  ops::NormState state = {s.room_f32({T}), s.room_f32({T})};
  at::Tensor z = s.room({T, W}), y = s.room({T, W}), dz = s.room({T, W}), again = s.room({T, W});
  const ops::Dropout dropout = s.dropout();
  ops::dropout_residual_norm_forward(a, bias, x, norm, kEps, dropout, z, state, y);
  Workspace space(s, ops::norm_backward_scratch_bytes(T, W, s.cuda()));
  const auto formula = [p = s.p, W](const Tensors& in) {
    const at::Tensor sum = at::dropout(in[0] + in[1], p, /*train=*/true) + in[2];
    return Tensors{at::layer_norm(sum, {W}, in[3], in[4], kEps)};
  };
  const auto forward = [=]() mutable {
    ops::dropout_residual_norm_forward(a, bias, x, norm, kEps, dropout, z, state, y);
    return Tensors{y};
  };
  const auto backward = [=]() mutable {
    ops::dropout_residual_norm_backward(dy, z, norm, state, {}, dropout, dz, da, d_norm, dbias,
                                        space.scratch);
    return Tensors{da, dbias, dz, d_norm.weight, d_norm.bias};
  };
  const auto recompute = [=]() mutable {
    ops::norm_apply(z, norm, state, again);
    return Tensors{again};
  };
  Operation made =
      operation_of({"bias + dropout + residual + norm",
                    {a, bias, x, norm.weight, norm.bias},
                    formula,
                    forward,
                    bytes_of({a, bias, x, norm.weight, norm.bias, z, state.mean, state.rstd, y}),
                    {dy},
                    backward,
                    bytes_of({dy, z, norm.weight, state.mean, state.rstd, dz, da, dbias,
                              d_norm.weight, d_norm.bias})});
  made.directions.push_back(
      {"recompute",
       bytes_of({z, norm.weight, norm.bias, state.mean, state.rstd, again}),
       recompute,
       [=] { return Tensors{at::layer_norm(z, {W}, norm.weight, norm.bias, kEps)}; },
       {}});
  return made;
}

Operation norm_dropout(const Setup& s) {
  const bool is_gpt2 = s.sizes.family == Family::gpt2;
  const float p = is_gpt2 ? 0 : s.p;
  const int64_t T = s.sizes.tokens, W = s.sizes.width;
  const at::Tensor z = s.random({T, W}), dy = s.random({T, W});
  const ops::NormParams norm = {s.random({W}), s.random({W})};
  ops::NormParams d_norm = {s.room({W}), s.room({W})};
  ops::NormState state = {s.room_f32({T}), s.room_f32({T})};
  at::Tensor y = s.room({T, W}), dz = s.room({T, W});
  const ops::Dropout dropout = {.p = p, .key = s.dropout().key};
  ops::norm_dropout_forward(z, norm, kEps, dropout, state, y);
  Workspace space(s, ops::norm_backward_scratch_bytes(T, W, s.cuda()));
  const auto formula = [p, W](const Tensors& in) {
    const at::Tensor normed = at::layer_norm(in[0], {W}, in[1], in[2], kEps);
    return Tensors{at::dropout(normed, p, /*train=*/true)};
  };
  const auto forward = [=]() mutable {
    ops::norm_dropout_forward(z, norm, kEps, dropout, state, y);
    return Tensors{y};
  };
  const auto backward = [=]() mutable {
    ops::norm_dropout_backward(dy, z, norm, state, {}, dropout, dz, d_norm, space.scratch);
    return Tensors{dz, d_norm.weight, d_norm.bias};
  };
  return operation_of(
      {is_gpt2 ? "norm" : "norm + dropout",
       {z, norm.weight, norm.bias},
       formula,
       forward,
       bytes_of({z, norm.weight, norm.bias, state.mean, state.rstd, y}),
       {dy},
       backward,
       bytes_of({dy, z, norm.weight, state.mean, state.rstd, dz, d_norm.weight, d_norm.bias})});
}

Operation dropout_alone(const Setup& s) {
  const int64_t T = s.sizes.tokens, W = s.sizes.width;
  const at::Tensor x = s.random({T, W}), dy = s.random({T, W});
  at::Tensor y = s.room({T, W}), dx = s.room({T, W});
  const ops::Dropout dropout = s.dropout();
  const auto formula = [p = s.p](const Tensors& in) {
    return Tensors{at::dropout(in[0], p, /*train=*/true)};
  };
  const auto forward = [=]() mutable {
    ops::dropout(x, dropout, y);
    return Tensors{y};
  };
  const auto backward = [=]() mutable {
    ops::dropout(dy, dropout, dx);
    return Tensors{dx};
  };
  return operation_of(
      {"dropout", {x}, formula, forward, bytes_of({x, y}), {dy}, backward, bytes_of({dy, dx})});
}

Operation dropout_residual(const Setup& s) {
  const int64_t T = s.sizes.tokens, W = s.sizes.width;
  const at::Tensor a = s.random({T, W}), bias = s.random({W}), x = s.random({T, W});
  const at::Tensor dy = s.random({T, W}), da = s.room({T, W});
  at::Tensor y = s.room({T, W}), dbias = s.room({W});
  const ops::Dropout dropout = s.dropout();
  Workspace space(s, ops::column_sum_scratch_bytes(T, W));
  const auto formula = [p = s.p, x](const Tensors& in) {
    return Tensors{at::dropout(in[0] + in[1], p, /*train=*/true) + x};
  };
  const auto forward = [=]() mutable {
    ops::dropout_residual_forward(a, bias, x, dropout, y);
    return Tensors{y};
  };
  const auto backward = [=]() mutable {
    ops::dropout_residual_backward(dy, dropout, da, dbias, space.scratch);
    return Tensors{da, dbias};
  };
  return operation_of({"bias + dropout + residual",
                       {a, bias},
                       formula,
                       forward,
                       bytes_of({a, bias, x, y}),
                       {dy},
                       backward,
                       bytes_of({dy, da, dbias})});
}

Operation residual_rms_norm(const Setup& s) {
  const int64_t T = s.sizes.tokens, W = s.sizes.width;
  const at::Tensor a = s.random({T, W}), x = s.random({T, W}), weight = s.random({W});
  const at::Tensor dy = s.random({T, W}), d_sum = s.random({T, W}), z = s.room({T, W});
  at::Tensor rstd = s.room_f32({T}), y = s.room({T, W}), again = s.room({T, W});
  at::Tensor dz = s.room({T, W}), dweight = s.room({W});
  ops::residual_rms_norm_forward(a, x, weight, kEps, z, rstd, y);
  Workspace space(s, ops::rms_norm_backward_scratch_bytes(T, W, s.cuda()));
  const auto formula = [x, W](const Tensors& in) {
    const at::Tensor sum = in[0] + x;
    return Tensors{sum, at::rms_norm(sum, {W}, in[1], kEps)};
  };
  const auto forward = [=]() mutable {
    ops::residual_rms_norm_forward(a, x, weight, kEps, z, rstd, y);
    return Tensors{z, y};
  };
  const auto backward = [=]() mutable {
    ops::residual_rms_norm_backward(dy, z, weight, rstd, d_sum, dz, dweight, space.scratch);
    return Tensors{dz, dweight};
  };
  const auto recompute = [=]() mutable {
    ops::rms_norm_apply(z, weight, rstd, again);
    return Tensors{again};
  };
  Operation made = operation_of({"residual + RMSNorm",
                                 {a, weight},
                                 formula,
                                 forward,
                                 bytes_of({a, x, weight, z, rstd, y}),
                                 {d_sum, dy},
                                 backward,
                                 bytes_of({dy, z, weight, rstd, d_sum, dz, dweight})});
  made.directions.push_back({"recompute",
                             bytes_of({z, weight, rstd, again}),
                             recompute,
                             [=] { return Tensors{at::rms_norm(z, {W}, weight, kEps)}; },
                             {}});
  return made;
}

/** LibTorch's is Hugging Face's form: cosines and sines of the compute type, made once for all
 * layers. */
Operation rotary(const Setup& s) {
  const int64_t T = s.sizes.tokens, D = s.sizes.head_width(), Q = s.sizes.qkv_width();
  const int64_t n_turned = s.sizes.n_heads + s.sizes.n_kv_heads;
  const auto its = [rope = rope_table({.theta = kTheta, .width = D}), sizes = s.sizes] {
    return ops::Rotary{
        .n_heads = sizes.n_heads, .n_kv_heads = sizes.n_kv_heads, .frequencies = rope.frequencies};
  };

  const at::Tensor positions =
      at::arange(s.sizes.length, at::device(s.device).dtype(at::kInt)).repeat({T / s.sizes.length});
  at::Tensor qkv = s.random({T, Q}), d_qkv = s.random({T, Q});
  const auto turned = [=](const at::Tensor& rows) {  // (T, n_turned, D)
    return rows.narrow(1, 0, n_turned * D).view({T, n_turned, D});
  };
  const at::Tensor qk = turned(qkv).clone(), d_qk = turned(d_qkv).clone();
  const at::Tensor exponent = at::arange(0, D, 2, at::kDouble) / static_cast<double>(-D);
  const at::Tensor frequency = at::pow(kTheta, exponent).to(at::kFloat).to(s.device);
  const at::Tensor angle = positions.to(at::kFloat).unsqueeze(1) * frequency.unsqueeze(0);
  const at::Tensor twice = at::cat({angle, angle}, 1).unsqueeze(1);  // (T, 1, D)
  const at::Tensor cos = twice.cos().to(s.type), sin = twice.sin().to(s.type);
  const auto formula = [=](const Tensors& in) {
    const auto halves = in[0].chunk(2, 2);
    return Tensors{in[0] * cos + at::cat({-halves[1], halves[0]}, 2) * sin};
  };
  const auto forward = [=]() mutable {
    ops::rotary_forward(its(), positions, qkv);
    return Tensors{turned(qkv)};
  };
  const auto backward = [=]() mutable {
    ops::rotary_backward(its(), positions, d_qkv);
    return Tensors{turned(d_qkv)};
  };
  const int64_t n_bytes = bytes_of({qk, qk, positions});
  return operation_of(
      {"rotary positions", {qk}, formula, forward, n_bytes, {d_qk}, backward, n_bytes});
}

Operation silu_gate(const Setup& s) {
  const int64_t T = s.sizes.tokens, F = s.sizes.inner;
  const at::Tensor gate_up = s.random({T, 2 * F}), d_out = s.random({T, F});
  at::Tensor out = s.room({T, F}), d_gate_up = s.room({T, 2 * F});
  const auto formula = [](const Tensors& in) {
    const auto parts = in[0].chunk(2, 1);
    return Tensors{at::silu(parts[0]) * parts[1]};
  };
  const auto forward = [=]() mutable {
    ops::gate_forward(Activation::silu, gate_up, out);
    return Tensors{out};
  };
  const auto backward = [=]() mutable {
    ops::gate_backward(Activation::silu, d_out, gate_up, d_gate_up, {});
    return Tensors{d_gate_up};
  };
  return operation_of({"gated MLP's SiLU",
                       {gate_up},
                       formula,
                       forward,
                       bytes_of({gate_up, out}),
                       {d_out},
                       backward,
                       bytes_of({d_out, gate_up, d_gate_up})});
}

}  // namespace

std::vector<MakeOperation> row_operations(const Sizes& sizes) {
  if (sizes.family == Family::llama) return {residual_rms_norm, rotary, silu_gate};
  return {bias_gelu,    dropout_residual_norm, dropout_residual,
          norm_dropout, dropout_alone,         bias_gradient};
}

}  // namespace ferry::ops_bench
