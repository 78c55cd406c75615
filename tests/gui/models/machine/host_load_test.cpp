#include "gui/models/machine/host_load.h"

#include <gtest/gtest.h>

#include <QSignalSpy>

#include "tests/gui/waiting.h"

namespace ferry::gui {
namespace {

TEST(HostLoad, IsReadWhileSomebodyLooks) {
  HostLoadWatch watch;
  QSignalSpy changed(&watch, &HostLoadWatch::changed);
  watch.set_active(true);
  EXPECT_EQ(changed.count(), 1);
  EXPECT_GT(watch.load().total_bytes, 0);
  EXPECT_GT(watch.load().used_bytes, 0);
  EXPECT_LE(watch.load().used_bytes, watch.load().total_bytes);
  EXPECT_FALSE(watch.load().busy_share) << "between two readings";
  ASSERT_TRUE(wait_until([&] {
    watch.look();
    return watch.load().busy_share.has_value();
  }));
  EXPECT_GE(*watch.load().busy_share, 0);
  EXPECT_LE(*watch.load().busy_share, 1);
}

TEST(HostLoad, InWords) {
  EXPECT_EQ(
      load_in_words(HostLoad{.busy_share = 0.234, .used_bytes = 3 << 20, .total_bytes = 8 << 20})
          .toStdString(),
      "CPU 23 % · memory 3.0 MiB of 8.0 MiB");
  EXPECT_EQ(load_in_words(HostLoad{}).toStdString(), "");
}

}  // namespace
}  // namespace ferry::gui
