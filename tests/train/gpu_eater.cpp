// Another program on the same GPU, for tests. Reads a letter at a time: `t` takes all memory of the
// card that it can get, `f` frees it; answers each with a line of how many bytes it holds. Ends
// with its input.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

int main() {
  constexpr size_t kMiB = 1 << 20;
  std::vector<void*> pieces;
  size_t n_bytes = 0;
  if (cudaFree(nullptr) != cudaSuccess) return 5;  // its context is there before it is asked
  for (int letter; (letter = std::getchar()) != EOF;) {
    if (letter == 't')
      for (size_t piece = 1024 * kMiB; piece >= kMiB; piece /= 2)
        for (void* memory = nullptr; cudaMalloc(&memory, piece) == cudaSuccess; n_bytes += piece)
          pieces.push_back(memory);
    if (letter == 'f') {
      for (void* memory : pieces)
        cudaFree(memory);
      pieces.clear();
      n_bytes = 0;
    }
    std::printf("%zu\n", n_bytes);
    std::fflush(stdout);
  }
  return 0;
}
