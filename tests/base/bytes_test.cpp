#include "src/base/bytes.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(Bytes, ParsesWhatPeopleWrite) {
  EXPECT_EQ(parse_bytes("11GiB"), 11 * kGiB);
  EXPECT_EQ(parse_bytes("1.5 MiB"), 3 * kMiB / 2);
  EXPECT_EQ(parse_bytes("4GB"), 4'000'000'000);
  EXPECT_EQ(parse_bytes("123"), 123);
  for (const char* bad : {"", "GiB", "11 gibi", "-1GiB", "nan", "1e30GiB"})
    EXPECT_EQ(parse_bytes(bad), std::nullopt) << bad;
}

TEST(Bytes, FormatsShort) {
  EXPECT_EQ(format_bytes(87), "87 B");
  EXPECT_EQ(format_bytes(11 * kGiB), "11.00 GiB");
}

TEST(Bytes, OverflowIsSeen) {
  EXPECT_EQ(checked_mul(int64_t{1} << 40, int64_t{1} << 40), std::nullopt);
  EXPECT_EQ(checked_mul(3, 5), 15);
}

}  // namespace
}  // namespace ferry
