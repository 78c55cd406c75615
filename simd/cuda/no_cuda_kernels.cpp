// Stands in for cuda_*.cu in a build without CUDA.

#include "simd/cuda/cuda_kernels.h"
#include "src/base/error.h"

namespace ferry::simd::cuda {
namespace {

[[noreturn]] void no_cuda() {
  throw Error(Fault::machine, "simd.cuda", "this build has no CUDA kernels",
              "install a CUDA toolkit and build with -Dcuda=enabled");
}

}  // namespace

bool is_available() {
  return false;
}
void update(const UpdateArgs&, void*) {
  no_cuda();
}
void convert(void*, DType, const void*, DType, int64_t, void*) {
  no_cuda();
}
void accumulate(float*, const void*, DType, int64_t, void*) {
  no_cuda();
}
void accumulate_first(float*, const void*, DType, int64_t, void*) {
  no_cuda();
}
void square_sum_chunks(const void*, DType, int64_t, double*, void*) {
  no_cuda();
}
void square_sum(const void*, DType, int64_t, double*, double*, void*) {
  no_cuda();
}
void sum_in_order(const double*, int64_t, double*, void*) {
  no_cuda();
}

}  // namespace ferry::simd::cuda
