#include "src/train/checkpoint/identity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace ferry {
namespace {

TEST(Identity, AllowsALargerSizeBesideThoseThatWere) {
  const auto with = [](std::vector<int64_t> sizes) {
    return nlohmann::ordered_json{{"seed", 1}, {"token_sizes", std::move(sizes)}};
  };
  EXPECT_NO_THROW(check_identity(with({64, 128}), with({64, 128}), "data.tsv"));
  EXPECT_NO_THROW(check_identity(with({64, 128}), with({64, 128, 256}), "data.tsv"));
  for (const auto& other : {with({64}), with({64, 192, 256}), with({})})
    EXPECT_THROW(check_identity(with({64, 128}), other, "data.tsv"), Error);
}

}  // namespace
}  // namespace ferry
