// Words of others reach a terminal without what it would obey, whoever prints them.

#include "src/base/print.h"

#include <gtest/gtest.h>

#include <string>

namespace ferry {
namespace {

constexpr std::string_view kForeign = "runs/\x1b]0;PWN\x07\x1b[31mred\xe2\x80\xae";

TEST(Print, SpellsOutWhatATerminalWouldObey) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  print(std::string(kForeign) + "\n\tnext\n");
  log_line(kForeign);
  print_unlogged(kForeign);
  const std::string out = testing::internal::GetCapturedStdout();
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(out, "runs/\\x1b]0;PWN\\x07\\x1b[31mred\\u202e\n\tnext\n");
  EXPECT_EQ(err,
            "runs/\\x1b]0;PWN\\x07\\x1b[31mred\\u202e\nruns/\\x1b]0;PWN\\x07\\x1b[31mred\\u202e\n");
}

TEST(Print, KeepsWhatIsDrawn) {
  testing::internal::CaptureStdout();
  print_drawn("\x1b[1mhead\x1b[0m\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "\x1b[1mhead\x1b[0m\n");
}

}  // namespace
}  // namespace ferry
