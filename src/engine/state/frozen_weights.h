#pragma once
// The values of frozen weights in a run that computes in 16 bits and keeps no fp32 master of them:
// the file that they were loaded from has them. It is read again for each checkpoint and for the
// trained model. Torch-free.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "src/files/hf/checkpoint_reader.h"

namespace ferry {

class FrozenWeights {
 public:
  FrozenWeights() = default;
  /** The files stay open, and so on the disk when somebody deletes them, as long as this object. */
  explicit FrozenWeights(CheckpointReader file);

  const CheckpointReader& file() const { return *file_; }
  /** Notes a tensor of the file under its Hugging Face name, with the CRC-32C of its values in fp32
   * as they were loaded. */
  void add(const std::string& hf_name, const StoredTensor& tensor, uint32_t checksum);
  bool empty() const { return tensors_.empty(); }
  /** False where the file has no values of the tensor (it was drawn at the start). */
  bool has(const std::string& hf_name) const { return tensors_.contains(hf_name); }
  /** Reads the values from first_element on, in the file's order. */
  void read(const std::string& hf_name, int64_t first_element, std::span<float> values) const;
  /** Throws Error(data) where `checksum`, of all values as they were read, is not the one that was
   * noted: somebody wrote to the file since. */
  void check(const std::string& hf_name, uint32_t checksum) const;

 private:
  struct Tensor {
    const StoredTensor* stored = nullptr;
    uint32_t checksum = 0;
  };
  std::shared_ptr<const CheckpointReader> file_;
  std::unordered_map<std::string, Tensor> tensors_;
};

}  // namespace ferry
