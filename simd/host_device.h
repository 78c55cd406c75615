#pragma once
// FERRY_INLINE: a function that is always inlined, on the host and in CUDA kernels. Headers that
// the per-ISA files and the .cu file share mark every function with it: a function that leaves no
// symbol cannot carry AVX-512 code into a program part compiled for every CPU.

#ifdef __CUDACC__
#define FERRY_INLINE __host__ __device__ __forceinline__
#else
#define FERRY_INLINE inline __attribute__((always_inline))
#endif
