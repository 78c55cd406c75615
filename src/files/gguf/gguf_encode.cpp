#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd/kernels.h"
#include "src/base/error.h"
#include "src/files/gguf/gguf_types.h"

namespace ferry {
namespace {

void encode_q8_0(const float* values, std::byte* out) {
  float most = 0;
  for (int i = 0; i < 32; ++i)
    most = std::max(most, std::fabs(values[i]));
  const float d = most / 127, inverse = d > 0 ? 1 / d : 0;
  simd::convert(out, DType::f16, &d, DType::f32, 1);
  for (int i = 0; i < 32; ++i)
    out[2 + i] = static_cast<std::byte>(static_cast<int>(std::round(values[i] * inverse)));
}

}  // namespace

void encode_gguf(GgufType type, std::span<const float> values, std::span<std::byte> out) {
  FERRY_CHECK(std::ssize(out) == bytes_of(type, std::ssize(values)), "{} bytes for {} of {}",
              out.size(), values.size(), name_of(type));
  const auto n = std::ssize(values);
  switch (type) {
    case GgufType::f32:
      if (n > 0) std::memcpy(out.data(), values.data(), out.size());
      return;
    case GgufType::f16:
      return simd::convert(out.data(), DType::f16, values.data(), DType::f32, n);
    case GgufType::bf16:
      return simd::convert(out.data(), DType::bf16, values.data(), DType::f32, n);
    case GgufType::q8_0:
      for (int64_t i = 0; i < n / 32; ++i)
        encode_q8_0(values.data() + 32 * i, out.data() + 34 * i);
      return;
    default:
      FERRY_CHECK(false, "no writer of {}", name_of(type));
  }
}

}  // namespace ferry
