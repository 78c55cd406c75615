// Dropout: Philox against the published vector and a plain re-implementation; masks and products at
// every level.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "simd/philox.h"
#include "simd/random.h"
#include "tests/simd/support.h"

namespace ferry::simd {
namespace {

/** Philox4x32-10 as the paper has it: one round, then the key bump. */
std::array<uint32_t, 4> paper_philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

TEST(Philox, PublishedVectors) {
  // Random123's known answers: the last two check the re-implementation, whose counter has all four
  // words.
  const PhiloxWords zero = philox(0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(paper_philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (std::array<uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(paper_philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                         {0xa4093822u, 0x299f31d0u}),
            (std::array<uint32_t, 4>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, ElementsTakeTheirCountersWords) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t element = random() >> (i % 64), key = random();
    const uint64_t counter = element / 4;
    const auto words =
        paper_philox({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0},
                     {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    ASSERT_EQ(philox_element(element, key), words[element % 4]);
  }
}

TEST(Dropout, ThresholdAndScale) {
  EXPECT_EQ(dropout_threshold(0.0f), 0u);
  EXPECT_EQ(dropout_threshold(0.5f), 0x80000000u);
  EXPECT_EQ(dropout_threshold(0.1f),
            429496736u);  // round(float(0.1) * 2^32); float(0.1) is above 0.1
  EXPECT_EQ(dropout_threshold(std::nextafter(1.0f, 0.0f)), 0xffffff00u);
  EXPECT_EQ(dropout_scale(0.5f), 2.0f);
  EXPECT_EQ(dropout_scale(0.0f), 1.0f);
}

class DropoutEveryLevel : public VectorLevel {};
INSTANTIATE_TEST_SUITE_P(,
                         DropoutEveryLevel,
                         ::testing::Values(Level::scalar, Level::avx2, Level::avx512),
                         level_test_name);

TEST_P(DropoutEveryLevel, MaskIsPhiloxAgainstTheThreshold) {
  const UseLevel use(GetParam());
  std::mt19937_64 random(2);
  // Also across the wrap of the counter's low word, and at the end of 64 bits.
  std::vector<uint64_t> firsts = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  1000,
                                  (uint64_t{1} << 34) - 150,
                                  (uint64_t{1} << 34) - 64,
                                  ~uint64_t{0} - 5000};
  for (const uint64_t first : firsts) {
    for (const float p : {0.0f, 0.1f, 0.5f, 0.999f}) {
      const uint64_t key = random();
      const int64_t n = 4000;
      Buffer keep(DType::u8, n, static_cast<int64_t>(random() % 5));
      dropout_mask(keep.u8(), n, first, key, p);
      for (int64_t i = 0; i < n; ++i) {
        const bool kept =
            philox_element(first + static_cast<uint64_t>(i), key) >= dropout_threshold(p);
        ASSERT_EQ(keep.u8()[i], kept ? 1 : 0) << "element " << i << " from " << first;
      }
      keep.expect_guards("dropout_mask");
    }
  }
}

TEST_P(DropoutEveryLevel, MaskDoesNotDependOnTheSplit) {
  const UseLevel use(GetParam());
  const int64_t n = 100'003;
  Buffer whole(DType::u8, n);
  dropout_mask(whole.u8(), n, 12345, 99, 0.1f);
  int64_t n_kept = 0;
  for (int64_t i = 0; i < n; ++i)
    n_kept += whole.u8()[i];
  EXPECT_NEAR(static_cast<double>(n_kept) / n, 0.9, 0.005);
  for (const int n_threads : {2, 7}) {
    Buffer parts(DType::u8, n, 1);
    spread(n_threads, n, [&](int64_t begin, int64_t end) {
      dropout_mask(parts.u8() + begin, end - begin, 12345 + static_cast<uint64_t>(begin), 99, 0.1f);
    });
    EXPECT_TRUE(same_bits(parts, whole));
  }
}

TEST_P(DropoutEveryLevel, AppliesMaskAndScale) {
  const UseLevel use(GetParam());
  const int64_t n = 2000;
  Buffer keep(DType::u8, n), in(DType::f32, n, 1), out(DType::f32, n, 2);
  dropout_mask(keep.u8(), n, 0, 5, 0.3f);
  in.fill(Values::plain, 6);
  dropout_apply(out.data(), in.data(), DType::f32, keep.u8(), n, 0.3f);
  for (int64_t i = 0; i < n; ++i) {
    const float expected = keep.u8()[i] != 0 ? in.f32()[i] * dropout_scale(0.3f) : 0.0f;
    ASSERT_EQ(as_bits(out.f32()[i]), as_bits(expected));
  }
}

class DropoutLevels : public VectorLevel {};
FERRY_PER_LEVEL(DropoutLevels);

TEST_P(DropoutLevels, EqualsScalarAtEverySizeAndOffset) {
  std::mt19937_64 random(8);
  const auto offset = [&] { return static_cast<int64_t>(random() % 33); };
  for (const int64_t n : test_sizes()) {
    const uint64_t first = random() >> (random() % 40), key = random();
    Buffer scalar_keep(DType::u8, n, offset()), keep(DType::u8, n, offset());
    {
      const UseLevel use(Level::scalar);
      dropout_mask(scalar_keep.u8(), n, first, key, 0.4f);
    }
    {
      const UseLevel use(GetParam());
      dropout_mask(keep.u8(), n, first, key, 0.4f);
    }
    ASSERT_TRUE(same_bits(keep, scalar_keep));
    keep.expect_guards("dropout_mask");
    for (const DType type : kFloatTypes) {
      Buffer in(type, n, offset()), scalar(type, n, offset());
      in.fill(Values::hostile, random());
      {
        const UseLevel use(Level::scalar);
        dropout_apply(scalar.data(), in.data(), type, keep.u8(), n, 0.4f);
      }
      const UseLevel use(GetParam());
      dropout_apply(in.data(), in.data(), type, keep.u8(), n, 0.4f);  // in place
      ASSERT_TRUE(same_bits(in, scalar)) << name_of(type);
      in.expect_guards("dropout_apply");
    }
  }
}

TEST(MixKey, IsFixedAndTellsFieldsApart) {
  static_assert(splitmix64(0) ==
                0xE220A8397B1DCDAFu);  // the first output of the published generator, seed 0
  static_assert(mix_key(1, 2, 3, 4, 5) ==
                splitmix64(splitmix64(splitmix64(splitmix64(splitmix64(1) ^ 2) ^ 3) ^ 4) ^ 5));
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 4; ++seed)
    for (uint64_t step = 0; step < 10; ++step)
      for (uint64_t micro_batch = 0; micro_batch < 6; ++micro_batch)
        for (uint64_t block = 0; block < 10; ++block)
          for (uint64_t operation = 0; operation < 6; ++operation)
            keys.insert(mix_key(seed, step, micro_batch, block, operation));
  EXPECT_EQ(keys.size(), 4u * 10 * 6 * 10 * 6);
}

TEST(DropoutDeathTest, RefusesProbabilitiesOutOfRange) {
  uint8_t keep = 0;
  EXPECT_DEATH(dropout_mask(&keep, 1, 0, 0, 1.0f), "expected 0 <= p < 1");
  EXPECT_DEATH(dropout_mask(&keep, 1, 0, 0, -0.1f), "expected 0 <= p < 1");
}

}  // namespace
}  // namespace ferry::simd
