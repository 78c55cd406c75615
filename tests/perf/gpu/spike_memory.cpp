#include "tests/perf/gpu/spike_memory.h"

#include <ATen/ops/from_blob.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry::spike {

void check_cuda(int error, const char* call) {
  FERRY_CHECK(error == 0, "{}: {}", call, cudaGetErrorString(static_cast<cudaError_t>(error)));
}

PinnedBytes::PinnedBytes(int64_t n_bytes) : n_bytes_(n_bytes) {
  void* data = nullptr;
  SPIKE_CUDA(cudaHostAlloc(&data, static_cast<size_t>(n_bytes), cudaHostAllocDefault));
  data_ = static_cast<std::byte*>(data);
}

PinnedBytes::~PinnedBytes() {
  cudaFreeHost(data_);
}

GpuArena::GpuArena(int64_t n_bytes) : n_bytes_(n_bytes) {
  void* data = nullptr;
  SPIKE_CUDA(cudaMalloc(&data, static_cast<size_t>(n_bytes)));
  data_ = static_cast<std::byte*>(data);
}

GpuArena::~GpuArena() {
  cudaFree(data_);
}

std::byte* GpuArena::take(const std::string& tag, int64_t n_bytes) {
  std::byte* const mine = data_ + used_bytes_;
  used_bytes_ += round_up(n_bytes, kTensorAlignment_bytes);
  FERRY_CHECK(used_bytes_ <= n_bytes_, "{} of {} with {}", used_bytes_, n_bytes_, tag);
  tags_.emplace_back(tag, n_bytes);
  return mine;
}

void GpuArena::print() const {
  fmt::print("  planned {}:", format_bytes(n_bytes_));
  for (const auto& [tag, bytes] : tags_)
    fmt::print(" {} {}", tag, format_bytes(bytes));
  fmt::print("\n");
}

at::Tensor view_of(std::byte* data, at::IntArrayRef shape, DType type) {
  const auto scalar = type == DType::f32    ? at::kFloat
                      : type == DType::f16  ? at::kHalf
                      : type == DType::bf16 ? at::kBFloat16
                      : type == DType::i32  ? at::kInt
                      : type == DType::i64  ? at::kLong
                                            : at::kByte;
  return at::from_blob(data, shape, at::TensorOptions().device(at::kCUDA, 0).dtype(scalar));
}

std::vector<at::Tensor> segment_views(const BlockTable& block, std::byte* segment, DType type) {
  std::vector<at::Tensor> views;
  for (const ParamSpec& param : block.params) {
    views.push_back(
        view_of(segment + param.offset * static_cast<int64_t>(size_of(type)), param.shape, type));
  }
  return views;
}

std::vector<at::Tensor> saved_views(const std::vector<SavedSpec>& specs, std::byte* data) {
  std::vector<at::Tensor> views;
  for (const SavedSpec& spec : specs) {
    views.push_back(view_of(data, spec.shape, spec.dtype));
    data += round_up(spec.n_bytes(), kTensorAlignment_bytes);
  }
  return views;
}

int64_t driver_used_bytes() {
  size_t free = 0, total = 0;
  SPIKE_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total - free);
}

}  // namespace ferry::spike
