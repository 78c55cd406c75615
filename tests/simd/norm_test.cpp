// The norm tree: the stated tree written out again, a long double sum, every level, any split at
// chunks.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/simd/support.h"

namespace ferry::simd {
namespace {

/** The tree of kernels.h, nothing of simd/ in it. */
double tree(const std::vector<float>& g) {
  double sum = 0.0;
  for (size_t begin = 0; begin < g.size(); begin += 4096) {
    std::vector<double> lanes(64, 0.0);
    for (size_t i = begin; i < std::min(g.size(), begin + 4096); ++i)
      lanes[(i - begin) % 64] += static_cast<double>(g[i]) * static_cast<double>(g[i]);
    while (lanes.size() > 1) {
      const size_t half = lanes.size() / 2;
      for (size_t i = 0; i < half; ++i)
        lanes[i] += lanes[i + half];
      lanes.resize(half);
    }
    sum += lanes[0];
  }
  return sum;
}

uint64_t bits_of_double(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

std::vector<float> widened(const Buffer& buffer) {
  std::vector<float> wide(static_cast<size_t>(buffer.n()));
  convert(wide.data(), DType::f32, buffer.data(), buffer.type(), buffer.n());
  return wide;
}

class NormEveryLevel : public VectorLevel {};
INSTANTIATE_TEST_SUITE_P(,
                         NormEveryLevel,
                         ::testing::Values(Level::scalar, Level::avx2, Level::avx512),
                         level_test_name);

TEST_P(NormEveryLevel, IsTheStatedTree) {
  const UseLevel use(GetParam());
  std::mt19937_64 random(11);
  std::vector<int64_t> sizes = test_sizes();
  for (const int64_t n : {8191, 8192, 8193, 12'288, 300'001})
    sizes.push_back(n);
  for (const int64_t n : sizes) {
    for (const DType type : kFloatTypes) {
      Buffer grad(type, n, static_cast<int64_t>(random() % 33));
      grad.fill(Values::plain, random());
      ASSERT_EQ(bits_of_double(square_sum(grad.data(), type, n)),
                bits_of_double(tree(widened(grad))))
          << name_of(type) << ", n " << n;
    }
  }
}

TEST_P(NormEveryLevel, IsCloseToTheExactSum) {
  const UseLevel use(GetParam());
  Buffer grad(DType::f32, 1'000'003, 5);
  grad.fill(Values::plain, 12, 1e-3f);
  long double exact = 0.0L;
  for (int64_t i = 0; i < grad.n(); ++i)
    exact += static_cast<long double>(grad.f32()[i]) * grad.f32()[i];
  EXPECT_NEAR(square_sum(grad.data(), DType::f32, grad.n()), static_cast<double>(exact),
              1e-13 * static_cast<double>(exact));
}

TEST_P(NormEveryLevel, SplitsAtChunks) {
  const UseLevel use(GetParam());
  const int64_t n = 40 * kNormChunk + 17;
  for (const DType type : kFloatTypes) {
    Buffer grad(type, n, 3);
    grad.fill(Values::plain, 13);
    for (const int n_threads : {1, 2, 7}) {
      std::vector<double> sums(static_cast<size_t>(norm_chunks(n)));
      spread(n_threads, norm_chunks(n), [&](int64_t begin, int64_t end) {
        const int64_t last = std::min(n, end * kNormChunk);
        square_sum_chunks(grad.at(begin * kNormChunk), type, last - begin * kNormChunk,
                          sums.data() + begin);
      });
      EXPECT_EQ(sum_in_order(sums.data(), norm_chunks(n)), square_sum(grad.data(), type, n));
    }
  }
}

// Finite exactly when every element is: the overflow test.
TEST_P(NormEveryLevel, ShowsEveryNonFiniteElement) {
  const UseLevel use(GetParam());
  for (const int64_t n : {1, 63, 64, 65, 4095, 4096, 4097, 9000}) {
    for (const DType type : kFloatTypes) {
      const uint32_t largest[] = {0x7f7fffffu, 0x7bffu, 0x7f7fu};
      const uint32_t bad[][3] = {{0x7f800000u, 0x7c00u, 0x7f80u},
                                 {0xff800000u, 0xfc00u, 0xff80u},
                                 {0x7f800001u, 0x7c01u, 0x7f81u}};
      Buffer grad(type, n, 1);
      const size_t t = static_cast<size_t>(type);
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(grad.at(i), &largest[t], size_of(type));
      ASSERT_TRUE(std::isfinite(square_sum(grad.data(), type, n))) << name_of(type);
      for (const auto& patterns : bad) {
        for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
          std::memcpy(grad.at(at), &patterns[t], size_of(type));
          const double sum = square_sum(grad.data(), type, n);
          ASSERT_FALSE(std::isfinite(sum)) << name_of(type) << " at " << at << " of " << n;
          if (std::isnan(sum)) {
            ASSERT_EQ(bits_of_double(sum), 0x7ff8000000000000u);
          }
          std::memcpy(grad.at(at), &largest[t], size_of(type));
        }
      }
    }
  }
}

TEST_P(NormEveryLevel, EqualsScalarOnHundredMillion) {
  if (!is_long()) GTEST_SKIP() << "1e8 elements: in the long suite (FERRY_LONG=1)";
  Buffer grad(DType::bf16, 100'000'000, 3);
  grad.fill(Values::plain, 14);
  double expected = 0.0;
  {
    const UseLevel use(Level::scalar);
    expected = square_sum(grad.data(), DType::bf16, grad.n());
  }
  const UseLevel use(GetParam());
  EXPECT_EQ(square_sum(grad.data(), DType::bf16, grad.n()), expected);
}

TEST(Norm, NothingSumsToZero) {
  EXPECT_EQ(square_sum(nullptr, DType::f32, 0), 0.0);
  EXPECT_EQ(sum_in_order(nullptr, 0), 0.0);
  EXPECT_EQ(norm_chunks(0), 0);
  EXPECT_EQ(norm_chunks(4096), 1);
  EXPECT_EQ(norm_chunks(4097), 2);
}

TEST(Norm, OrderOfChunksMatters) {
  const double values[] = {1e16, 1.0, 1.0, -1e16};
  EXPECT_EQ(sum_in_order(values, 4),
            0.0);  // each 1 is lost on 1e16; any other order would keep some
}

}  // namespace
}  // namespace ferry::simd
