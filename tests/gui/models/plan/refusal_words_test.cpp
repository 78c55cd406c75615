// A plan's refusal in the app's words: with the labels of settings, and whole in another language.

#include "gui/models/plan/refusal_words.h"

#include <gtest/gtest.h>

#include "gui/models/text.h"
#include "src/service/plan/plan_answer.h"
#include "tests/gui/dashed_words.h"

namespace ferry::gui {
namespace {

constexpr const char* kRefusal =
    "[plan] the model does not fit: it needs 6.10 GiB of GPU memory (3.00 GiB are left beside the "
    "driver's context) and 2.00 GiB of host memory (1.00 GiB are left beside LibTorch), and 90.00 "
    "GiB on the drive (80.00 GiB may be taken); largest: saved on the GPU, 2.00 GiB - it fits "
    "without placement = host and with max_length = 256, slots = 2, or with at least gpu_memory = "
    "12.4GiB and host_memory = 812MiB, or with nvme_path = DIR (a directory on an SSD, 96.2 GiB "
    "free), or with optim = adamw_8bit and at least gpu_memory = 877MiB; else only with at least "
    "host_memory = 900GiB, more than this machine can give";

TEST(RefusalWords, NameSettingsByTheirLabels) {
  const RefusalWords words = words_of_refusal(kRefusal);
  EXPECT_EQ(words.why.toStdString(),
            "It needs 6.10 GiB of GPU memory (3.00 GiB are left beside the driver's context) and "
            "2.00 GiB of host memory (1.00 GiB are left beside LibTorch), and 90.00 GiB on the "
            "drive (80.00 GiB may be taken); largest: activations on the GPU, 2.00 GiB");
  EXPECT_EQ(
      words.help.toStdString(),
      "It fits without “Placement: host” and with “Longest text: 256”, “Weight slots: 2”, or with "
      "at least “GPU memory: 12.4GiB” and “Host memory: 812MiB”, or with “NVMe directories” (a "
      "directory on an SSD, 96.2 GiB free), or with “Optimizer: adamw_8bit” and at least "
      "“GPU memory: 877MiB”; else only with at least “Host memory: 900GiB”, more than this "
      "machine can give");
}

/** States have the names of the optimizer, which nobody has to know. */
TEST(RefusalWords, SayTheStatesOfEachOptimizerAlike) {
  for (const char* state : {"master", "adam_v", "lion_m", "momentum"}) {
    const QString said = QStringLiteral(
        "[plan] the model does not fit: it needs 6.10 GiB of memory (3.00 GiB are left beside "
        "LibTorch); largest: %1 in memory, 2.00 GiB - take a smaller model");
    EXPECT_TRUE(words_of_refusal(said.arg(state))
                    .why.endsWith("largest: optimizer states in memory, 2.00 GiB"))
        << state << ": " << words_of_refusal(said.arg(state)).why.toStdString();
  }
}

TEST(RefusalWords, OfAnotherFormStayAsTheyAre) {
  const RefusalWords words = words_of_refusal("[plan] something new - set max_length = 8");
  EXPECT_EQ(words.why, "Something new");
  EXPECT_EQ(words.help, "Set “Longest text: 8”");
}

TEST(RefusalWords, AreTranslatedWhole) {
  const DashedWords dashed({"RefusalTexts"});
  const RefusalWords words = words_of_refusal(kRefusal);
  EXPECT_EQ(DashedWords::left_in(words.why), "");
  EXPECT_EQ(DashedWords::left_in(words.help), "");
}

/** The planner's own, so that a change of its words is seen here. */
TEST(RefusalWords, OfThePlannerAreTranslatedWhole) {
  const DashedWords dashed({"RefusalTexts"});
  using Settings = std::vector<std::pair<const char*, const char*>>;
  const Settings refused[] = {
      {{"gpu_memory", "1GiB"}, {"host_memory", "2GiB"}},
      {{"gpu_memory", "2GiB"}, {"placement", "resident"}},
      {{"gpu_memory", "3GiB"}, {"host_memory", "1GiB"}, {"train_batch_size", "512"}},
      {{"gpu_memory", "2GiB"}, {"host_memory", "64GiB"}, {"per_device_train_batch_size", "32"}},
      {{"gpu_memory", "600MiB"}, {"host_memory", "900MiB"}, {"nvme_path", "/tmp"}},
  };
  int n_refused = 0;
  for (const Settings& settings : refused) {
    config::Config config;
    const auto set = [&](const char* key, const char* value) {
      config.set(key, value, {config::Source::command_line, "the test"});
    };
    set("config_name", "bert-large-uncased");
    set("task", "mlm");
    set("max_length", "512");
    set("machine", "2080ti-11g");
    for (const auto& [key, value] : settings)
      set(key, value);
    service::Planner planner;
    const service::PlanAnswer answer =
        planner.answer(config, {.reads_data = false, .looks_for_gains = false});
    if (!answer.refusal) continue;
    ++n_refused;
    const RefusalWords words = words_of_refusal(to_text(answer.refusal->what()));
    EXPECT_EQ(DashedWords::left_in(words.why), "") << answer.refusal->what();
    EXPECT_EQ(DashedWords::left_in(words.help), "") << answer.refusal->what();
  }
  EXPECT_GE(n_refused, 3);
}

}  // namespace
}  // namespace ferry::gui
