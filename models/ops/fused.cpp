#include "models/ops/fused.h"

#include <fmt/format.h>

#include "models/ops/cpu_kernels.h"
#include "models/ops/cuda_kernels.h"
#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"

namespace ferry::ops {
namespace {

/** Undefined without dropout: then da is dz. */
void check_da(const at::Tensor& da, Dropout dropout) {
  FERRY_CHECK(da.defined() || dropout.p == 0, "dropout {} needs da", dropout.p);
}

}  // namespace

void bias_gelu_forward(const at::Tensor& a, const at::Tensor& bias, at::Tensor& h, at::Tensor& g) {
  const int64_t T = a.size(0), N = a.size(1);
  if (on_cuda(a)) {
    cuda::bias_gelu_forward(stream_of(a), dtype_of(a), T, N, data_of(a), data_of(bias), data_of(h),
                            data_of(g));
  } else {
    cpu::bias_gelu_forward(dtype_of(a), T, N, data_of(a), data_of(bias), data_of(h), data_of(g));
  }
}

void gelu_backward(const at::Tensor& dg,
                   const at::Tensor& h,
                   at::Tensor& dh,
                   at::Tensor& dbias,
                   const at::Tensor& g,
                   Scratch& scratch) {
  const int64_t T = dg.size(0), N = dg.size(1);
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, column_sum_scratch_bytes(T, N));
  if (on_cuda(dg)) {
    cuda::gelu_backward(stream_of(dg), dtype_of(dg), T, N, data_of(dg), data_of(h), data_of(dh),
                        data_of(dbias), data_of(g), sums);
  } else {
    cpu::gelu_backward(dtype_of(dg), T, N, data_of(dg), data_of(h), data_of(dh), data_of(dbias),
                       data_of(g), sums);
  }
}

void column_sum(const at::Tensor& x, const at::Tensor& out, Scratch& scratch) {
  const int64_t T = x.size(0), N = x.size(1);
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, column_sum_scratch_bytes(T, N));
  if (on_cuda(x)) {
    cuda::column_sum(stream_of(x), dtype_of(x), T, N, data_of(x), data_of(out), sums);
  } else {
    cpu::column_sum(dtype_of(x), T, N, data_of(x), data_of(out), sums);
  }
}

void dropout_residual_norm_forward(const at::Tensor& a,
                                   const at::Tensor& bias,
                                   const at::Tensor& residual,
                                   const NormParams& norm,
                                   float eps,
                                   Dropout dropout,
                                   at::Tensor& z,
                                   NormState& state,
                                   at::Tensor& y) {
  const int64_t T = a.size(0), W = a.size(1);
  if (on_cuda(a)) {
    cuda::dropout_residual_norm_forward(stream_of(a), dtype_of(a), T, W, eps, dropout, data_of(a),
                                        data_of(bias), data_of(residual), data_of(norm.weight),
                                        data_of(norm.bias), data_of(z), floats_of(state.mean),
                                        floats_of(state.rstd), data_of(y));
  } else {
    cpu::dropout_residual_norm_forward(dtype_of(a), T, W, eps, dropout, data_of(a), data_of(bias),
                                       data_of(residual), data_of(norm.weight), data_of(norm.bias),
                                       data_of(z), floats_of(state.mean), floats_of(state.rstd),
                                       data_of(y));
  }
}

void dropout_residual_norm_backward(const at::Tensor& dy,
                                    const at::Tensor& z,
                                    const NormParams& norm,
                                    const NormState& state,
                                    const at::Tensor& d_sum,
                                    Dropout dropout,
                                    at::Tensor& dz,
                                    const at::Tensor& da,
                                    NormParams& d_norm,
                                    const at::Tensor& dbias,
                                    Scratch& scratch) {
  check_da(da, dropout);
  const int64_t T = dy.size(0), W = dy.size(1);
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, norm_backward_scratch_bytes(T, W, on_cuda(dy)));
  if (on_cuda(dy)) {
    cuda::dropout_residual_norm_backward(
        stream_of(dy), dtype_of(dy), T, W, dropout, data_of(dy), data_of(z), floats_of(state.mean),
        floats_of(state.rstd), data_of(norm.weight), data_of(d_sum), data_of(dz), data_of(da),
        data_of(d_norm.weight), data_of(d_norm.bias), data_of(dbias), sums);
  } else {
    cpu::dropout_residual_norm_backward(
        dtype_of(dy), T, W, dropout, data_of(dy), data_of(z), floats_of(state.mean),
        floats_of(state.rstd), data_of(norm.weight), data_of(d_sum), data_of(dz), data_of(da),
        data_of(d_norm.weight), data_of(d_norm.bias), data_of(dbias), sums);
  }
}

void norm_apply(const at::Tensor& z,
                const NormParams& norm,
                const NormState& state,
                at::Tensor& y) {
  const int64_t T = z.size(0), W = z.size(1);
  if (on_cuda(z)) {
    cuda::norm_apply(stream_of(z), dtype_of(z), T, W, data_of(z), floats_of(state.mean),
                     floats_of(state.rstd), data_of(norm.weight), data_of(norm.bias), data_of(y));
  } else {
    cpu::norm_apply(dtype_of(z), T, W, data_of(z), data_of(norm.weight), data_of(norm.bias),
                    floats_of(state.mean), floats_of(state.rstd), data_of(y));
  }
}

