// A pickle is refused, or its tensors lie in their storages; an archive is refused, or its entries
// lie in it.

#include <cstdint>
#include <cstdlib>

#include "src/files/pickle/tensor_pickle.h"
#include "src/files/pickle/zip_index.h"

namespace {

using namespace ferry;

void check_pickle(std::span<const std::byte> bytes) {
  for (const PickledTensor& tensor : read_tensor_pickle(bytes)) {
    if (tensor.shape.size() != tensor.strides.size() || tensor.offset < 0) std::abort();
    __int128 last = tensor.offset;  // of the storage's elements
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      last += static_cast<__int128>(tensor.shape[i] - 1) * tensor.strides[i];
    if (tensor.n_elements() > 0 &&
        (last + 1) * bits_of(tensor.type) > __int128{8} * tensor.storage_bytes)
      std::abort();
  }
}

void check_archive(std::span<const std::byte> bytes) {
  for (const auto& [name, entry] : index_zip(bytes))
    if (entry.data() < bytes.data() || entry.data() + entry.size() > bytes.data() + bytes.size())
      std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (auto check : {check_pickle, check_archive}) {
    try {
      check(std::as_bytes(std::span(data, size)));
    } catch (const TorchFormatError&) {
    }
  }
  return 0;
}
