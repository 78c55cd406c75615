// DoRA on the CPU.

#include <cmath>

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/dora/dora.h"

namespace ferry::ops::cpu {
namespace {

void norms(const DoraNorms& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const int64_t row_bytes = W * static_cast<int64_t>(size_of(type));
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows products(type, its.rank, its.p), seconds(type, its.rank, its.b);
    Rows magnitudes(type, 1, its.magnitude);
    for (int64_t t = begin; t < end; t++) {
      const double of_w =
          simd::square_sum(static_cast<const std::byte*>(its.w) + t * row_bytes, type, W);
      const float *p = products.read(t), *b = seconds.read(t);
      float sum = 0;
      for (int64_t k = 0; k < its.rank; k++)
        sum += p[k] * b[k];
      const double square = of_w + static_cast<double>(its.factor) * static_cast<double>(sum);
      const auto norm = static_cast<float>(std::sqrt(std::max(square, 0.0)));
      its.scale[t] = norm > 0 ? *magnitudes.read(t) / norm : 1.0f;
      its.inverse[t] = norm > 0 ? 1.0f / norm : 0.0f;
    }
  });
}

void forward(const DoraForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, its.v), bases(type, W, its.base), plains(type, W, its.plain);
    Rows biases(type, W, its.bias), out(type, W, its.y);
    const float* bias = biases.read(0);
    for (int64_t t = begin; t < end; t++) {
      const float *v = in.read(t), *base = bases.read(t), *plain = plains.read(t);
      float* y = out.write(t);
      for (int64_t i = 0; i < W; i++) {
        float x = its.scale[i] * v[i];
        if (base != nullptr) x = base[i] + (x - plain[i]);
        y[i] = bias != nullptr ? x + its.bias_factor * bias[i] : x;
      }
      out.wrote(t);
    }
  });
}

void backward(const DoraBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, its.dy), in(type, W, its.v);
    Rows d_in(type, W, its.dv), d_plains(type, W, its.d_plain);
    float* sum = partial + block * W;
    std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      const float *dy = d_out.read(t), *v = in.read(t);
      float *dv = d_in.write(t), *d_plain = d_plains.write(t);
      for (int64_t i = 0; i < W; i++) {
        const float d = dy[i];
        sum[i] += d * v[i];
        dv[i] = its.scale[i] * d;
        if (d_plain != nullptr) d_plain[i] = -d;
      }
      d_in.wrote(t);
      d_plains.wrote(t);
    }
  });
  void* const out[] = {its.d_scale};
  add_partials(DType::f32, n_blocks_of(T), 1, W, partial, out);
}

void product(const DoraProduct& its, const Launch&) {
  Rows out(its.type, its.n, its.out);
  float* to = out.write(0);
  for (int64_t i = 0; i < its.n; i++)
    to[i] = its.a[i] * its.b[i];
  out.wrote(0);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::DoraKernels ferry::ops::kCpuDora = {.norms = cpu::norms,
                                                      .forward = cpu::forward,
                                                      .backward = cpu::backward,
                                                      .product = cpu::product};
