#pragma once
// Sizes as people write and read them ("11GiB", "6.1 GiB"), and size arithmetic that cannot
// overflow silently.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ferry {

inline constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
/** Every tensor of a segment starts on such a boundary. */
inline constexpr int64_t kTensorAlignment_bytes = 512;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/** "11GiB", "512 MiB", "4GB", "123" (bytes); nullopt when it is none of these. */
std::optional<int64_t> parse_bytes(std::string_view text);
/** "6.10 GiB", "512.0 MiB", "87 B". */
std::string format_bytes(int64_t bytes);
/** a * b, or nullopt when it leaves int64: for numbers that come out of files. */
std::optional<int64_t> checked_mul(int64_t a, int64_t b);

}  // namespace ferry
