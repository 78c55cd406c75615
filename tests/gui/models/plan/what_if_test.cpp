#include "gui/models/plan/what_if.h"

#include <gtest/gtest.h>

namespace ferry::gui {
namespace {

constexpr config::Origin kTest{config::Source::command_line, "test"};

TEST(WhatIf, WhatIsTriedOnAnotherMachineIsOfItsPlanAlone) {
  config::Config run;
  run.set("train_batch_size", "4", kTest);
  WhatIf what_if;
  EXPECT_FALSE(what_if.has_run());
  what_if.set_run(run);
  EXPECT_FALSE(what_if.is_elsewhere());
  what_if.set_machine("3090-24g");
  what_if.change("gpu_memory", "256MiB");
  what_if.change("gpu_memory", "512MiB");
  what_if.change("train_batch_size", "9");
  EXPECT_TRUE(what_if.is_elsewhere());
  const config::Config planned = what_if.planned(), here = what_if.here();
  EXPECT_EQ(planned.text("machine"), "3090-24g");
  EXPECT_EQ(planned.integer("gpu_memory"), int64_t{512} << 20);
  EXPECT_EQ(planned.integer("train_batch_size"), 9);
  EXPECT_FALSE(here.maybe_text("machine"));
  EXPECT_FALSE(here.maybe_integer("gpu_memory"));
  EXPECT_EQ(here.integer("train_batch_size"), 4);
  // Another card keeps what is tried; this machine has none of it.
  what_if.set_machine("2080ti-11g");
  EXPECT_EQ(what_if.changes().size(), 2u);
  what_if.set_machine("auto");
  EXPECT_TRUE(what_if.changes().empty());
  EXPECT_EQ(what_if.planned().integer("train_batch_size"), 4);
}

TEST(WhatIf, AValueThatIsNoneIsLeftOut) {
  WhatIf what_if;
  what_if.set_run({});
  what_if.set_machine("3090-24g");
  what_if.change("gpu_memory", "much");
  EXPECT_FALSE(what_if.planned().maybe_integer("gpu_memory"));
}

}  // namespace
}  // namespace ferry::gui