void norm_dropout_forward(const at::Tensor& z,
                          const NormParams& norm,
                          float eps,
                          Dropout dropout,
                          NormState& state,
                          at::Tensor& y) {
  const int64_t T = z.size(0), W = z.size(1);
  if (on_cuda(z)) {
    cuda::norm_dropout_forward(stream_of(z), dtype_of(z), T, W, eps, dropout, data_of(z),
                               data_of(norm.weight), data_of(norm.bias), floats_of(state.mean),
                               floats_of(state.rstd), data_of(y));
  } else {
    cpu::norm_dropout_forward(dtype_of(z), T, W, eps, dropout, data_of(z), data_of(norm.weight),
                              data_of(norm.bias), floats_of(state.mean), floats_of(state.rstd),
                              data_of(y));
  }
}

void norm_dropout_backward(const at::Tensor& dy,
                           const at::Tensor& z,
                           const NormParams& norm,
                           const NormState& state,
                           const at::Tensor& d_sum,
                           Dropout dropout,
                           at::Tensor& dz,
                           NormParams& d_norm,
                           Scratch& scratch) {
  const int64_t T = dy.size(0), W = dy.size(1);
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, norm_backward_scratch_bytes(T, W, on_cuda(dy)));
  if (on_cuda(dy)) {
    cuda::norm_dropout_backward(stream_of(dy), dtype_of(dy), T, W, dropout, data_of(dy), data_of(z),
                                floats_of(state.mean), floats_of(state.rstd), data_of(norm.weight),
                                data_of(d_sum), data_of(dz), data_of(d_norm.weight),
                                data_of(d_norm.bias), sums);
  } else {
    cpu::norm_dropout_backward(dtype_of(dy), T, W, dropout, data_of(dy), data_of(z),
                               floats_of(state.mean), floats_of(state.rstd), data_of(norm.weight),
                               data_of(d_sum), data_of(dz), data_of(d_norm.weight),
                               data_of(d_norm.bias), sums);
  }
}

void embedding_forward(const BatchTensors& batch,
                       const at::Tensor& word,
                       const at::Tensor& position,
                       const at::Tensor& type,
                       at::Tensor& sum) {
  const int64_t T = sum.size(0), W = sum.size(1);
  const int32_t *ids = ints_of(batch.input_ids), *types = ints_of(batch.type_ids),
                *positions = ints_of(batch.position_ids);
  if (on_cuda(sum)) {
    cuda::embedding_forward(stream_of(sum), dtype_of(sum), T, W, ids, types, positions,
                            data_of(word), data_of(type), data_of(position), data_of(sum));
  } else {
    cpu::embedding_forward(dtype_of(sum), T, W, ids, types, positions, data_of(word), data_of(type),
                           data_of(position), data_of(sum));
  }
}

void embedding_backward(const at::Tensor& ids,
                        const at::Tensor& dx,
                        at::Tensor& d_table,
                        Scratch& scratch) {
  if (!d_table.defined()) return;
  const int64_t T = dx.size(0), W = dx.size(1);
  const ScratchScope scope(scratch);
  void* order = take_bytes(scratch, embedding_backward_scratch_bytes(T, W, on_cuda(dx)));
  if (on_cuda(dx)) {
    cuda::embedding_backward(stream_of(dx), dtype_of(dx), T, W, ints_of(ids), d_table.size(0),
                             data_of(dx), data_of(d_table), order);
  } else {
    cpu::embedding_backward(dtype_of(dx), T, W, ints_of(ids), d_table.size(0), data_of(dx),
                            data_of(d_table), order);
  }
}

void dropout(const at::Tensor& x, Dropout dropout, at::Tensor& out) {
  const int64_t n = x.size(0), W = x.size(1);
  if (on_cuda(x)) {
    cuda::dropout_residual_forward(stream_of(x), dtype_of(x), n, W, dropout, data_of(x), nullptr,
                                   nullptr, data_of(out));
  } else {
    cpu::dropout(dtype_of(x), n * W, dropout, data_of(x), data_of(out));
  }
}

void gather_rows(const at::Tensor& x, const at::Tensor& rows, at::Tensor& out) {
  const int64_t n = out.size(0), W = out.size(1);
  if (on_cuda(x)) {
    cuda::gather_rows(stream_of(x), dtype_of(x), n, W, data_of(x), ints_of(rows), data_of(out));
  } else {
    cpu::gather_rows(dtype_of(x), n, W, data_of(x), ints_of(rows), data_of(out));
  }
}

void scatter_rows(const at::Tensor& d_out, const at::Tensor& rows, at::Tensor& dx) {
  const int64_t n = d_out.size(0), T = dx.size(0), W = dx.size(1);
  if (on_cuda(dx)) {
    cuda::scatter_rows(stream_of(dx), dtype_of(dx), T, n, W, data_of(d_out), ints_of(rows),
                       data_of(dx));
  } else {
    cpu::scatter_rows(dtype_of(dx), T, n, W, data_of(d_out), ints_of(rows), data_of(dx));
  }
}

}  // namespace ferry::ops
