#pragma once
// Helpers that the tests of operations on a GPU share: the list of types and shapes, random and
// poisoned matrices, poisoned scratch, and the comparison with a reference in fp64.

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <tuple>

#include "models/core/block.h"
#include "models/ops/cuda_scratch.h"
#include "models/ops/dropout_mask.h"
#include "simd/philox.h"

namespace ferry::ops::cuda::test {

struct Shape {
  int64_t rows;
  int64_t width;
};

/** Rows and widths around the kernels' edges: one row; more rows than a chunk or than the blocks of
 * a norm's backward; widths of BERT models; rows of odd bytes; wider than one access a thread. */
inline constexpr std::array kShapes{Shape{1, 8},      Shape{65, 384}, Shape{37, 1024},
                                    Shape{1100, 768}, Shape{300, 64}, Shape{33, 30},
                                    Shape{17, 5},     Shape{9, 2047}, Shape{3, 8192}};

using Case = std::tuple<DType, Shape>;

/** Scratch on the GPU, all ones. */
struct Room {
  at::Tensor bytes;
  Scratch scratch;

  explicit Room(int64_t n_bytes)
      : bytes(at::full({round_up(n_bytes, kTensorAlignment_bytes)},
                       255,
                       at::device(at::kCUDA).dtype(at::kByte))),
        scratch(bytes.data_ptr(), bytes.numel(), bytes.device()) {}
};

inline at::ScalarType torch_type(DType type) {
  return type == DType::f32 ? at::kFloat : type == DType::f16 ? at::kHalf : at::kBFloat16;
}

inline std::string case_name(const testing::TestParamInfo<Case>& info) {
  const auto& [type, shape] = info.param;
  return std::string(name_of(type)) + "_" + std::to_string(shape.rows) + "x" +
         std::to_string(shape.width);
}

/** Skips without a GPU; gives matrices of the case's type. */
class KernelTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || at::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA GPU here";
    at::manual_seed(11);
    std::tie(type, shape) = GetParam();
  }

  at::TensorOptions options() const { return at::device(at::kCUDA).dtype(torch_type(type)); }
  at::Tensor random(at::IntArrayRef sizes) const {
    return at::randn(sizes, at::device(at::kCUDA).dtype(at::kFloat)).to(torch_type(type));
  }
  /** NaN wherever a kernel does not write. */
  at::Tensor poisoned(at::IntArrayRef sizes) const {
    return at::full(sizes, std::numeric_limits<double>::quiet_NaN(), options());
  }
  at::Tensor poisoned_f32(at::IntArrayRef sizes) const {
    return at::full(sizes, std::numeric_limits<double>::quiet_NaN(), options().dtype(at::kFloat));
  }
  /** The norm of the difference relative to the reference's: within one rounding to the type,
   * `slack` times. */
  void expect_close(const at::Tensor& value,
                    const at::Tensor& reference,
                    const char* what,
                    double slack = 1) const {
    const double step = type == DType::f32 ? 1e-6 : type == DType::f16 ? 4e-4 : 3e-3;
    const double norm = reference.norm().item<double>();
    const double error = (value.to(at::kDouble) - reference).norm().item<double>();
    EXPECT_LE(error, slack * step * norm + 1e-30) << what << ", norm " << norm;
  }

  /** 1 / (1 - p) where dropout (simd/philox.h) keeps an element, else 0: (rows, width) fp64. */
  at::Tensor mask_of(Dropout dropout) const {
    auto mask = at::ones({shape.rows, shape.width}, at::kDouble);
    if (dropout.p > 0) {
      auto* values = mask.mutable_data_ptr<double>();
      for (int64_t i = 0; i < mask.numel(); i++) {
        const bool kept =
            simd::philox_element(i, dropout.key) >= simd::dropout_threshold(dropout.p);
        values[i] = kept ? simd::dropout_scale(dropout.p) : 0.0;
      }
    }
    return mask.to(at::kCUDA);
  }

  DType type = DType::f32;
  Shape shape{};
};

inline at::Tensor f64(const at::Tensor& x) {
  return x.to(at::kDouble);
}

inline auto all_cases() {
  return testing::Combine(testing::Values(DType::f32, DType::f16, DType::bf16),
                          testing::ValuesIn(kShapes));
}

}  // namespace ferry::ops::cuda::test
