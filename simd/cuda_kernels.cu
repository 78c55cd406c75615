// The element-wise GPU kernels but AdamW, over packs of elements; the arithmetic is
// elementwise.h's.

#include "simd/cuda_kernels.h"

#include "simd/cuda_packs.h"
#include "simd/philox.h"

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

/** Packs of four only where first_element is a multiple of four: a pack is then one counter. */
struct MaskOp {
  uint8_t* keep;
  uint64_t first_element, key;
  uint32_t threshold;

  template <int kPack>
  __device__ void run(int64_t i) const {
    const uint64_t element = first_element + static_cast<uint64_t>(i);
    Pack<uint8_t, kPack> pack;
    if constexpr (kPack == 4) {
      const PhiloxWords words = philox(element / 4, key);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        pack.x[k] = words.word[k] >= threshold;
    } else {
      pack.x[0] = philox_element(element, key) >= threshold;
    }
    store_pack<kPack>(keep + i, pack);
  }
};

template <class T>
struct DropoutOp {
  T* out;
  const T* in;
  const uint8_t* keep;
  float scale;

  template <int kPack>
  __device__ void run(int64_t i) const {
    const auto in_pack = load_pack<kPack>(in + i);
    const auto keep_pack = load_pack<kPack>(keep + i);
    Pack<T, kPack> out_pack;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const float x = scale_element<ScalarMath>(to_float(in_pack.x[k]), scale);
      from_float(keep_pack.x[k] != 0 ? x : 0.0f, &out_pack.x[k]);
    }
    store_pack<kPack>(out + i, out_pack);
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

void dropout_mask(
    uint8_t* keep, int64_t n, uint64_t first_element, uint64_t key, float p, void* stream) {
  const MaskOp op{keep, first_element, key, dropout_threshold(p)};
  launch(op, n, fits_packs(keep) && first_element % 4 == 0, stream, "dropout_mask");
}

void dropout_apply(
    void* out, const void* in, DType type, const uint8_t* keep, int64_t n, float p, void* stream) {
  with_type(type, "dropout_apply", [&]<class T>(T*) {
    auto* to = static_cast<T*>(out);
    const auto* from = static_cast<const T*>(in);
    const bool packs = fits_packs(to) && fits_packs(from) && fits_packs(keep);
    launch(DropoutOp<T>{to, from, keep, dropout_scale(p)}, n, packs, stream, "dropout_apply");
  });
}

}  // namespace ferry::simd::cuda
