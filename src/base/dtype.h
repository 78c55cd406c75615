#pragma once
// Element types of everything that has bytes: parameters, saved tensors, safetensors files. No
// torch here.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry {

enum class DType : uint8_t { f32, f16, bf16, i32, i64, u8 };

constexpr size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "fp32";
    case DType::f16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
  }
  return "?";
}

}  // namespace ferry
