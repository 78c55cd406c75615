#pragma once
// Tensors that bitsandbytes has quantised (versions 0.41 to 0.50): 4 bits with a scale for each
// block of values, which may be quantised again, and 8 bits with a scale for each row. A checkpoint
// has several tensors in the place of each; here they become one with the values they stand for.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "src/files/safetensors/safetensors.h"
#include "src/files/tensor_codes.h"

namespace ferry {

/** The codes of a tensor, in the file, and their scales. */
struct QuantisedCodes final : TensorCodes {
  int64_t columns = 0;
  int bits = 4;                 ///< 4: an index into `map`, the first in the high half of a byte
  std::array<float, 16> map{};  ///< of 4 bits
  int64_t values_per_scale = 64;
  std::span<const std::byte> codes;
  std::span<const std::byte> scales;  ///< fp32, or where they are nested a byte each
  /** A nested scale i is nested_map[byte] * nested_scales_[i / nested_block] + offset. */
  std::vector<float> nested_map, nested_scales_;
  int64_t nested_block = 256;
  float nested_offset = 0;

  float scale(size_t index) const;
  int64_t n_scales() const {
    const size_t each = nested_map.empty() ? sizeof(float) : 1;
    return static_cast<int64_t>(scales.size() / each);
  }

  /** The values from `first` on, as bitsandbytes makes them in fp32. */
  void values(int64_t first, std::span<float> out) const override;
  std::span<const std::byte> bytes_of(int64_t first, int64_t n) const override;
  std::string_view storage() const override;
  void read_rows(int64_t first, int64_t n, std::span<std::byte> out) const override;
  NestedScales nested_scales() const override;
};

/** The tensors of a model without quantisation, and the names of the tensors they were made of. */
struct Dequantised {
  std::deque<StoredTensor> tensors;  ///< with codes; of the type that the model was made in
  std::unordered_set<std::string> used;
};

/** Takes all tensors of a checkpoint, which outlive the result. Throws Error(data) with `file` and
 * a tensor's name where it is missing, or has another size or form than the others say. */
Dequantised dequantised(std::span<const StoredTensor* const> tensors, const std::string& file);

}  // namespace ferry
