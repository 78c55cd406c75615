// Preloaded into a process, a driver that stops to answer: the call of number FERRY_HUNG_AFTER that
// copies or launches something never returns, nor does any later one.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {

void count_call() {
  static const char* const told = std::getenv("FERRY_HUNG_AFTER");
  static std::atomic<long> n_left = told ? std::atol(told) : -1;
  if (!told || n_left.fetch_sub(1) > 0) return;
  while (true)
    ::pause();
}

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t stream) {
  count_call();
  static const auto its = real<decltype(&cudaMemcpyAsync)>("cudaMemcpyAsync");
  return its(to, from, n, kind, stream);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  count_call();
  static const auto its = real<decltype(&cudaGraphLaunch)>("cudaGraphLaunch");
  return its(graph, stream);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  count_call();
  static const auto its = real<decltype(&cudaEventRecord)>("cudaEventRecord");
  return its(event, stream);
}
}
