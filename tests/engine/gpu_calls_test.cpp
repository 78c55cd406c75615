// A step's calls of CUDA on the thread that steps: one wait for the GPU, and no memory. This
// program stands in front of the CUDA runtime's calls that wait or allocate, for LibTorch too.

#include <ATen/ops/ones.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "src/engine/cuda/block_graphs.h"
#include "tests/engine/toy_runs.h"

namespace {

/** True while this thread's calls count. Other threads may wait: they are there for it. */
thread_local bool armed = false;
std::map<std::string, int>& calls() {
  static std::map<std::string, int> counts;
  return counts;
}

template <class... Parameters, class... Arguments>
cudaError_t pass_on(const char* name, cudaError_t (*)(Parameters...), Arguments... arguments) {
  if (armed) ++calls()[name];
  return reinterpret_cast<cudaError_t (*)(Parameters...)>(dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace

extern "C" {
cudaError_t cudaDeviceSynchronize() {
  return pass_on("cudaDeviceSynchronize", &cudaDeviceSynchronize);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return pass_on("cudaStreamSynchronize", &cudaStreamSynchronize, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return pass_on("cudaEventSynchronize", &cudaEventSynchronize, event);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t n_bytes, cudaMemcpyKind kind) {
  return pass_on("cudaMemcpy", &cudaMemcpy, to, from, n_bytes, kind);
}
cudaError_t cudaMalloc(void** made, size_t n_bytes) {
  return pass_on("cudaMalloc", static_cast<cudaError_t (*)(void**, size_t)>(&cudaMalloc), made,
                 n_bytes);
}
cudaError_t cudaFree(void* memory) {
  return pass_on("cudaFree", &cudaFree, memory);
}
cudaError_t cudaHostAlloc(void** made, size_t n_bytes, unsigned int flags) {
  return pass_on("cudaHostAlloc",
                 static_cast<cudaError_t (*)(void**, size_t, unsigned int)>(&cudaHostAlloc), made,
                 n_bytes, flags);
}
}

namespace ferry::test {
namespace {

constexpr int kWarmup_steps = 6, kSteps = 14;  // step 5 has fewer micro-batches: its list is new

std::map<std::string, int> calls_of_steps(const ToyModel& model,
                                          ToyPlacement placement,
                                          ToyResult& result) {
  calls().clear();
  placement.device = DeviceKind::cuda;
  placement.before_step = [](int step) { armed = step >= kWarmup_steps && step < kSteps; };
  result = run_toy(model, placement, kSteps);
  return calls();
}

class GpuCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaProbe probe = probe_cuda(); !probe.usable)
      GTEST_SKIP() << "no usable GPU: " << probe.why_not;
  }
  static std::string text_of(const std::map<std::string, int>& counts) {
    std::string text;
    for (const auto& [name, n] : counts)
      text += name + " " + std::to_string(n) + ", ";
    return text;
  }
};

TEST_F(GpuCalls, AStepWaitsOnceAndAllocatesNothing) {
  for (const LossKind loss : {LossKind::cross_entropy, LossKind::masked_lm})
    for (const double max_grad_norm : {0.0, 1.0})
      for (const Place place : {Place::device, Place::host})
        for (const bool graphs : {false, true}) {
          ToyModel model = small_bert(DType::bf16, loss, AttentionBackend::flash);
          model.max_grad_norm = max_grad_norm;
          ToyPlacement placement;
          placement.place = place;
          placement.graphs = graphs;
          ToyResult result;
          EXPECT_EQ(text_of(calls_of_steps(model, placement, result)), "")
              << name_of(place) << ", clipping at " << max_grad_norm << ", graphs " << graphs;
          EXPECT_EQ(result.n_host_waits, std::vector<int64_t>(kSteps, 1));
        }
}

TEST_F(GpuCalls, APlantedCallIsCounted) {
  const ToyModel model = small_bert(DType::bf16, LossKind::cross_entropy, AttentionBackend::flash);
  ToyPlacement placement;
  placement.key_fault = [](RandomKey&, const Action& action) {
    if (action.verb != Verb::backward || action.block != 2 || action.micro != 0) return;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const at::Tensor one = at::ones({1}, at::dtype(at::kFloat).device(at::kCUDA, 0));
    EXPECT_EQ(one.item<float>(), 1);  // LibTorch waits
  };
  ToyResult result;
  placement.graphs = false;
  const std::map<std::string, int> counts = calls_of_steps(model, placement, result);
  for (const char* name : {"cudaDeviceSynchronize", "cudaStreamSynchronize"})
    EXPECT_EQ(counts.contains(name) ? counts.at(name) : 0, kSteps - kWarmup_steps) << name;
}

}  // namespace
}  // namespace ferry::test
