// The gated activation f(gate) * up on CUDA, both halves in one row, forward and backward.

#include "models/ops/cuda/cuda_activations.h"
#include "models/ops/gate/gate.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

/** blockIdx.x = row, blockIdx.y = kThreads packs of it. */
template <Activation kKind, typename T, int N>
__global__ void __launch_bounds__(kThreads) gate_rows(int row_packs, const T* gate_up, T* out) {
  const auto column = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (column >= row_packs) return;
  const int64_t row = blockIdx.x, gate_pack = row * 2 * row_packs + column;
  float gate[N], up[N];
  load(gate_up, gate_pack, gate);
  load(gate_up, gate_pack + row_packs, up);
#pragma unroll
  for (int i = 0; i < N; i++)
    up[i] *= activated<kKind, T>(gate[i]).value;
  store(up, out, row * row_packs + column);
}

template <Activation kKind, typename T, int N>
__global__ void __launch_bounds__(kThreads)
    gate_grad(int row_packs, const T* d_out, const T* gate_up, T* d_gate_up, T* out) {
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
    const Activated at = activated<kKind, T>(gate[i]);
    y[i] = at.value * up[i];
    gate[i] = d[i] * up[i] * at.slope;
    up[i] = d[i] * at.value;
  }
  store(gate, d_gate_up, gate_pack);
  store(up, d_gate_up, gate_pack + row_packs);
  if (out != nullptr) store(y, out, pack);
}

dim3 grid_of(int64_t T, int64_t row_packs) {
  return {static_cast<unsigned>(T), static_cast<unsigned>(ceil_div(row_packs, kThreads))};
}

void gate_forward(const GateForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_activation(its.kind, [&]<Activation kKind>(ActivationIs<kKind>) {
    with_packs(
        type, W,
        [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
          const int64_t row_packs = W / kPack;
          gate_rows<kKind, E, kPack><<<grid_of(T, row_packs), kThreads, 0, as_stream(on.stream)>>>(
              static_cast<int>(row_packs), as<E>(its.gate_up), as<E>(its.out));
        },
        its.gate_up, its.out);
  });
  check_launch("gate_rows");
}

void gate_backward(const GateBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_activation(its.kind, [&]<Activation kKind>(ActivationIs<kKind>) {
    with_packs(
        type, W,
        [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
          const int64_t row_packs = W / kPack;
          gate_grad<kKind, E, kPack><<<grid_of(T, row_packs), kThreads, 0, as_stream(on.stream)>>>(
              static_cast<int>(row_packs), as<E>(its.d_out), as<E>(its.gate_up),
              as<E>(its.d_gate_up), as<E>(its.out));
        },
        its.d_out, its.gate_up, its.d_gate_up, its.out);
  });
  check_launch("gate_grad");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::GateKernels ferry::ops::kCudaGate = {.gate_forward = cuda::gate_forward,
                                                       .gate_backward = cuda::gate_backward};
