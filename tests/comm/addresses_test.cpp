#include "src/comm/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/base/error.h"

namespace ferry {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Addresses, OnePortIsForOneStore) {
  for (const char* address : {"127.0.0.1", ""}) {
    const StoreSocket first = listen_for_ranks(address, 0);
    ASSERT_GT(first.port, 0);
    try {
      listen_for_ranks(address, first.port);
      ADD_FAILURE() << "port " << first.port << " was taken";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), AllOf(HasSubstr("port " + std::to_string(first.port)),
                                  HasSubstr("is taken"), HasSubstr("MASTER_PORT")));
    }
  }
  EXPECT_THROW(listen_for_ranks("192.0.2.1", 0), Error);  // an address of no host
}

TEST(Addresses, ARouteHasTwoEnds) {
  const std::optional<Route> route = find_route("127.0.0.1", 1);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->own, "127.0.0.1");
  EXPECT_EQ(route->other, "127.0.0.1");
  EXPECT_FALSE(find_route("no such host", 1));
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("10.127.0.1"));
}

}  // namespace
}  // namespace ferry
