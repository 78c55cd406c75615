#include "models/core/block.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>

#include "simd/random.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {

at::ScalarType scalar_type_of(DType type) {
  switch (type) {
    case DType::f32:
      return at::kFloat;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::i32:
      return at::kInt;
    case DType::i64:
      return at::kLong;
    case DType::u8:
      return at::kByte;
  }
  return at::kFloat;
}

at::Tensor Scratch::take(at::IntArrayRef shape, at::ScalarType dtype) {
  const int64_t n_bytes =
      c10::multiply_integers(shape) * static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t end_bytes = used_bytes_ + round_up(n_bytes, kTensorAlignment_bytes);
  FERRY_CHECK(end_bytes <= capacity_bytes_, "scratch of {} bytes, {} of them in use, {} more asked",
              capacity_bytes_, used_bytes_, n_bytes);
  void* at = static_cast<std::byte*>(base_) + used_bytes_;
  used_bytes_ = end_bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return at::from_blob(at, shape, at::TensorOptions().dtype(dtype).device(device_));
}

at::Tensor Scratch::at(int64_t offset_bytes, at::IntArrayRef shape, at::ScalarType dtype) {
  const int64_t mark = used_bytes_;
  used_bytes_ = offset_bytes;
  at::Tensor tensor = take(shape, dtype);
  used_bytes_ = mark;
  return tensor;
}

uint64_t RandomKey::of(int operation) const {
  return simd::mix_key(seed, static_cast<uint64_t>(step), static_cast<uint64_t>(micro_batch),
                       static_cast<uint64_t>(block), static_cast<uint64_t>(operation));
}

}  // namespace ferry
