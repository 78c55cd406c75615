// Several runs beside each other, and the list that they are chosen from.

#include "src/service/runs/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "src/base/error.h"
#include "src/runs/index/run_index.h"
#include "tests/files/test_files.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class ComparedRuns : public ::testing::Test {
 protected:
  fs::path run(const std::string& name, const std::string& settings, const std::string& metrics) {
    directory_.write(name + "/run.json", R"({"format_version": 1, "phase": "finished"})");
    directory_.write(name + "/config.toml", "output_dir = \"" + name + "\"\n" + settings);
    directory_.write(name + "/metrics.jsonl", metrics);
    return directory_ / name;
  }
  test::TempDir directory_;
};

TEST_F(ComparedRuns, DifferInSettingsAndInWhatTheyMeasured) {
  const std::array runs = {
      run("a", "learning_rate = 1e-4\nseed = 1\nmax_length = 64\n",
          "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 1, \"eval_loss\": 1, \"eval_f1\": 0.5}\n"),
      run("b", "learning_rate = 1e-4\nseed = 2\n", "{\"step\": 1, \"loss\": 0.25}\n"),
      run("c", "learning_rate = 1e-5\nseed = 2\n",
          "{\"step\": 2, \"eval_loss\": 1, \"eval_accuracy\": 0.5, \"eval_text\": \"x\"}\n")};
  const RunComparison compared = compare_runs(runs);
  std::vector<std::string> keys;
  for (const SettingDifference& setting : compared.settings)
    keys.emplace_back(setting.option->key);
  EXPECT_THAT(keys, ElementsAre("max_length", "learning_rate", "seed"));
  EXPECT_THAT(compared.settings[0].values, ElementsAre("64", "\"auto\"", "\"auto\""));
  EXPECT_THAT(compared.settings[1].values, ElementsAre("0.0001", "0.0001", "1e-05"));
  EXPECT_THAT(compared.settings[2].values, ElementsAre("1", "2", "2"));
  EXPECT_THAT(compared.metrics, ElementsAre("eval_accuracy", "eval_f1", "eval_loss"));
  ASSERT_EQ(compared.runs.size(), 3u);
  EXPECT_EQ(compared.runs[1].mean_loss, 0.25);
  EXPECT_TRUE(compare_runs(std::span(runs).first(1)).settings.empty());
  EXPECT_TRUE(compare_runs({}).runs.empty());
}

TEST_F(ComparedRuns, OneOfWhichCannotBeReadAreAnError) {
  const std::array runs = {run("a", "", ""), directory_ / "none"};
  EXPECT_THROW(compare_runs(runs), Error);
}

TEST_F(ComparedRuns, AreFoundWithoutReadingThem) {
  setenv("XDG_DATA_HOME", (directory_ / "data").c_str(), 1);
  const fs::path good = run("good", "", ""), broken = directory_ / "broken";
  directory_.write("broken/run.json", "{");
  runs::RunIndex index;
  index.add(good);
  index.add(broken);
  EXPECT_THAT(runs::known_runs(), Contains(fs::weakly_canonical(good)));
  EXPECT_THAT(runs::known_runs(), Contains(fs::weakly_canonical(broken)));
  fs::remove_all(good);
  EXPECT_THAT(runs::known_runs(), Not(Contains(fs::weakly_canonical(good))));
  unsetenv("XDG_DATA_HOME");
}

}  // namespace
}  // namespace ferry::service
