#include "gui/models/text.h"

#include <gtest/gtest.h>

namespace ferry::gui {
namespace {

TEST(Text, APathComesBackByteForByte) {
  for (const char* path :
       {"", "/", "/runs/plain", "/runs/\xe8\xae\xad\xe7\xbb\x83 \xf0\x9f\x9a\xa2", "/runs/caf\xe9",
        "\xff\xfe", "/a\xc3", "/\xed\xa0\x80/b", "/a\xf0\x9f\x9a/b", "/\xed\xb2\x80"}) {
    const QString text = path_text(path);
    EXPECT_EQ(to_path(text).native(), path);
  }
}

TEST(Text, AValidPathIsItsText) {
  EXPECT_EQ(path_text("/runs/\xe8\xae\xad\xe7\xbb\x83"), QString::fromUtf8("/runs/训练"));
  EXPECT_EQ(path_text("/runs/caf\xe9").size(), 10);
}

}  // namespace
}  // namespace ferry::gui
