// DoRA on CUDA.

#include "models/ops/cuda/cuda_block_reduce.h"
#include "models/ops/cuda/cuda_reduce.h"
#include "models/ops/dora/dora.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
struct NormsOf {
  int64_t row_packs, rank;
  float factor;
  const T *w, *p, *b, *magnitude;
  float *scale, *inverse;
};

/** blockIdx.x = row. */
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) norm_rows(NormsOf<T> its) {
  const int64_t row = blockIdx.x;
  float sum = 0;
  for (int64_t pack = threadIdx.x; pack < its.row_packs; pack += kThreads) {
    float x[N];
    load(its.w, row * its.row_packs + pack, x);
#pragma unroll
    for (int i = 0; i < N; i++)
      sum += x[i] * x[i];
  }
  float cross = 0;
  for (int64_t k = threadIdx.x; k < its.rank; k += kThreads)
    cross += to_float(its.p[row * its.rank + k]) * to_float(its.b[row * its.rank + k]);
  const float square = combine_block<kThreads>(sum + its.factor * cross, Plus{});
  if (threadIdx.x != 0) return;
  const float norm = sqrtf(fmaxf(square, 0.0f));
  its.scale[row] = norm > 0 ? to_float(its.magnitude[row]) / norm : 1.0f;
  its.inverse[row] = norm > 0 ? 1.0f / norm : 0.0f;
}

void norms(const DoraNorms& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const NormsOf<E> of = {.row_packs = W / kPack,
                               .rank = its.rank,
                               .factor = its.factor,
                               .w = as<E>(its.w),
                               .p = as<E>(its.p),
                               .b = as<E>(its.b),
                               .magnitude = as<E>(its.magnitude),
                               .scale = its.scale,
                               .inverse = its.inverse};
        norm_rows<E, kPack><<<static_cast<unsigned>(T), kThreads, 0, as_stream(on.stream)>>>(of);
      },
      its.w);
  check_launch("norm_rows");
}

template <typename T>
struct ScaledOf {
  const T *v, *base, *plain, *bias;
  const float* scale;
  float bias_factor;
  T* y;
};

/** blockIdx.x = row, blockIdx.y = kThreads packs of it. */
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) scale_rows(int row_packs, ScaledOf<T> its) {
  const auto column = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (column >= row_packs) return;
  const int64_t pack = int64_t{blockIdx.x} * row_packs + column;
  float x[N], base[N], plain[N], bias[N];
  load(its.v, pack, x);
  if (its.base != nullptr) {
    load(its.base, pack, base);
    load(its.plain, pack, plain);
  }
  if (its.bias != nullptr) load(its.bias, column, bias);
#pragma unroll
  for (int i = 0; i < N; i++) {
    x[i] *= its.scale[column * N + i];
    if (its.base != nullptr) x[i] = base[i] + (x[i] - plain[i]);
    if (its.bias != nullptr) x[i] += its.bias_factor * bias[i];
  }
  store(x, its.y, pack);
}

void forward(const DoraForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const ScaledOf<E> of = {.v = as<E>(its.v),
                                .base = as<E>(its.base),
                                .plain = as<E>(its.plain),
                                .bias = as<E>(its.bias),
                                .scale = its.scale,
                                .bias_factor = its.bias_factor,
                                .y = as<E>(its.y)};
        const auto row_packs = static_cast<int>(W / kPack);
        const dim3 grid(static_cast<unsigned>(T),
                        static_cast<unsigned>(ceil_div(row_packs, kThreads)));
        scale_rows<E, kPack><<<grid, kThreads, 0, as_stream(on.stream)>>>(row_packs, of);
      },
      its.v, its.base, its.plain, its.bias, its.y);
  check_launch("scale_rows");
}

/** Gives dy v, and leaves dv and d_plain on the way. */
template <typename T, int N>
struct ScaleBack {
  const T *dy, *v;
  const float* scale;
  T *dv, *d_plain;

  __device__ void operator()(int64_t, int64_t column, int64_t pack, float (&out)[N]) const {
    float d[N];
    load(dy, pack, d);
    load(v, pack, out);
#pragma unroll
    for (int i = 0; i < N; i++)
      out[i] *= d[i];
    float scaled[N];
#pragma unroll
    for (int i = 0; i < N; i++)
      scaled[i] = d[i] * scale[column * N + i];
    store(scaled, dv, pack);
    if (d_plain == nullptr) return;
#pragma unroll
    for (int i = 0; i < N; i++)
      d[i] = -d[i];
    store(d, d_plain, pack);
  }
};

void backward(const DoraBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const ScaleBack<E, kPack> source = {.dy = as<E>(its.dy),
                                            .v = as<E>(its.v),
                                            .scale = its.scale,
                                            .dv = as<E>(its.dv),
                                            .d_plain = as<E>(its.d_plain)};
        sum_columns<float, kPack>(on, T, W, source, its.d_scale);
      },
      its.dy, its.v, its.dv, its.d_plain);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    multiply(int64_t n, const float* a, const float* b, T* out) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) store_rounded(a[i] * b[i], out[i]);
}

void product(const DoraProduct& its, const Launch& on) {
  if (its.n == 0) return;
  with_type(its.type, [&](auto element) {
    using T = typename decltype(element)::type;
    multiply<T>
        <<<static_cast<unsigned>(ceil_div(its.n, kThreads)), kThreads, 0, as_stream(on.stream)>>>(
            its.n, its.a, its.b, as<T>(its.out));
  });
  check_launch("multiply");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::DoraKernels ferry::ops::kCudaDora = {.norms = cuda::norms,
                                                       .forward = cuda::forward,
                                                       .backward = cuda::backward,
                                                       .product = cuda::product};
