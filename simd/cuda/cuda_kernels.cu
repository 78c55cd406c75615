// The element-wise GPU kernels but updates, over packs of elements; the arithmetic is
// elementwise.h's.

#include "simd/cuda/cuda_kernels.h"

#include "simd/cuda/cuda_packs.h"

namespace ferry::simd::cuda {
namespace {

template <class To, class From>
struct ConvertOp {
  To* to;
  const From* from;

  template <int kPack>
  __device__ void run(int64_t i) const {
    const auto in = load_pack<kPack>(from + i);
    Pack<To, kPack> out;
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      from_float(to_float(in.x[k]), &out.x[k]);
    store_pack<kPack>(to + i, out);
  }
};

template <class Grad>
struct AccumulateOp {
  float* sum;
  const Grad* grad;

  template <int kPack>
  __device__ void run(int64_t i) const {
    auto sum_pack = load_pack<kPack>(sum + i);
    const auto g_pack = load_pack<kPack>(grad + i);
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      sum_pack.x[k] = add_element<ScalarMath>(sum_pack.x[k], to_float(g_pack.x[k]));
    store_pack<kPack>(sum + i, sum_pack);
  }
};

}  // namespace

bool is_available() {
  int n_devices = 0;
  const bool answers = cudaGetDeviceCount(&n_devices) == cudaSuccess && n_devices > 0;
  cudaGetLastError();  // a failed count must not show up as a later launch's error
  return answers;
}

void convert(void* to, DType to_type, const void* from, DType from_type, int64_t n, void* stream) {
  if (to_type == from_type) {
    if (n <= 0) return;
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(n) * size_of(to_type), cudaMemcpyDefault,
                          static_cast<cudaStream_t>(stream)),
          "cudaMemcpyAsync");
    return;
  }
  const auto run = [&]<class To, class From>(To* out, const From* in) {
    launch(ConvertOp<To, From>{out, in}, n, fits_packs(out) && fits_packs(in), stream, "convert");
  };
  if (from_type == DType::f32) {
    with_type(to_type, "convert",
              [&]<class To>(To*) { run(static_cast<To*>(to), static_cast<const float*>(from)); });
  } else if (to_type == DType::f32) {
    with_type(from_type, "convert", [&]<class From>(From*) {
      run(static_cast<float*>(to), static_cast<const From*>(from));
    });
  } else {
    wrong_type("convert from a 16-bit type", to_type);
  }
}

void accumulate(float* sum, const void* grad, DType grad_type, int64_t n, void* stream) {
  with_type(grad_type, "accumulate", [&]<class Grad>(Grad*) {
    const auto* g = static_cast<const Grad*>(grad);
    launch(AccumulateOp<Grad>{sum, g}, n, fits_packs(sum) && fits_packs(g), stream, "accumulate");
  });
}

void accumulate_first(float* sum, const void* grad, DType grad_type, int64_t n, void* stream) {
  convert(sum, DType::f32, grad, grad_type, n, stream);
}

}  // namespace ferry::simd::cuda
