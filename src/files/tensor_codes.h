#pragma once
// The content of a tensor that a file has in another form than its values: quantised, or with its
// rows in another order. The readers of bitsandbytes, GGUF and MXFP4 make it, and
// CheckpointReader asks it for values. Rows that a run keeps as they are come from it, too.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ferry {

class TensorCodes {
 public:
  TensorCodes() = default;
  TensorCodes(const TensorCodes&) = delete;
  TensorCodes& operator=(const TensorCodes&) = delete;
  virtual ~TensorCodes() = default;

  /** Values of the tensor from an element on; any thread may ask. */
  virtual void values(int64_t first, std::span<float> out) const = 0;
  /** The bytes of the file that were read for so many elements; more is no fault. */
  virtual std::span<const std::byte> bytes_of(int64_t first, int64_t n) const = 0;

  /** The storage (models/core/storage.h) in which a linear map's rows are there, by its name;
   * empty: values are all there is. */
  virtual std::string_view storage() const { return {}; }
  /** Codes of rows in that storage, one after the other. Row i gives output i of the linear map, or
   * where its model has the rows of several heads in parts, of these. */
  virtual void read_rows(int64_t /*first*/, int64_t /*n*/, std::span<std::byte> /*out*/) const {}
  /** Scales of all rows where they are quantised, too: a byte each, an offset, and a scale for each
   * block of them. The maps are the values of both kinds of codes. */
  struct NestedScales {
    std::span<const std::byte> codes;
    float offset = 0;
    std::span<const float> scales;
    std::span<const float> value_map, scale_map;
  };
  virtual NestedScales nested_scales() const { return {}; }
};

}  // namespace ferry
