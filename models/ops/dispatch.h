#pragma once
// Helpers with which operations hand tensors to raw-pointer kernels (private to models/ops): types,
// the device's table, the compute stream, scratch. GEMM, and attention on a GPU, are ATen's.

#include <ATen/core/Tensor.h>

#include "models/core/block.h"
#include "models/ops/dropout_mask.h"
#include "models/ops/operation.h"
#include "src/base/dtype.h"

namespace ferry::ops {

DType dtype_of(const at::Tensor& x);

inline bool on_cuda(const at::Tensor& x) {
  return x.is_cuda();
}
/** The current stream of the tensor's device, as a cudaStream_t. */
void* stream_of(const at::Tensor& x);

/** Null for an undefined tensor. A dense one otherwise. */
void* data_of(const at::Tensor& x);
float* floats_of(const at::Tensor& x);
const int32_t* ints_of(const at::Tensor& x);

/** The extent of a (T, W) tensor. */
inline Extent extent_of(const at::Tensor& x) {
  return {dtype_of(x), x.size(0), x.size(1)};
}

/** The table of the tensor's device. */
template <class Kernels>
const Kernels& kernels_for(const at::Tensor& x, const Kernels& cpu, const Kernels& cuda) {
  return on_cuda(x) ? cuda : cpu;
}
/** Runs a kernel where the tensor is: on a GPU in its current stream. */
inline Launch launch_on(const at::Tensor& x, void* scratch = nullptr) {
  return {.stream = on_cuda(x) ? stream_of(x) : nullptr, .scratch = scratch};
}

inline void* take_bytes(Scratch& scratch, int64_t n_bytes) {
  return scratch.take({n_bytes}, at::kByte).data_ptr();
}

/** FERRY_CHECK fails unless da is there; without dropout it need not be. */
void check_da(const at::Tensor& da, Dropout dropout);

}  // namespace ferry::ops
