// The kernels for AVX-512 F, BW, DQ, VL (with AVX2, FMA, F16C); compiled with exactly these flags,
// which level.cpp checks for.

#include "simd/kernels_impl.h"

namespace ferry::simd {
const KernelTable kAvx512Kernels = KernelsFor<xsimd::avx512bw>::table();
}
