#pragma once
// The tensors of a model's or an adapter's files, for tests that change them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/files/hf/checkpoint_reader.h"
#include "src/files/safetensors/safetensors_writer.h"

namespace ferry::test {

struct Tensor {
  StoredType type;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};
using Tensors = std::map<std::string, Tensor>;

inline Tensors read_tensors(const std::filesystem::path& directory,
                            std::string_view stem = "model") {
  Tensors tensors;
  const CheckpointReader reader = CheckpointReader::open(directory, stem);
  for (const StoredTensor* stored : reader.tensors())
    tensors[stored->name] = {
        stored->type, stored->shape, {stored->bytes.begin(), stored->bytes.end()}};
  return tensors;
}

inline void write_tensors(const std::filesystem::path& directory,
                          const Tensors& tensors,
                          int64_t max_shard_bytes = INT64_MAX,
                          const std::string& stem = "model") {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : tensors)
    specs.emplace_back(name, tensor.type, tensor.shape);
  CheckpointWriter writer(directory, specs, max_shard_bytes, stem);
  for (const auto& [name, tensor] : tensors)
    writer.write(name, tensor.bytes);
  writer.finish();
}

}  // namespace ferry::test
