// The wear of drives: how long they last, and when that is a warning.

#include "src/plan/drive_life.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

constexpr int64_t kTB_bytes = 1'000'000'000'000;
const NvmeNeed kNeed = {
    .n_blocks = 2, .n_pieces = 4, .read_bytes = kTB_bytes / 10, .written_bytes = kTB_bytes / 20};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DriveLife, IsTheEnduranceByTheBytesOfAStep) {
  const auto life = drive_life_of(kNeed, 600 * kTB_bytes, 100.0);
  ASSERT_TRUE(life);
  EXPECT_DOUBLE_EQ(life->n_steps, 12000);
  EXPECT_DOUBLE_EQ(*life->seconds, 1.2e6);
  EXPECT_FALSE(drive_life_of(kNeed, 600 * kTB_bytes, std::nullopt)->seconds);
  EXPECT_FALSE(drive_life_of(kNeed, std::nullopt, 100.0));
  EXPECT_FALSE(drive_life_of({}, 600 * kTB_bytes, 100.0)) << "nothing is written";
}

TEST(DriveLife, WarnsOfDrivesThatAreWornWithinMonths) {
  EXPECT_TRUE(contains(wear_warning(drive_life_of(kNeed, 600 * kTB_bytes, 100.0)),
                       "worn after 14 days of training without a pause"));
  const auto with_step = [](double seconds) {
    return wear_warning(drive_life_of(kNeed, 600 * kTB_bytes, seconds));
  };
  constexpr double kYear_s = 365 * 86400.0;
  EXPECT_FALSE(with_step(0.99 * kYear_s / 12000).empty());
  EXPECT_TRUE(with_step(1.01 * kYear_s / 12000).empty());
  EXPECT_TRUE(wear_warning(drive_life_of(kNeed, 1, std::nullopt)).empty()) << "no time is known";
  EXPECT_TRUE(wear_warning(std::nullopt).empty());
}

TEST(DriveLife, IsSaidWithTheBytesOfAStep) {
  EXPECT_EQ(wear_text({}, std::nullopt), "");
  EXPECT_EQ(wear_text(kNeed, std::nullopt),
            "A step reads 93.13 GiB from the drive and writes 46.57 GiB to it.");
  EXPECT_TRUE(contains(wear_text(kNeed, drive_life_of(kNeed, 600 * kTB_bytes, 10000.0)),
                       "lasts for 3.8 years of training without a pause: 12000 steps."));
  EXPECT_TRUE(contains(wear_text(kNeed, drive_life_of(kNeed, 600 * kTB_bytes, 10.0)),
                       "lasts for 33.3 hours of training without a pause"));
  EXPECT_TRUE(contains(wear_text(kNeed, drive_life_of(kNeed, 600 * kTB_bytes, std::nullopt)),
                       "lasts for 12000 steps."));
}

}  // namespace
}  // namespace ferry
