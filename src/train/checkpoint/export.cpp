#include "src/train/checkpoint/export.h"

#include <fmt/format.h>

#include <cstring>

#include "src/base/error.h"
#include "src/files/hf/hf_directory.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

void copy_weights(const CheckpointReader& weights, const fs::path& to) {
  std::vector<TensorSpec> specs;
  for (const StoredTensor* tensor : weights.tensors()) {
    const auto dtype = dtype_of(tensor->type);
    if (!dtype)
      throw Error(Fault::data, "export.weights",
                  fmt::format("tensor '{}' is {}, which Ferry does not write", tensor->name,
                              name_of(tensor->type)),
                  "convert the model with transformers first");
    specs.push_back(
        {std::string(tensor->name), *dtype, {tensor->shape.begin(), tensor->shape.end()}});
  }
  CheckpointWriter writer(to, specs, kShard_bytes_max);
  for (const StoredTensor* tensor : weights.tensors()) {
    weights.read(*tensor, [&](std::span<const std::byte> bytes, size_t) {
      writer.write(tensor->name, bytes);
    });
  }
  writer.finish();
}

void check_copy(const CheckpointReader& from, const CheckpointReader& copy) {
  for (const StoredTensor* tensor : from.tensors()) {
    const StoredTensor& written = copy.get(tensor->name, tensor->shape);
    bool is_same = std::ssize(written.bytes) == tensor->n_bytes();
    from.read(*tensor, [&](std::span<const std::byte> bytes, size_t first_byte) {
      if (!is_same) return;
      const auto beside = written.bytes.subspan(first_byte, bytes.size());
      is_same = std::memcmp(beside.data(), bytes.data(), bytes.size()) == 0;
      CheckpointReader::release_pages(written, beside);
    });
    if (!is_same)
      throw Error(Fault::machine, "export.check",
                  fmt::format("tensor '{}' reads back differently", tensor->name),
                  "check the disk");
  }
}

}  // namespace

void export_model(const fs::path& from, const fs::path& to) {
  const HfDirectory model = HfDirectory::open(from);
  const CheckpointReader weights = model.weights();
  AtomicDirectory directory(to);
  copy_weights(weights, directory.path());
  write_config(directory.path(), model.config());
  model.copy_tokenizer_files(directory.path());
  check_copy(weights, CheckpointReader::open(directory.path()));
  directory.commit();
}

}  // namespace ferry
