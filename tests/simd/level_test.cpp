// The choice of the level: FERRY_SIMD, set_level, and what an unavailable one says.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "simd/level.h"
#include "src/base/error.h"

namespace ferry::simd {
namespace {

TEST(Level, NamesAndBest) {
  EXPECT_EQ(level_name(Level::scalar), "scalar");
  EXPECT_EQ(level_name(Level::avx2), "avx2");
  EXPECT_EQ(level_name(Level::avx512), "avx512");
  EXPECT_EQ(missing_for(Level::scalar), "");
  EXPECT_EQ(missing_for(best_level()), "");
  // The kernel's own list is the second opinion on what this machine supports.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    EXPECT_NE(best_level(), Level::scalar);
  }
  EXPECT_EQ(best_level() == Level::avx512,
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
}

TEST(Level, SetLevelTakesWhatIsThereAndRefusesTheRest) {
  const Level before = level();
  for (const Level wanted : {Level::scalar, Level::avx2, Level::avx512}) {
    if (missing_for(wanted).empty()) {
      set_level(wanted);
      EXPECT_EQ(level(), wanted);
      EXPECT_EQ(level_name(), level_name(wanted));
      continue;
    }
    try {
      set_level(wanted);
      ADD_FAILURE() << "took " << level_name(wanted);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::machine);
      EXPECT_NE(std::string(error.what()).find(missing_for(wanted)), std::string::npos)
          << error.what();
    }
  }
  set_level(before);
}

/** Prints the level that FERRY_SIMD=value leads to, in a process of its own; the level is chosen
 * once. */
[[noreturn]] void report_level(const char* value) {
  setenv("FERRY_SIMD", value, 1);
  try {
    std::fprintf(stderr, "level %s\n", std::string(level_name()).c_str());
    std::exit(0);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(error.exit_code());
  }
}

class LevelDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }  // a fresh process
};

TEST_F(LevelDeathTest, EnvironmentForcesALevel) {
  EXPECT_EXIT(report_level("scalar"), ::testing::ExitedWithCode(0), "level scalar");
  EXPECT_EXIT(report_level(""), ::testing::ExitedWithCode(0),
              "level " + std::string(level_name(best_level())));
  for (const Level wanted : {Level::avx2, Level::avx512}) {
    const std::string name(level_name(wanted));
    if (missing_for(wanted).empty()) {
      EXPECT_EXIT(report_level(name.c_str()), ::testing::ExitedWithCode(0), "level " + name);
    } else {
      EXPECT_EXIT(report_level(name.c_str()), ::testing::ExitedWithCode(5),
                  "FERRY_SIMD asks for " + name + ".*lacks");
    }
  }
}

TEST_F(LevelDeathTest, UnknownLevelIsAUsageError) {
  EXPECT_EXIT(report_level("sse9"), ::testing::ExitedWithCode(2),
              "FERRY_SIMD is 'sse9', expected avx2, avx512 or scalar");
}

}  // namespace
}  // namespace ferry::simd
