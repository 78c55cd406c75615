// The fused operations that decoders add: RMSNorm, the residual sum alone, rotary positions, the
// gated activation.

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "models/ops/cpu_kernels.h"
#include "models/ops/cuda_kernels.h"
#include "models/ops/dispatch.h"
#include "models/ops/fused.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"

namespace ferry::ops {

void residual_rms_norm_forward(const at::Tensor& a,
                               const at::Tensor& residual,
                               const at::Tensor& weight,
                               float eps,
                               const at::Tensor& z,
                               at::Tensor& rstd,
                               at::Tensor& y) {
  FERRY_CHECK(z.defined() == residual.defined(), "residual {}, sum {}", residual.defined(),
              z.defined());
  const int64_t T = a.size(0), W = a.size(1);
  if (on_cuda(a)) {
    cuda::residual_rms_norm_forward(stream_of(a), dtype_of(a), T, W, eps, data_of(a),
                                    data_of(residual), data_of(weight), data_of(z), floats_of(rstd),
                                    data_of(y));
  } else {
    cpu::residual_rms_norm_forward(dtype_of(a), T, W, eps, data_of(a), data_of(residual),
                                   data_of(weight), data_of(z), floats_of(rstd), data_of(y));
  }
}

void residual_rms_norm_backward(const at::Tensor& dy,
                                const at::Tensor& z,
                                const at::Tensor& weight,
                                const at::Tensor& rstd,
                                const at::Tensor& d_sum,
                                at::Tensor& dz,
                                at::Tensor& dweight,
                                Scratch& scratch) {
  const int64_t T = dy.size(0), W = dy.size(1);
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, rms_norm_backward_scratch_bytes(T, W, on_cuda(dy)));
  if (on_cuda(dy)) {
    cuda::residual_rms_norm_backward(stream_of(dy), dtype_of(dy), T, W, data_of(dy), data_of(z),
                                     floats_of(rstd), data_of(weight), data_of(d_sum), data_of(dz),
                                     data_of(dweight), sums);
  } else {
    cpu::residual_rms_norm_backward(dtype_of(dy), T, W, data_of(dy), data_of(z), floats_of(rstd),
                                    data_of(weight), data_of(d_sum), data_of(dz), data_of(dweight),
                                    sums);
  }
}

void rms_norm_apply(const at::Tensor& z,
                    const at::Tensor& weight,
                    const at::Tensor& rstd,
                    at::Tensor& y) {
  const int64_t T = z.size(0), W = z.size(1);
  if (on_cuda(z)) {
    cuda::rms_norm_apply(stream_of(z), dtype_of(z), T, W, data_of(z), floats_of(rstd),
                         data_of(weight), data_of(y));
  } else {
    cpu::rms_norm_apply(dtype_of(z), T, W, data_of(z), data_of(weight), floats_of(rstd),
                        data_of(y));
  }
}

void dropout_residual_forward(const at::Tensor& a,
                              const at::Tensor& bias,
                              const at::Tensor& residual,
                              Dropout dropout,
                              at::Tensor& y) {
  const int64_t T = a.size(0), W = a.size(1);
  if (on_cuda(a)) {
    cuda::dropout_residual_forward(stream_of(a), dtype_of(a), T, W, dropout, data_of(a),
                                   data_of(bias), data_of(residual), data_of(y));
  } else {
    cpu::dropout_residual_forward(dtype_of(a), T, W, dropout, data_of(a), data_of(bias),
                                  data_of(residual), data_of(y));
  }
}

void dropout_residual_backward(const at::Tensor& dy,
                               Dropout dropout,
                               const at::Tensor& da,
                               at::Tensor& dbias,
                               Scratch& scratch) {
  FERRY_CHECK(da.defined() || dropout.p == 0, "dropout {} needs da", dropout.p);
  const int64_t T = dy.size(0), W = dy.size(1);
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, column_sum_scratch_bytes(T, W));
  if (on_cuda(dy)) {
    cuda::dropout_residual_backward(stream_of(dy), dtype_of(dy), T, W, dropout, data_of(dy),
                                    data_of(da), data_of(dbias), sums);
  } else {
    cpu::dropout_residual_backward(dtype_of(dy), T, W, dropout, data_of(dy), data_of(da),
                                   data_of(dbias), sums);
  }
}

namespace {

void rotate(const Rotary& rotary, const at::Tensor& position_ids, bool back, at::Tensor& qkv) {
  const int64_t T = qkv.size(0), n_heads = rotary.n_heads + 2 * rotary.n_kv_heads;
  const int64_t D = qkv.size(1) / n_heads, n_rotated = rotary.n_heads + rotary.n_kv_heads;
  FERRY_CHECK(D % 2 == 0 && D * n_heads == qkv.size(1), "{} heads in rows of {}", n_heads,
              qkv.size(1));
  std::vector<float> frequencies(static_cast<size_t>(D / 2));
  for (int64_t i = 0; i < D / 2; i++) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(D);
    frequencies[static_cast<size_t>(i)] = static_cast<float>(std::pow(rotary.theta, exponent));
  }
  if (on_cuda(qkv)) {
    cuda::rotate(stream_of(qkv), dtype_of(qkv), T, n_heads, n_rotated, D, back,
                 ints_of(position_ids), frequencies.data(), data_of(qkv));
  } else {
    cpu::rotate(dtype_of(qkv), T, n_heads, n_rotated, D, back, ints_of(position_ids),
                frequencies.data(), data_of(qkv));
  }
}

}  // namespace

void rotary_forward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& qkv) {
  rotate(rotary, position_ids, /*back=*/false, qkv);
}

void rotary_backward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& d_qkv) {
  rotate(rotary, position_ids, /*back=*/true, d_qkv);
}

void silu_gate_forward(const at::Tensor& gate_up, at::Tensor& out) {
  const int64_t T = out.size(0), F = out.size(1);
  if (on_cuda(out)) {
    cuda::silu_gate_forward(stream_of(out), dtype_of(out), T, F, data_of(gate_up), data_of(out));
  } else {
    cpu::silu_gate_forward(dtype_of(out), T, F, data_of(gate_up), data_of(out));
  }
}

void silu_gate_backward(const at::Tensor& d_out,
                        const at::Tensor& gate_up,
                        at::Tensor& d_gate_up,
                        const at::Tensor& out) {
  const int64_t T = d_out.size(0), F = d_out.size(1);
  if (on_cuda(d_out)) {
    cuda::silu_gate_backward(stream_of(d_out), dtype_of(d_out), T, F, data_of(d_out),
                             data_of(gate_up), data_of(d_gate_up), data_of(out));
  } else {
    cpu::silu_gate_backward(dtype_of(d_out), T, F, data_of(d_out), data_of(gate_up),
                            data_of(d_gate_up), data_of(out));
  }
}

}  // namespace ferry::ops
