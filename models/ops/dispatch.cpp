#include "models/ops/dispatch.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry::ops {

DType dtype_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return DType::f32;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kInt:
      return DType::i32;
    case at::kLong:
      return DType::i64;
    case at::kByte:
      return DType::u8;
    default:
      FERRY_CHECK(false, "a tensor of {}", c10::toString(x.scalar_type()));
  }
  return DType::f32;
}

void* stream_of(const at::Tensor& x) {
  const c10::impl::VirtualGuardImpl device(x.device().type());
  return device.getStreamNativeHandle(device.getStream(x.device()));
}

void* data_of(const at::Tensor& x) {
  if (!x.defined()) return nullptr;
  FERRY_CHECK(x.is_contiguous(), "a tensor of {} dimensions is not dense", x.dim());
  return x.data_ptr();
}

float* floats_of(const at::Tensor& x) {
  FERRY_CHECK(x.scalar_type() == at::kFloat, "fp32 expected, got {}",
              c10::toString(x.scalar_type()));
  return static_cast<float*>(data_of(x));
}

const int32_t* ints_of(const at::Tensor& x) {
  FERRY_CHECK(x.scalar_type() == at::kInt, "int32 expected, got {}",
              c10::toString(x.scalar_type()));
  return static_cast<const int32_t*>(data_of(x));
}

void check_da(const at::Tensor& da, Dropout dropout) {
  FERRY_CHECK(da.defined() || dropout.p == 0, "dropout {} needs da", dropout.p);
}

}  // namespace ferry::ops
