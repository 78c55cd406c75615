#pragma once
// Memory of the layer spike, laid out from the tensor tables: one reservation on the GPU cut into
// tagged parts, pinned host segments, and the views a Block wants.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/block.h"
#include "models/tensor_table.h"

namespace ferry::spike {

/** Aborts with the call's text. */
void check_cuda(int error, const char* call);
#define SPIKE_CUDA(call) ::ferry::spike::check_cuda(static_cast<int>(call), #call)

/** Pinned host memory. */
class PinnedBytes {
 public:
  explicit PinnedBytes(int64_t n_bytes);
  ~PinnedBytes();
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  std::byte* data() const { return data_; }
  int64_t n_bytes() const { return n_bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t n_bytes_ = 0;
};

/** One cudaMalloc, given out from the front in 512-byte steps and remembered by tag. */
class GpuArena {
 public:
  explicit GpuArena(int64_t n_bytes);
  ~GpuArena();
  GpuArena(const GpuArena&) = delete;
  GpuArena& operator=(const GpuArena&) = delete;
  std::byte* take(const std::string& tag, int64_t n_bytes);
  void print() const;

 private:
  std::byte* data_ = nullptr;
  int64_t n_bytes_ = 0;
  int64_t used_bytes_ = 0;
  std::vector<std::pair<std::string, int64_t>> tags_;
};

at::Tensor view_of(std::byte* data, at::IntArrayRef shape, DType type);
/** Views of a segment (weights or gradients) of this block, table order. */
std::vector<at::Tensor> segment_views(const BlockTable& block, std::byte* segment, DType type);
/** Views of saved tensors laid one after another. */
std::vector<at::Tensor> saved_views(const std::vector<SavedSpec>& specs, std::byte* data);

/** Bytes the driver has given out on this GPU. */
int64_t driver_used_bytes();

}  // namespace ferry::spike
