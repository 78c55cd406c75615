#pragma once
// Private to simd/'s .cu files: the check behind every launch, and the choice of a kernel by
// element type.

#include <cuda_runtime.h>

#include <string>

#include "simd/elementwise.h"
#include "src/base/error.h"

namespace ferry::simd::cuda {

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(Fault::machine, "simd.cuda", std::string(call) + ": " + cudaGetErrorString(status),
              "see the driver's log (dmesg, nvidia-smi)");
}

inline constexpr int kBlockThreads = 256;

/** FERRY_CHECK without fmt, whose version 9 nvcc does not take in C++20. */
[[noreturn]] inline void wrong_type(const char* name, DType type) {
  check_failed(__FILE__, __LINE__, name, "not offered for " + std::string(name_of(type)));
}

/** Calls f with a null pointer to the element type. */
template <class F>
void with_type(DType type, const char* name, F f) {
  switch (type) {
    case DType::f32:
      f(static_cast<float*>(nullptr));
      return;
    case DType::f16:
      f(static_cast<Half*>(nullptr));
      return;
    case DType::bf16:
      f(static_cast<Bfloat*>(nullptr));
      return;
    default:
      wrong_type(name, type);
  }
}

}  // namespace ferry::simd::cuda
