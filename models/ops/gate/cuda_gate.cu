// The gated activation silu(gate) * up on CUDA, both halves in one row, forward and backward.

#include "models/ops/cuda/cuda_common.h"
#include "models/ops/gate/gate.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

/** A 16-bit result carries 2e-4, so the quick exponential does for it. */
template <typename T>
__device__ inline float sigmoid(float x) {
  if constexpr (sizeof(T) == 4) {
    return 1.0f / (1.0f + expf(-x));
  } else {
    return __fdividef(1.0f, 1.0f + __expf(-x));
  }
}

/** blockIdx.x = row, blockIdx.y = kThreads packs of it. */
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) silu_gate(int row_packs, const T* gate_up, T* out) {
  const auto column = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (column >= row_packs) return;
  const int64_t row = blockIdx.x, gate_pack = row * 2 * row_packs + column;
  float gate[N], up[N];
  load(gate_up, gate_pack, gate);
  load(gate_up, gate_pack + row_packs, up);
#pragma unroll
  for (int i = 0; i < N; i++)
    up[i] *= gate[i] * sigmoid<T>(gate[i]);
  store(up, out, row * row_packs + column);
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    silu_gate_grad(int row_packs, const T* d_out, const T* gate_up, T* d_gate_up, T* out) {
  const auto column = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (column >= row_packs) return;
  const int64_t row = blockIdx.x, pack = row * row_packs + column;
  const int64_t gate_pack = row * 2 * row_packs + column;
  float gate[N], up[N], d[N], y[N];
  load(gate_up, gate_pack, gate);
  load(gate_up, gate_pack + row_packs, up);
  load(d_out, pack, d);
#pragma unroll
  for (int i = 0; i < N; i++) {
    const float s = sigmoid<T>(gate[i]), silu = gate[i] * s;
    y[i] = silu * up[i];
    gate[i] = d[i] * up[i] * fmaf(silu, 1.0f - s, s);
    up[i] = d[i] * silu;
  }
  store(gate, d_gate_up, gate_pack);
  store(up, d_gate_up, gate_pack + row_packs);
  if (out != nullptr) store(y, out, pack);
}

dim3 grid_of(int64_t T, int64_t row_packs) {
  return {static_cast<unsigned>(T), static_cast<unsigned>(ceil_div(row_packs, kThreads))};
}

void silu_gate_forward(const SiluGateForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t row_packs = W / kPack;
        silu_gate<E, kPack><<<grid_of(T, row_packs), kThreads, 0, as_stream(on.stream)>>>(
            static_cast<int>(row_packs), as<E>(its.gate_up), as<E>(its.out));
      },
      its.gate_up, its.out);
  check_launch("silu_gate");
}

void silu_gate_backward(const SiluGateBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t row_packs = W / kPack;
        silu_gate_grad<E, kPack><<<grid_of(T, row_packs), kThreads, 0, as_stream(on.stream)>>>(
            static_cast<int>(row_packs), as<E>(its.d_out), as<E>(its.gate_up), as<E>(its.d_gate_up),
            as<E>(its.out));
      },
      its.d_out, its.gate_up, its.d_gate_up, its.out);
  check_launch("silu_gate_grad");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::GateKernels ferry::ops::kCudaGate = {
    .silu_gate_forward = cuda::silu_gate_forward, .silu_gate_backward = cuda::silu_gate_backward};
