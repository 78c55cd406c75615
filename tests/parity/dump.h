#pragma once
// The files that the programs of these comparisons read and write.

#include <ATen/ops/zeros.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/files/safetensors/safetensors.h"
#include "src/files/safetensors/safetensors_writer.h"

namespace ferry::test {

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

using Tensors = std::map<std::string, at::Tensor>;

/** A file's tensor, of int32 or else of fp32; undefined where the file has none. */
inline at::Tensor tensor_of(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* stored = file.find(name);
  if (stored == nullptr) return {};
  const at::ScalarType type = stored->type == StoredType::i32 ? at::kInt : at::kFloat;
  at::Tensor x = at::zeros(stored->shape, at::TensorOptions().dtype(type));
  memcpy(x.data_ptr(), stored->bytes.data(), stored->bytes.size());
  return x;
}

/** Tensors of fp32 on the CPU. */
inline void write(const std::filesystem::path& path, const Tensors& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, x] : tensors)
    specs.push_back({name, DType::f32, x.sizes().vec()});
  SafetensorsWriter writer(path, specs);
  for (const auto& [name, x] : tensors)
    writer.write(name, {static_cast<const std::byte*>(x.data_ptr()), x.nbytes()});
  writer.finish();
}

}  // namespace ferry::test
