// Conversions against an independent reference (nearest value by search, ties to even), over all
// 16-bit values and every midpoint between neighbours; sums of gradients; the same bits at every
// level.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/simd/support.h"

namespace ferry::simd {
namespace {

/** A 16-bit format: bits of the fraction and the smallest normal exponent. */
struct Format {
  DType type;
  int fraction_bits;
  int exponent_bits;

  uint16_t infinity() const {
    return static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  }
  /** The value of non-negative finite bits; infinity's bits give the power of two past the largest.
   */
  double value(uint16_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  /** Nearest by value among neighbours; a tie goes to the even bits. */
  uint16_t nearest(double x) const {
    if (std::isinf(x)) return infinity();
    int low = 0, high = infinity();
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (value(static_cast<uint16_t>(middle)) <= x ? low : high) = middle;
    }
    const double below = x - value(static_cast<uint16_t>(low)),
                 above = value(static_cast<uint16_t>(high)) - x;
    if (above <= 0) return infinity();
    const bool up = above < below || (above == below && low % 2 == 1);
    return static_cast<uint16_t>(up ? high : low);
  }
};

constexpr Format kHalf{DType::f16, 10, 5}, kBfloat{DType::bf16, 7, 8};

class ConvertEveryLevel : public VectorLevel {};
INSTANTIATE_TEST_SUITE_P(,
                         ConvertEveryLevel,
                         ::testing::Values(Level::scalar, Level::avx2, Level::avx512),
                         level_test_name);

TEST_P(ConvertEveryLevel, WidensAllValuesExactly) {
  const UseLevel use(GetParam());
  for (const Format& format : {kHalf, kBfloat}) {
    std::vector<uint16_t> from(65536);
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = static_cast<uint16_t>(i);
    std::vector<float> to(from.size());
    convert(to.data(), DType::f32, from.data(), format.type, 65536);
    for (size_t i = 0; i < from.size(); ++i) {
      const uint16_t magnitude = from[i] & 0x7fff;
      ASSERT_EQ(std::signbit(to[i]), from[i] >= 0x8000) << i;
      if (magnitude > format.infinity()) {
        ASSERT_TRUE(std::isnan(to[i])) << i;
        // Sign and payload stay; fp16 becomes quiet, as the hardware does it.
        const uint32_t payload =
            static_cast<uint32_t>(magnitude & ((1 << format.fraction_bits) - 1))
            << (23 - format.fraction_bits);
        ASSERT_EQ(as_bits(to[i]) & 0x7fffffu,
                  payload | (format.type == DType::f16 ? 0x400000u : 0u))
            << i;
      } else if (magnitude == format.infinity()) {
        ASSERT_TRUE(std::isinf(to[i])) << i;
      } else {
        ASSERT_EQ(std::abs(static_cast<double>(to[i])), format.value(magnitude)) << i;
      }
    }
  }
}

TEST_P(ConvertEveryLevel, NarrowsAllValuesAndMidpoints) {
  const UseLevel use(GetParam());
  for (const Format& format : {kHalf, kBfloat}) {
    std::vector<float> from;
    for (int bits = 0; bits < format.infinity(); ++bits) {
      const double low = format.value(static_cast<uint16_t>(bits)),
                   high = format.value(static_cast<uint16_t>(bits + 1));
      const float middle =
          static_cast<float>((low + high) / 2);  // exact: one bit more than the format has
      for (const float x : {static_cast<float>(low), middle, std::nextafter(middle, 0.0f),
                            std::nextafter(middle, INFINITY)})
        for (const float sign : {1.0f, -1.0f})
          from.push_back(x * sign);
    }
    for (const float x :
         {3.4028235e38f, 1e30f, 65504.0f, 65519.996f, 65520.0f, 65536.0f, 1e-45f, 2.9802322e-8f})
      for (const float sign : {1.0f, -1.0f})
        from.push_back(x * sign);
    from.push_back(std::numeric_limits<float>::infinity());
    from.push_back(-std::numeric_limits<float>::infinity());
    std::vector<uint16_t> to(from.size());
    convert(to.data(), format.type, from.data(), DType::f32, static_cast<int64_t>(from.size()));
    for (size_t i = 0; i < from.size(); ++i) {
      const uint16_t sign = std::signbit(from[i]) ? 0x8000 : 0;
      ASSERT_EQ(to[i], sign | format.nearest(std::abs(static_cast<double>(from[i])))) << from[i];
    }
  }
}

TEST_P(ConvertEveryLevel, RoundTripsAndKeepsNan) {
  const UseLevel use(GetParam());
  for (const Format& format : {kHalf, kBfloat}) {
    std::vector<uint16_t> from(65536), back(65536);
    std::vector<float> wide(65536);
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = static_cast<uint16_t>(i);
    convert(wide.data(), DType::f32, from.data(), format.type, 65536);
    convert(back.data(), format.type, wide.data(), DType::f32, 65536);
    const uint16_t quiet = static_cast<uint16_t>(1 << (format.fraction_bits - 1));
    for (size_t i = 0; i < from.size(); ++i)
      ASSERT_EQ(back[i], (from[i] & 0x7fff) > format.infinity() ? from[i] | quiet : from[i]);
    // A payload in the low bits alone must not turn into infinity.
    for (const uint32_t nan : {0x7f800001u, 0xff800001u, 0x7fbfffffu, 0x7fffffffu}) {
      const float x = as_float(nan);
      uint16_t to = 0;
      convert(&to, format.type, &x, DType::f32, 1);
      ASSERT_GT(to & 0x7fff, format.infinity());
      ASSERT_EQ(to >> 15, nan >> 31);
    }
  }
}

class ConvertLevels : public VectorLevel {};
FERRY_PER_LEVEL(ConvertLevels);

TEST_P(ConvertLevels, EqualsScalarAtEverySizeAndOffset) {
  std::mt19937_64 random(3);
  const auto offset = [&] { return static_cast<int64_t>(random() % 33); };
  for (const int64_t n : test_sizes()) {
    for (const DType from_type : kFloatTypes) {
      for (const DType to_type : kFloatTypes) {
        if (from_type != to_type && from_type != DType::f32 && to_type != DType::f32) continue;
        Buffer from(from_type, n, offset()), scalar(to_type, n, offset()),
            vector(to_type, n, offset());
        from.fill(Values::hostile, random());
        {
          const UseLevel use(Level::scalar);
          convert(scalar.data(), to_type, from.data(), from_type, n);
        }
        const UseLevel use(GetParam());
        convert(vector.data(), to_type, from.data(), from_type, n);
        ASSERT_TRUE(same_bits(vector, scalar)) << name_of(from_type) << " to " << name_of(to_type);
        vector.expect_guards("convert");
      }
    }
  }
}

TEST_P(ConvertLevels, EqualsScalarOnAllFloats) {
  const uint64_t stride =
      is_long() ? 1 : 257;  // quick: every 257th pattern, so every low byte occurs
  const int64_t n = 1 << 16;
  Buffer from(DType::f32, n), scalar(DType::f16, n), vector(DType::f16, n);
  for (uint64_t start = 0; start < uint64_t{1} << 32; start += stride * static_cast<uint64_t>(n)) {
    for (int64_t i = 0; i < n; ++i)
      from.f32()[i] = as_float(static_cast<uint32_t>(start + stride * static_cast<uint64_t>(i)));
    for (const DType type : {DType::f16, DType::bf16}) {
      {
        const UseLevel use(Level::scalar);
        convert(scalar.data(), type, from.data(), DType::f32, n);
      }
      const UseLevel use(GetParam());
      convert(vector.data(), type, from.data(), DType::f32, n);
      ASSERT_TRUE(same_bits(vector, scalar)) << name_of(type) << " from pattern " << start;
    }
  }
}

TEST_P(ConvertLevels, AccumulateEqualsScalar) {
  std::mt19937_64 random(4);
  for (const int64_t n : test_sizes()) {
    for (const DType type : kFloatTypes) {
      Buffer grad(type, n, static_cast<int64_t>(random() % 33));
      grad.fill(Values::hostile, random());
      Buffer scalar(DType::f32, n, static_cast<int64_t>(random() % 33));
      scalar.fill(Values::hostile, random());
      Buffer vector(DType::f32, n, static_cast<int64_t>(random() % 33));
      vector.copy_from(scalar);
      {
        const UseLevel use(Level::scalar);
        accumulate(scalar.f32(), grad.data(), type, n);
      }
      const UseLevel use(GetParam());
      spread(n % 2 == 0 ? 1 : 7, n, [&](int64_t begin, int64_t end) {
        accumulate(vector.f32() + begin, grad.at(begin), type, end - begin);
      });
      ASSERT_TRUE(same_bits(vector, scalar)) << name_of(type);
      vector.expect_guards("accumulate");
      if (!is_long() && n > 200 && n < 4090) break;
    }
  }
}

TEST_P(ConvertEveryLevel, AccumulateAddsOnceRounded) {
  const UseLevel use(GetParam());
  const int64_t n = 3000;
  for (const DType type : kFloatTypes) {
    Buffer first(type, n, 1), second(type, n, 2), sum(DType::f32, n, 3), a(DType::f32, n),
        b(DType::f32, n);
    first.fill(Values::plain, 1);
    second.fill(Values::plain, 2, 3.0f);
    accumulate_first(sum.f32(), first.data(), type, n);
    convert(a.data(), DType::f32, first.data(), type, n);
    convert(b.data(), DType::f32, second.data(), type, n);
    ASSERT_TRUE(same_bits(sum, a));
    accumulate(sum.f32(), second.data(), type, n);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(sum.f32()[i], a.f32()[i] + b.f32()[i]);
  }
}

TEST(ConvertDeathTest, RefusesOtherPairs) {
  uint16_t x = 0;
  EXPECT_DEATH(convert(&x, DType::f16, &x, DType::bf16, 1), "no conversion from bf16 to fp16");
}

}  // namespace
}  // namespace ferry::simd
