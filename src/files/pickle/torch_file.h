#pragma once
// One pytorch_model.bin, read in place: a zip archive of torch.save with a pickle that describes
// the tensors, and an entry with the bytes of each storage; or what torch wrote before 1.6, such a
// pickle with the storages behind it. The pickle is read for tensors alone, and nothing of it is
// executed. Everything is checked when the file is opened, so that every span
// handed out later lies inside the file.

#include <filesystem>
#include <vector>

#include "src/files/mapped_file.h"
#include "src/files/safetensors/safetensors.h"

namespace ferry {

class TorchFile {
 public:
  /** Maps the file and checks it. Error(data): missing, truncated, or with anything in its pickle
   * that a dictionary of tensors does not need. */
  static TorchFile open(const std::filesystem::path& path);

  /** In the order of the pickle. Tensors may share bytes, and lie in them with strides. */
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  explicit TorchFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace ferry
