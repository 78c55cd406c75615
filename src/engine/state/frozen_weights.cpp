#include "src/engine/state/frozen_weights.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {

FrozenWeights::FrozenWeights(CheckpointReader file)
    : file_(std::make_shared<const CheckpointReader>(std::move(file))) {}

void FrozenWeights::add(const std::string& hf_name, const StoredTensor& tensor, uint32_t checksum) {
  tensors_[hf_name] = {&tensor, checksum};
}

void FrozenWeights::read(const std::string& hf_name,
                         int64_t first_element,
                         std::span<float> values) const {
  const StoredTensor& tensor = *tensors_.at(hf_name).stored;
  CheckpointReader::read_part(tensor, first_element, values);
  CheckpointReader::release_pages(tensor, first_element, std::ssize(values));
}

void FrozenWeights::check(const std::string& hf_name, uint32_t checksum) const {
  if (tensors_.at(hf_name).checksum == checksum) return;
  throw Error(Fault::data, "checkpoint.write",
              fmt::format("'{}' has other values of '{}' than when the run began",
                          file_->path().string(), hf_name),
              "a run with frozen weights reads them from there: put the file back");
}

}  // namespace ferry
