#pragma once
// Runs a model's blocks one after another on the CPU or a GPU, for tests and benchmarks: every
// buffer as large as the tensor table says and not a byte more, all of it filled with NaN first, so
// that reading what nobody wrote shows. The engine does the same with slots and queues in between.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/core/block.h"
#include "models/core/tensor_table.h"

namespace ferry::test {

/** Memory on a 512-byte boundary, filled with NaN (in every type). */
class Region {
 public:
  explicit Region(int64_t n_bytes, at::Device device = at::kCPU);
  std::byte* data() const { return static_cast<std::byte*>(bytes_.data_ptr()); }
  int64_t n_bytes() const { return bytes_.numel(); }
  void poison();
  /** A tensor at this byte. */
  at::Tensor at(int64_t offset_bytes, at::IntArrayRef shape, at::ScalarType type) const;

 private:
  at::Tensor bytes_;
};

/** One micro-batch with its tensors; sequences of these lengths, the last n_dummy without loss. */
struct TestBatch {
  TestBatch(const std::vector<int64_t>& lengths, int64_t n_dummy, int64_t vocab, uint64_t seed);

  /** Each token's label is the next one of its sequence; the last one has none. */
  void label_next_tokens();

  std::vector<int32_t> input_ids, type_ids, position_ids, cu_seqlens;
  BatchTensors tensors;  ///< labels are the caller's
};
/** The same batch with its tensors on this device. */
BatchTensors on_device(at::Device device, BatchTensors batch);

/** fp32 values (rows, columns) as a matrix stores them, and the values of what is stored. */
at::Tensor stored(const StoredParts& parts, const at::Tensor& values);
at::Tensor values_of(const StoredParts& parts, const at::Tensor& stored);

class ModelRunner {
 public:
  ModelRunner(ModelTable table,
              LossKind loss,
              const BatchShape& shape,
              at::Device device = at::kCPU);

  const ModelTable& table() const { return table_; }
  /** Normal weights from a seed (std), norms near one, biases near zero but not zero. */
  void randomise(uint64_t seed, float std);
  /** View of a parameter of a block as it is stored; its gradient. */
  at::Tensor param(int block, int index) { return blocks_[block].memory.params[index]; }
  at::Tensor grad(int block, int index) { return blocks_[block].memory.grads[index]; }
  int block_index(const std::string& name) const;

  /** Loss of one micro-batch, which is on the runner's device; logits if a defined tensor is
   * passed. */
  float forward(const RandomKey& key, const BatchTensors& batch, at::Tensor logits = {});
  /** Gradients of every parameter, fp32, by Hugging Face name (qkv taken apart, tied ones added).
   */
  void backward(const RandomKey& key, const BatchTensors& batch);
  std::map<std::string, at::Tensor> hf_grads();
  /** Fills a parameter, or a part of it, from the file's tensor. */
  void set(const HfEntry& entry, const at::Tensor& of_file);
  std::map<std::string, at::Tensor> hf_params();

  /** Scratch peaks of the last forward and backward of a block. */
  int64_t forward_peak_bytes(int block) const { return blocks_[block].forward_peak; }
  int64_t backward_peak_bytes(int block) const { return blocks_[block].backward_peak; }

  /** Fills saved tensors, gradients, layer inputs and scratch with NaN again. */
  void poison();

 private:
  struct RunBlock {
    std::unique_ptr<Block> code;
    std::unique_ptr<Region> weights, grads, borrowed_grads, saved;
    BlockMemory memory;
    int64_t forward_peak = 0, backward_peak = 0;
  };
  std::map<std::string, at::Tensor> by_hf_name(bool grads);
  /** The values at the block's ports; undefined where the pass has no use. */
  std::vector<at::Tensor> ports_of(size_t b, const BatchShape& shape, bool is_backward);

  ModelTable table_;
  at::Device device_;
  std::vector<RunBlock> blocks_;
  std::vector<std::unique_ptr<Region>> passed_;  ///< by ModelTable::values
  std::unique_ptr<Region> forward_scratch_, backward_scratch_;
  std::vector<int64_t> forward_bytes_, backward_bytes_;
};

}  // namespace ferry::test
