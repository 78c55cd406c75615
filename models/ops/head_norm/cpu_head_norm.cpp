// The norm of each head on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/cpu/weight.h"
#include "models/ops/head_norm/head_norm.h"

namespace ferry::ops::cpu {
namespace {

void head_norm_forward(const HeadNormForward& its, const Launch&) {
  const HeadRows& rows = its.rows;
  const int64_t D = rows.head_width, n_all = rows.n_all(), n_normed = rows.n_normed();
  const RowKernels& kernels = row_kernels();
  for_row_blocks(rows.T, n_all * D, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(rows.type, D, its.x), out(rows.type, D, its.y);
    const Weight of_queries(rows.type, D, its.q_weight, its.weight_offset);
    const Weight of_keys(rows.type, D, its.k_weight, its.weight_offset);
    for (int64_t row = begin * n_all; row < end * n_all; row++) {
      const int64_t token = row / n_all, head = row % n_all;
      const float* x = in.read(row);
      float* y = out.write(row);
      if (head < n_normed) {
        const float* weight = (head < rows.n_heads ? of_queries : of_keys).values();
        float& rstd = its.rstd[token * n_normed + head];
        rstd = kernels.root_mean_square(x, D, its.eps);
        kernels.rms_normalise(y, x, rstd, weight, D);
      } else {
        std::copy_n(x, D, y);
      }
      out.wrote(row);
    }
  });
}

void head_norm_backward(const HeadNormBackward& its, const Launch& on) {
  const HeadRows& rows = its.rows;
  const int64_t D = rows.head_width, n_all = rows.n_all(), n_normed = rows.n_normed();
  const RowKernels& kernels = row_kernels();
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(rows.T, n_all * D, [&](int64_t block, int64_t begin, int64_t end) {
    Rows in(rows.type, D, its.x), d_out(rows.type, D, its.d), d_in(rows.type, D, its.d);
    const Weight of_queries(rows.type, D, its.q_weight, its.weight_offset);
    const Weight of_keys(rows.type, D, its.k_weight, its.weight_offset);
    float* sum = partial + block * 2 * D;
    std::fill_n(sum, 2 * D, 0.0f);
    for (int64_t token = begin; token < end; token++) {
      for (int64_t head = 0; head < n_normed; head++) {
        const bool is_query = head < rows.n_heads;
        const int64_t row = token * n_all + head;
        const float* weight = (is_query ? of_queries : of_keys).values();
        kernels.rms_backward(d_in.write(row), d_out.read(row), in.read(row),
                             its.rstd[token * n_normed + head], weight, nullptr,
                             is_query ? sum : sum + D, D);
        d_in.wrote(row);
      }
    }
  });
  void* const out[] = {its.dq_weight, its.dk_weight};
  add_partials(rows.type, n_blocks_of(rows.T), 2, D, partial, out);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::HeadNormKernels ferry::ops::kCpuHeadNorm = {
    .head_norm_forward = cpu::head_norm_forward, .head_norm_backward = cpu::head_norm_backward};
