#pragma once
// The pickle inside a file of torch.save, read for its tensors alone. A pickle is a program for
// Python; of it only the operations that build tensors in dictionaries are known here, and nothing
// of it is executed. Private to src/files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/files/pickle/zip_index.h"
#include "src/files/safetensors/safetensors.h"

namespace ferry {

/** A tensor as the pickle describes it: a view of a storage, whose bytes lie elsewhere. */
struct PickledTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape, strides;  ///< of the same length; strides in elements
  int64_t offset = 0;                   ///< elements of the storage before the first
  std::string storage;                  ///< its key
  int64_t storage_bytes = 0;            ///< a whole number of elements; holds the view

  int64_t n_elements() const;
};

/** The named tensors of a dictionary, in its order; other values are passed over. Memory and time
 * are bounded by the pickle's length. Throws TorchFormatError, which names a Python global that is
 * not one of those of a state of tensors. */
std::vector<PickledTensor> read_tensor_pickle(std::span<const std::byte> pickle);

// The same for pickles that stand one behind the other; each moves `bytes` behind its own.

std::vector<PickledTensor> take_tensor_pickle(std::span<const std::byte>& bytes);
/** A list of texts. */
std::vector<std::string> take_texts_pickle(std::span<const std::byte>& bytes);
/** A flag in a dictionary; false where the dictionary has none of this key. */
bool take_flag_pickle(std::span<const std::byte>& bytes, std::string_view key);

}  // namespace ferry
