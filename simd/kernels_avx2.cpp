// The kernels for AVX2 + FMA + F16C; compiled with exactly these flags, which level.cpp checks for.

#include "simd/kernels_impl.h"

namespace ferry::simd {
const KernelTable kAvx2Kernels = KernelsFor<xsimd::fma3<xsimd::avx2>>::table();
}
