#pragma once
// Helpers with which operations hand tensors to raw-pointer kernels (private to models/ops): types,
// device dispatch, the compute stream, scratch.

#include <ATen/core/Tensor.h>

#include "models/block.h"
#include "models/ops/cuda_kernels.h"
#include "models/ops/dropout.h"
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

inline void* take_bytes(Scratch& scratch, int64_t n_bytes) {
  return scratch.take({n_bytes}, at::kByte).data_ptr();
}

}  // namespace ferry::ops
