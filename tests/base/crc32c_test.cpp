#include "src/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry {
namespace {

/** RFC 3720, B.4. */
TEST(Crc32c, MatchesTheStandard) {
  const std::string digits = "123456789";
  const auto bytes = std::as_bytes(std::span(digits));
  EXPECT_EQ(crc32c(bytes), 0xE3069283u);
  EXPECT_EQ(crc32c(bytes.subspan(4), crc32c(bytes.first(4))), 0xE3069283u) << "in pieces";
  for (size_t n = 0; n <= bytes.size(); ++n)
    EXPECT_EQ(crc32c_combine(crc32c(bytes.first(n)), crc32c(bytes.subspan(n)),
                             static_cast<int64_t>(bytes.size() - n)),
              0xE3069283u)
        << n << " bytes, then the rest";
  EXPECT_EQ(crc32c({}), 0u);
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAu);
}

}  // namespace
}  // namespace ferry
