// The operations that decoders add, on the CPU: RMSNorm, residual sums, rotary positions, the gated
// activation. Rows spread over threads, each through the row kernels of the machine's instruction
// set.

#include "models/ops/cpu_kernels.h"
#include "models/ops/cpu_rows.h"
#include "models/ops/row_kernels.h"
#include "simd/philox.h"

namespace ferry::ops::cpu {

void residual_rms_norm_forward(DType type,
                               int64_t T,
                               int64_t W,
                               float eps,
                               const void* a,
                               const void* residual,
                               const void* weight,
                               void* z,
                               float* rstd,
                               void* y) {
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, a), residuals(type, W, residual), sums(type, W, z);
    Rows weights(type, W, weight), out(type, W, y);
    const float* w = weights.read(0);
    for (int64_t t = begin; t < end; t++) {
      const float* sum = in.read(t);
      if (z != nullptr) {
        kernels.combine(sums.write(t), sum, nullptr, residuals.read(t), nullptr, 1, W);
        sums.wrote(t);
        sum = sums.read(t);
      }
      rstd[t] = kernels.root_mean_square(sum, W, eps);
      kernels.rms_normalise(out.write(t), sum, rstd[t], w, W);
      out.wrote(t);
    }
  });
}

void residual_rms_norm_backward(DType type,
                                int64_t T,
                                int64_t W,
                                const void* dy,
                                const void* z,
                                const float* rstd,
                                const void* weight,
                                const void* d_sum,
                                void* dz,
                                void* dweight,
                                void* scratch) {
  const RowKernels& kernels = row_kernels();
  auto* partial = static_cast<float*>(scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, dy), sums(type, W, z), weights(type, W, weight), d_others(type, W, d_sum);
    Rows d_sums(type, W, dz);
    const float* w = weights.read(0);
    float* sum = partial + block * W;
    std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      kernels.rms_backward(d_sums.write(t), d_out.read(t), sums.read(t), rstd[t], w,
                           d_others.read(t), sum, W);
      d_sums.wrote(t);
    }
  });
  void* const out[] = {dweight};
  add_partials(type, n_blocks_of(T), 1, W, partial, out);
}

void rms_norm_apply(DType type,
                    int64_t T,
                    int64_t W,
                    const void* z,
                    const void* weight,
                    const float* rstd,
                    void* y) {
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows sums(type, W, z), weights(type, W, weight), out(type, W, y);
    const float* w = weights.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.rms_normalise(out.write(t), sums.read(t), rstd[t], w, W);
      out.wrote(t);
    }
  });
}

void dropout_residual_forward(DType type,
                              int64_t T,
                              int64_t W,
                              Dropout dropout,
                              const void* a,
                              const void* bias,
                              const void* residual,
                              void* y) {
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(dropout.p);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, a), biases(type, W, bias), residuals(type, W, residual), out(type, W, y);
    KeepRows keep(dropout, W);
    const float* b = biases.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.combine(out.write(t), in.read(t), b, residuals.read(t), keep.row(t), scale, W);
      out.wrote(t);
    }
  });
}

void dropout_residual_backward(DType type,
                               int64_t T,
                               int64_t W,
                               Dropout dropout,
                               const void* dy,
                               void* da,
                               void* dbias,
                               void* scratch) {
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(dropout.p);
  auto* partial = static_cast<float*>(scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, dy), d_in(type, W, da);
    KeepRows keep(dropout, W);
    std::vector<float> without_da(da == nullptr ? static_cast<size_t>(W) : 0);
    float* sum = partial + block * W;
    std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      float* to = da == nullptr ? without_da.data() : d_in.write(t);
      kernels.combine_backward(to, d_out.read(t), keep.row(t), scale, sum, W);
      d_in.wrote(t);
    }
  });
  void* const out[] = {dbias};
  add_partials(type, n_blocks_of(T), 1, W, partial, out);
}

void rotate(DType type,
            int64_t T,
            int64_t n_heads,
            int64_t n_rotated,
            int64_t head_width,
            bool back,
            const int32_t* position_ids,
            const float* frequencies,
            void* x) {
  const RowKernels& kernels = row_kernels();
  const int64_t half = head_width / 2;
  for_row_blocks(T, n_rotated * head_width, [&](int64_t, int64_t begin, int64_t end) {
    Rows heads(type, head_width, x);
    std::vector<float> cos(static_cast<size_t>(half)), sin(cos.size());
    for (int64_t t = begin; t < end; t++) {
      kernels.angles(cos.data(), sin.data(), frequencies, static_cast<float>(position_ids[t]),
                     half);
      for (int64_t row = t * n_heads; row < t * n_heads + n_rotated; row++) {
        heads.read(row);
        kernels.rotate(heads.write(row), cos.data(), sin.data(), back, half);
        heads.wrote(row);
      }
    }
  });
}

void silu_gate_forward(DType type, int64_t T, int64_t F, const void* gate_up, void* out) {
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, F, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, 2 * F, gate_up), activated(type, F, out);
    for (int64_t t = begin; t < end; t++) {
      const float* gate = in.read(t);
      kernels.silu_gate(activated.write(t), gate, gate + F, F);
      activated.wrote(t);
    }
  });
}

void silu_gate_backward(DType type,
                        int64_t T,
                        int64_t F,
                        const void* d_out,
                        const void* gate_up,
                        void* d_gate_up,
                        void* out) {
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, F, [&](int64_t, int64_t begin, int64_t end) {
    Rows d_after(type, F, d_out), before(type, 2 * F, gate_up), d_before(type, 2 * F, d_gate_up);
    Rows after(type, F, out);
    for (int64_t t = begin; t < end; t++) {
      const float* gate = before.read(t);
      float* d_gate = d_before.write(t);
      kernels.silu_gate_backward(d_gate, d_gate + F, after.write(t), d_after.read(t), gate,
                                 gate + F, F);
      d_before.wrote(t);
      after.wrote(t);
    }
  });
}

}  // namespace ferry::ops::cpu
