#pragma once
// Shared by the simd tests: hostile values, buffers at any offset with guards around them, sizes of
// the quick and the long suite (FERRY_LONG=1), and a gtest fixture that runs a test once per vector
// level against the scalar one.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "simd/kernels.h"
#include "src/base/dtype.h"

namespace ferry::simd {

inline bool is_long() {
  const char* text = std::getenv("FERRY_LONG");
  return text != nullptr && std::string(text) == "1";
}

/** All of 0..4097 in the long suite; else the small ones, those around 4096 and a seeded sample. */
inline std::vector<int64_t> test_sizes() {
  std::vector<int64_t> sizes;
  std::mt19937 random(7);
  for (int64_t n = 0; n <= 4097; ++n)
    if (is_long() || n <= 130 || n >= 4080 || random() % 64 == 0) sizes.push_back(n);
  return sizes;
}

inline float as_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline uint32_t as_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline constexpr DType kFloatTypes[] = {DType::f32, DType::f16, DType::bf16};

enum class Values {
  plain,    // normal(0, 1) and small: what training has
  hostile,  // any bits: subnormal, huge, infinite, NaN of every kind
};

/** n elements of a type, `offset` elements behind a line of 64 bytes, with guard bytes around that
 * check() verifies. */
class Buffer {
 public:
  Buffer(DType type, int64_t n, int64_t offset = 0)
      : type_(type),
        n_(n),
        bytes_(kGuard + 64 + static_cast<size_t>(offset + n) * size_of(type) + kGuard, kFill) {
    size_t at = kGuard;
    while (reinterpret_cast<uintptr_t>(bytes_.data() + at) % 64 != 0)
      ++at;
    begin_ = at + static_cast<size_t>(offset) * size_of(type);
  }

  void* data() { return bytes_.data() + begin_; }
  const void* data() const { return bytes_.data() + begin_; }
  float* f32() { return static_cast<float*>(data()); }
  uint16_t* u16() { return static_cast<uint16_t*>(data()); }
  uint8_t* u8() { return static_cast<uint8_t*>(data()); }
  void* at(int64_t i) { return bytes_.data() + begin_ + static_cast<size_t>(i) * size_of(type_); }
  DType type() const { return type_; }
  int64_t n() const { return n_; }
  size_t n_bytes() const { return static_cast<size_t>(n_) * size_of(type_); }

  void copy_from(const Buffer& other) {
    if (n_ > 0) std::memcpy(data(), other.data(), n_bytes());
  }

  /** Fills with values; `scale` multiplies the plain ones. */
  Buffer& fill(Values values, uint64_t seed, float scale = 1.0f) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    for (int64_t i = 0; i < n_; ++i) {
      const uint32_t bits =
          values == Values::plain ? as_bits(normal(random) * scale) : hostile_bits(random);
      if (type_ == DType::f32) std::memcpy(at(i), &bits, 4);
      uint16_t half = static_cast<uint16_t>(bits >> 16);  // hostile: any 16 bits do
      if (type_ == DType::f16 && values == Values::plain) half = plain_half(bits);
      if (size_of(type_) == 2) std::memcpy(at(i), &half, 2);
    }
    return *this;
  }

  void expect_guards(const std::string& what) const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (i == begin_) i += n_bytes();
      if (i < bytes_.size() && bytes_[i] != kFill) {
        ADD_FAILURE() << what << " wrote outside its array, at byte "
                      << static_cast<int64_t>(i - begin_);
        return;
      }
    }
  }

 private:
  static constexpr size_t kGuard = 128;
  static constexpr uint8_t kFill = 0xa5;

  static uint32_t hostile_bits(std::mt19937_64& random) {
    static constexpr uint32_t kSpecial[] = {
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
        0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
        0x7f800001, 0xff923456, 0x7fffffff, 0x3f800000, 0xbf800000, 0x477fe000,
        0x477ff000, 0x33000000, 0x33000001, 0x38800000, 0x387fffff, 0x5f000000};
    const uint64_t r = random();
    if (r % 4 == 0) return kSpecial[(r >> 8) % std::size(kSpecial)];
    return static_cast<uint32_t>(r >> 32);
  }
  /** fp32 bits cut to fp16, for values in the middle of its range; tiny ones become zero. */
  static uint16_t plain_half(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x38800000u || magnitude >= 0x47000000u) return 0;
    return static_cast<uint16_t>((bits >> 16 & 0x8000u) | ((magnitude - 0x38000000u) >> 13));
  }

  DType type_;
  int64_t n_;
  std::vector<uint8_t> bytes_;
  size_t begin_;
};

/** Same bytes; on a difference names the first element. */
inline ::testing::AssertionResult same_bits(const Buffer& a, const Buffer& b) {
  if (a.n_bytes() == 0 || std::memcmp(a.data(), b.data(), a.n_bytes()) == 0)
    return ::testing::AssertionSuccess();
  const size_t size = size_of(a.type());
  for (int64_t i = 0; i < a.n(); ++i) {
    uint32_t x = 0, y = 0;
    std::memcpy(&x, static_cast<const uint8_t*>(a.data()) + static_cast<size_t>(i) * size, size);
    std::memcpy(&y, static_cast<const uint8_t*>(b.data()) + static_cast<size_t>(i) * size, size);
    if (x != y)
      return ::testing::AssertionFailure() << std::hex << "element " << std::dec << i << " of "
                                           << a.n() << ": " << std::hex << x << " and " << y;
  }
  return ::testing::AssertionFailure();
}

/** Uses a level for the life of the object. */
class UseLevel {
 public:
  explicit UseLevel(Level wanted) : before_(level()) { set_level(wanted); }
  ~UseLevel() { set_level(before_); }
  UseLevel(const UseLevel&) = delete;
  UseLevel& operator=(const UseLevel&) = delete;

 private:
  Level before_;
};

/** TEST_P(..., once per vector level); skips the levels that this machine lacks. */
class VectorLevel : public ::testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    const std::string missing = missing_for(GetParam());
    if (!missing.empty()) GTEST_SKIP() << "this machine lacks " << missing;
  }
};

inline std::string level_test_name(const ::testing::TestParamInfo<Level>& info) {
  return std::string(level_name(info.param));
}

#define FERRY_PER_LEVEL(SUITE) \
  INSTANTIATE_TEST_SUITE_P(, SUITE, ::testing::Values(Level::avx2, Level::avx512), level_test_name)

/** job(begin, end) over [0, n) on n_threads threads, in pieces that need not be multiples of
 * anything. */
inline void spread(int n_threads, int64_t n, const std::function<void(int64_t, int64_t)>& job) {
  std::vector<std::thread> threads;
  for (int t = 0; t < n_threads; ++t)
    threads.emplace_back([&, t] { job(n * t / n_threads, n * (t + 1) / n_threads); });
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace ferry::simd
